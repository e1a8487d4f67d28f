"""Half frames of all connections together: their bound, who waits, who goes on, and who goes.

Story: sixty connections, each with 40 MiB of a frame that never ended, held 2.5 GB in one broker;
sixty whole Produce requests of 40 MiB, 4.5 GB.
"""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.wire import half_frames
from ottla.broker.wire.half_frames import PATIENCE_SECONDS, SMALL_BYTES, HalfFrames

K = 1 << 10


class Owner:
    """A connection that notes what is said to it."""

    def __init__(self, name):
        self.name = name
        self.went_on = 0
        self.slow = 0

    def go_on(self):
        self.went_on += 1

    def too_slow(self):
        self.slow += 1


class Ground:
    """`HalfFrames` with a clock and a loop of the test's."""

    def __init__(self, most):
        self.now = 100.0
        self.soon: list[Callable[[], None]] = []
        self.pressed: list[bool] = []
        self.halves = HalfFrames(most, lambda: self.now, self.soon.append, self.pressed.append)

    def turn(self):
        """One turn of the loop."""
        soon = self.soon[:]
        self.soon.clear()
        for call in soon:
            call()

    def owners(self, *sizes):
        """Half frames that hold so much."""
        found = [Owner(n) for n in range(len(sizes))]
        assert all(self.halves.ask(one, size) for one, size in zip(found, sizes, strict=True))
        return found


def test_whoever_would_exceed_the_limit_waits_and_goes_on_in_the_order_of_waiting():
    ground = Ground(100 * K)
    halves = ground.halves
    _, second, third = ground.owners(40 * K, 30 * K, 30 * K)
    assert not halves.ask(third, 31 * K)
    assert not halves.ask(second, 31 * K)
    late = Owner("late")
    assert not halves.ask(late, 20 * K), "others wait already"
    assert (halves.waiting, halves.held, ground.pressed) == (3, 100 * K, [True])
    halves.hold(third, 30 * K)
    ground.turn()
    assert third.went_on == 0, "nothing has become free"
    halves.drop(second)
    ground.turn()
    assert (third.went_on, late.went_on) == (1, 1)
    assert (halves.waiting, halves.held, ground.pressed) == (0, 91 * K, [True, False])


def test_the_oldest_half_frame_may_always_grow():
    ground = Ground(100 * K)
    halves = ground.halves
    oldest, second = ground.owners(50 * K, 50 * K)
    assert not halves.ask(second, 60 * K)
    assert halves.ask(oldest, 300 * K)
    assert halves.held == 350 * K
    halves.drop(oldest)
    ground.turn()
    assert (second.went_on, halves.held) == (1, 60 * K)


def test_one_frame_at_most_stands_beside_the_limit_whole_or_half():
    """The next one is the oldest now; but what it would add comes on top of a frame that waits for
    room in its pipeline, or is at work."""
    ground = Ground(100 * K)
    halves = ground.halves
    oldest, second, third = ground.owners(50 * K, 25 * K, 25 * K)
    assert halves.ask(oldest, 300 * K)
    halves.whole(oldest)
    assert not halves.ask(second, 300 * K)
    ground.turn()
    assert (second.went_on, halves.held) == (0, 350 * K)
    halves.drop(third)
    ground.turn()
    assert second.went_on == 0
    halves.drop(oldest)
    ground.turn()
    assert (second.went_on, halves.held) == (1, 300 * K)


def test_small_frames_neither_count_nor_wait():
    ground = Ground(100 * K)
    halves = ground.halves
    first, second = ground.owners(60 * K, 40 * K)
    assert not halves.ask(second, 41 * K)
    small = [Owner(n) for n in range(1000)]
    assert all(halves.ask(each, SMALL_BYTES) for each in small)
    assert halves.held == 100 * K
    halves.drop(first)
    ground.turn()
    assert second.went_on == 1


