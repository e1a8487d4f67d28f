"""`Slices`: how much is done in a turn of the loop, for whom, and what becomes of the rest.

Nothing here looks at a clock: units are counted, as they are in the broker. The loop is a list of
what was asked to be called soon.
"""

from collections.abc import Callable

from ottla.broker.event_loop.slices import (
    SLICE_UNITS,
    SMALL_TURN_UNITS,
    SMALL_UNITS,
    TURN_UNITS,
    Slices,
)


class FakeLoop:
    """What was asked for soon; `turn` does it."""

    def __init__(self):
        self.soon: list[Callable[[], None]] = []
        self.slices = Slices(self.soon.append)
        self.turns = 0

    def turn(self):
        """One turn of the loop."""
        self.turns += 1
        soon, self.soon[:] = self.soon[:], []
        for call in soon:
            call()

    def through(self):
        """Turns until nothing is left to do."""
        turns = 0
        while self.soon:
            self.turn()
            turns += 1
        return turns


class Job:
    """So many steps of so many units; what was done is in `done`."""

    def __init__(self, steps, units=1, owner="a", fails_at=None):
        self.owner = owner
        self.done = 0
        self.fails_at = fails_at
        self.gone = False
        self.ends = []
        self.steps = self._steps(steps, units)

    def _steps(self, steps, units):
        for _ in range(steps):
            if self.done == self.fails_at:
                raise ValueError("a step fails")
            self.done += 1
            yield units

    def wanted(self):
        """Until the test says otherwise."""
        return not self.gone

    def ended(self, error):
        """Noted."""
        self.ends.append(error)


def test_a_small_job_is_done_at_once_and_asks_the_loop_for_nothing():
    loop = FakeLoop()
    job = Job(SLICE_UNITS - 1)
    assert loop.slices.run(job)
    assert (job.done, job.ends, loop.soon) == (SLICE_UNITS - 1, [None], [])


def test_a_large_job_takes_turns():
    loop = FakeLoop()
    job = Job(10 * TURN_UNITS)
    assert not loop.slices.run(job)
    assert job.done == SLICE_UNITS
    before = job.done
    while not job.ends:
        loop.turn()
        assert job.done - before <= TURN_UNITS
        before = job.done
    assert (job.done, job.ends) == (10 * TURN_UNITS, [None])
    assert loop.through() <= 1


def test_fifty_large_jobs_make_no_turn_longer_and_all_get_on():
    """One request stalled the loop for seconds; fifty of them must not do so together either."""
    loop = FakeLoop()
    jobs = [Job(5 * TURN_UNITS) for _ in range(50)]
    for job in jobs:
        loop.slices.run(job)
    assert sum(job.done for job in jobs) <= TURN_UNITS + SLICE_UNITS + SMALL_TURN_UNITS
    while not all(job.ends for job in jobs):
        before = [job.done for job in jobs]
        loop.turn()
        done = [job.done - was for job, was in zip(jobs, before, strict=True)]
        assert sum(done) <= TURN_UNITS
        assert max(done) <= TURN_UNITS
        if min(before) > SLICE_UNITS and not any(job.ends for job in jobs):
            assert max(job.done for job in jobs) - min(job.done for job in jobs) <= 2 * SLICE_UNITS
    assert all(job.done == 5 * TURN_UNITS for job in jobs)