def test_a_half_frame_goes_when_it_has_had_its_time_while_others_wait():
    ground = Ground(100 * K)
    halves = ground.halves
    first, second = ground.owners(60 * K, 40 * K)
    ground.now += 2 * PATIENCE_SECONDS
    assert halves.overdue() is None, "nobody waits"
    waits = Owner("waits")
    assert not halves.ask(waits, 20 * K)
    overdue = halves.overdue()
    assert overdue is first
    halves.drop(overdue)
    ground.turn()
    assert (waits.went_on, halves.overdue()) == (1, None)
    assert not halves.ask(waits, 90 * K)
    assert halves.overdue() is second


def test_the_time_in_which_it_waited_does_not_count_and_a_whole_frame_never_goes():
    ground = Ground(100 * K)
    halves = ground.halves
    whole, waited = ground.owners(60 * K, 40 * K)
    halves.whole(whole)
    more = Owner("more")
    assert not halves.ask(more, 50 * K)
    assert halves.ask(waited, 90 * K), "the oldest half frame"
    ground.now += PATIENCE_SECONDS
    overdue = halves.overdue()
    assert overdue is waited
    halves.drop(overdue)
    ground.turn()
    ground.now += PATIENCE_SECONDS
    again = Owner("again")
    assert more.went_on == 1, "the oldest now"
    assert not halves.ask(again, 50 * K)
    assert halves.due() == ground.now
    assert halves.overdue() is more, "it went on that long ago"
    halves.restart()
    assert halves.due() == ground.now + PATIENCE_SECONDS
    assert halves.overdue() is None


def test_to_let_many_go_on_takes_turns(monkeypatch):
    monkeypatch.setattr(half_frames, "GRANTED_BYTES", 60 * K)
    ground = Ground(1000 * K)
    (first,) = ground.owners(1000 * K)
    many = [Owner(n) for n in range(10)]
    for each in many:
        assert not ground.halves.ask(each, 50 * K)
    ground.halves.drop(first)
    for turns in range(1, 6):
        ground.turn()
        assert [each.went_on for each in many] == [1] * 2 * turns + [0] * (10 - 2 * turns)
    assert not ground.soon


class Played(Owner):
    """One that asks again for what it waited for, as connections do."""

    state = ""
    wanted = 0

    def __init__(self, name, halves):
        super().__init__(name)
        self.halves = halves

    def go_on(self):
        assert self.halves.ask(self, self.wanted), "it was told to go on"
        self.state = "half"

    def play(self, what, size):
        """Ask for more, become whole, or go: where a connection could."""
        if what == "ask" and self.state in ("", "half"):
            self.wanted = max(size, self.wanted)
            self.state = "half" if self.halves.ask(self, self.wanted) else "waiting"
        elif what == "whole" and self.state == "half":
            self.halves.whole(self)
            self.state = "whole"
        elif what == "drop":
            self.drop()

    def drop(self):
        self.halves.drop(self)
        self.state, self.wanted = "", 0


LARGEST = 200 * K
MOST = 300 * K
STEPS = st.tuples(
    st.integers(0, 7), st.sampled_from(["ask"] * 5 + ["whole", "drop"]), st.integers(1, LARGEST)
)


@given(st.lists(STEPS, max_size=60))
def test_whatever_happens_the_bound_holds_and_somebody_goes_on(steps):
    ground = Ground(MOST)
    halves = ground.halves
    owners = [Played(n, halves) for n in range(8)]

    def those(state):
        return [one for one in owners if one.state == state]

    for number, what, size in steps:
        before = halves.held
        owners[number].play(what, size)
        ground.turn()
        assert halves.held <= max(MOST + LARGEST, before)
        assert halves.waiting == len(those("waiting"))
        assert ground.pressed[-1:] in ([], [bool(halves.waiting)])
        assert those("half") or those("whole") or not those("waiting"), "all wait for each other"
    for _ in owners:
        for one in those("half") + those("whole"):
            one.drop()
        ground.turn()
    assert (halves.waiting, halves.held) == (0, 0)