def test_a_newcomer_is_served_beside_large_jobs():
    loop = FakeLoop()
    for _ in range(TURN_UNITS // SLICE_UNITS):
        loop.slices.run(Job(100 * TURN_UNITS))
    assert loop.slices.left <= 0
    loop.turn()
    newcomer = Job(3)
    assert loop.slices.run(newcomer)
    assert newcomer.done == 3


def test_when_a_turn_is_used_up_small_jobs_wait_for_the_next():
    loop = FakeLoop()
    loop.slices.left = loop.slices.small_left = 0
    first, second = Job(1), Job(1)
    assert not loop.slices.run(first)
    assert not loop.slices.run(second)
    heard = []
    assert not loop.slices.take(1, lambda: heard.append(loop.slices.left))
    assert not first.done
    assert loop.through() == 1
    assert (first.ends, second.ends, heard) == ([None], [None], [TURN_UNITS])


def test_what_is_small_begins_while_others_use_up_every_turn():
    """A client of small requests waited 800 ms beside five with large ones: for a turn to have its
    request decoded in, for one to have it worked on, for one to have it answered."""
    loop = FakeLoop()
    large = [Job(100 * TURN_UNITS) for _ in range(5)]
    for job in large:
        loop.slices.run(job)
    assert loop.slices.left <= 0
    begun = 0
    while loop.slices.take(1, lambda: None) and loop.slices.run(Job(2)):
        begun += 1
        assert begun < TURN_UNITS
    assert begun >= SMALL_TURN_UNITS // 4
    assert not loop.slices.take(SMALL_UNITS + 1, lambda: None)
    loop.turn()
    loop.slices.left = 0
    assert loop.slices.take(SMALL_UNITS, lambda: None)


def beginner(loop, name, units, order):
    """Begins something of so many units, as soon as it may; notes in which turn."""

    def begin():
        if loop.slices.take(units, begin):
            order.append((name, loop.turns))

    return begin


def test_who_waits_for_the_turn_may_use_it_up_again():
    loop = FakeLoop()
    loop.slices.left = -5
    order: list[tuple[str, int]] = []
    for name in "abc":
        beginner(loop, name, TURN_UNITS, order)()
    assert loop.through() == 3
    assert order == [("a", 1), ("b", 2), ("c", 3)]


def test_what_is_more_than_a_turn_has_one_for_itself_however_many_small_ones_come():
    """Two bodies of 40 ms each must not be decoded in one turn."""
    loop = FakeLoop()
    order: list[tuple[str, int]] = []
    assert loop.slices.take(1, lambda: None)
    for name in ("large", "larger"):
        beginner(loop, name, 10 * TURN_UNITS, order)()
    assert not order
    for _ in range(5):
        loop.turn()
        assert loop.slices.take(1, lambda: None) or loop.slices.left <= 0
    assert sorted(order, key=lambda each: each[1]) == [(order[0][0], 1), (order[1][0], 2)]


def test_a_step_that_fails_ends_its_own_job_only():
    loop = FakeLoop()
    bad, good = Job(1000, fails_at=100), Job(1000)
    loop.slices.run(bad)
    loop.slices.run(good)
    loop.through()
    assert [type(error) for error in bad.ends] == [ValueError]
    assert (good.done, good.ends) == (1000, [None])


def test_what_nobody_wants_any_more_is_given_up():
    loop = FakeLoop()
    job = Job(1000)
    loop.slices.run(job)
    job.gone = True
    loop.through()
    assert (job.done, job.ends) == (SLICE_UNITS, [None])


def test_a_paused_owner_does_nothing_and_goes_on_where_it_was():
    loop = FakeLoop()
    mine, other = Job(1000, owner="a"), Job(1000, owner="b")
    loop.slices.run(mine)
    loop.slices.run(other)
    loop.slices.hold("a")
    late = Job(1, owner="a")
    assert not loop.slices.run(late)
    loop.through()
    assert (mine.done, late.done, other.done) == (SLICE_UNITS, 0, 1000)
    loop.slices.release("a")
    loop.through()
    assert (mine.done, late.done) == (1000, 1)


def test_what_a_stopped_owner_had_under_way_is_dropped():
    loop = FakeLoop()
    mine, other = Job(1000, owner="a"), Job(1000, owner="b")
    loop.slices.run(mine)
    loop.slices.run(other)
    loop.slices.drop("a")
    loop.through()
    assert (mine.done, mine.ends) == (SLICE_UNITS, [])
    assert other.done == 1000


def test_a_job_may_begin_another_one():
    loop = FakeLoop()
    inner = Job(1000)

    def steps():
        yield 1
        loop.slices.run(inner)
        yield 1

    outer = Job(0)
    outer.steps = steps()
    assert loop.slices.run(outer)
    loop.through()
    assert inner.ends == [None]
