"""How much work judges do over a history: counted and not timed, so the same on every machine.

A judge is linear if a history that is four times as long, of a run that goes on for four times as
long with as many faults in a second, takes it no more than four times the work: instructions of
bytecode, as the interpreter counts them. What C code does within one of them is not seen. No
invariant is broken in these histories, so it is going through them that is looked at, not telling
what is wrong.

A run has few leaders, and few batches behind a gap: what is done for each of them is lost in what
is done for every entry. So the same is asked of histories that are full of both, and of others full
of what a run has little of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.history.history import Event
from ottla.sim.invariants.findings import Findings
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.invariant import Place, Watcher
from ottla.sim.invariants.judge import Retold
from ottla.sim.invariants.losses import losses
from ottla.sim.invariants.mutants import NO_CHECKER_MUTANTS
from ottla.sim.invariants.numbers import acked_share, longest_gap
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.invariants.resent import copies
from ottla.sim.run import Verdict, run_choices
from ottla.sim.settings.settings import RunConfig
from sim_histories import read
from work import instructions_of

SHORT = RunConfig(load_ms=3_000, records=100, fault_every_ms=400)
LONG = SHORT.with_(load_ms=12_000, records=400)
TIMES = 4.5
"""The work over the long history may be so many times that over the short one: what sorts, or looks
things up in halves, is a little above 4, and what goes through all pairs would be at 9 to 16."""
BESIDE = 500
"""Instructions of something else that may run meanwhile, such as a finalizer: the smallest judges
take less than that."""

IN_HALVES = 5.0
"""Where something is looked up for every row."""

Told = tuple[Sequence[Event], Index]
Judge = Callable[[Told], object]


def watched_by(kind: type[Watcher]) -> Judge:
    def judge(told: Told) -> None:
        rows = Retold()
        kind(Findings(), NO_CHECKER_MUTANTS).listen(rows)
        rows.tell(told[0])

    return judge


def checked_by(check: Callable[[Index], object]) -> Judge:
    def judge(told: Told) -> None:
        found = check(told[1])
        if isinstance(found, Iterator):
            assert list(found) == []

    return judge


def measured_by(measure: Callable[[Index], object]) -> Judge:
    def judge(told: Told) -> None:
        found = measure(told[1])
        if isinstance(found, Iterator):
            deque(found, maxlen=0)

    return judge


def judges() -> Iterator[tuple[str, Judge]]:
    """All that there are, each once: of what is judged online several have one."""
    for row in INVARIANTS:
        if row.place is Place.ONLINE and isinstance(row.judge, type):
            yield row.judge.__name__, watched_by(row.judge)
        elif row.place is Place.END and row.judge and not isinstance(row.judge, type):
            yield row.id, checked_by(row.judge)
    yield "Index", lambda told: Index(told[0])
    for measure in (losses, copies, acked_share, longest_gap):
        yield measure.__name__, measured_by(measure)


JUDGES = dict(judges())


def is_linear(judge: Judge, short: Told, long: Told, times: float = TIMES) -> bool:
    work = instructions_of(lambda: judge(short))
    return instructions_of(lambda: judge(long)) <= times * work + BESIDE


def told_of(config: RunConfig) -> Told:
    outcome = run_choices(Drawn(14), config, swarm=False)
    assert outcome.verdict is Verdict.OK, outcome.reason
    return outcome.rows, Index(outcome.rows)


@pytest.fixture(scope="module")
def both() -> tuple[Told, Told]:
    short, long = told_of(SHORT), told_of(LONG)
    # The sequential client takes about as many steps in both.
    assert 2 * len(short[0]) < len(long[0]) < TIMES * len(short[0])
    return short, long


TURN = """
leader node=1 term={turn} log_index={turn} chain={before} aux=0
set p=0 pid=7 epoch=0 seq={before} seq_last={before}
append node=1,2 term={turn} log_index={turn} off={before} chain={turn}
apply node=1,2 term={turn} log_index={turn} off={before} chain={turn}
set p=0
durable node=1,2 log_index={turn} off={turn}
commit node=1 term={turn} log_index={turn} hw={turn} quorum=2 aux=1
decide node=1 term={turn} log_index={turn} pid=7 epoch=0 seq=1000000 code=gap
answer node=1 inc=1 client=1 pid=7 epoch=0 seq=1000000 code=OUT_OF_ORDER_SEQUENCE_NUMBER
stepdown node=1 term={turn} code=F
"""
"""A term: its leader stores a batch, and refuses another of the same producer for want of some."""


def turns(count: int) -> Told:
    text = "".join(TURN.format(turn=turn, before=turn - 1) for turn in range(1, count + 1))
    (history,) = read("== many leaders, each with its refusal\n" + text)
    return history.events, Index(history.events)


@pytest.fixture(scope="module")
def crowded() -> tuple[Told, Told]:
    return turns(100), turns(400)


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_is_linear(both, name):
    assert is_linear(JUDGES[name], *both)


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_is_linear_in_leaders_and_refusals(crowded, name):
    """For every leader all earlier terms were looked through, and for every refusal for want of a
    batch all that had been applied of its producer."""
    assert is_linear(JUDGES[name], *crowded)


def snapshots(count: int) -> Iterator[str]:
    """Each entry is replaced by a snapshot."""
    for index in range(1, count + 1):
        yield f"append node=1,2 log_index={index}"
        yield f"snapshot node=2 log_index={index} off=0"


def late_commits(count: int) -> Iterator[str]:
    """A leader of an older term learns late of a commit, over and over, after many terms."""
    yield f"commit node=1 term=1..{count} log_index=1..{count}"
    yield from count * [f"commit node=2 term={count - 1} log_index={count}"]


def forgotten(count: int) -> Iterator[str]:
    """Each record is stored again by another producer, behind a place where the first is forgotten,
    and where it is forgotten a second time."""
    yield f"inv op=0..{count - 1}"
    for number in range(count):
        first = f"off={2 * number} pid=7 seq={number}"
        yield f"apply log_index={2 * number + 2} {first} epoch=0 seq_last={number}"
        yield f"expire node=1,2 pid=7 log_index={2 * number + 3} off={2 * number + 1}"
        yield f"final {first} value={number}"
        yield f"final off={2 * number + 1} pid={8 + number} seq=0 value={number}"


def lost(count: int) -> Iterator[str]:
    """Records are acknowledged late, by a node that many cuts spare before one takes them all."""
    ops = f"0..{count - 1}"
    yield f"inv op={ops} acks=1"
    yield f"append node=1 log_index=1..{count} off={ops}"
    yield f"answer node=1 client=1 acks=1 off={count} code=NONE"
    yield f"ok op={ops} acks=1"
    yield from count * [f"truncate node=1 log_index={count + 2} off={count + 1}"]
    yield "truncate node=1 log_index=1 off=0"


SHAPES = {
    (snapshots, "Durability"): 100,
    (late_commits, "Leadership"): 100,
    (forgotten, "copies"): 100,
    (lost, "losses"): 1_000,
}
"""Judges that went through all pairs of something in such a history, and how long is short."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "name"), SHAPES, ids=lambda each: each if isinstance(each, str) else each.__name__
)
def test_a_judge_is_linear_in_what_is_rare(shape, name):
    short, long = (told_in(shape, times * SHAPES[shape, name]) for times in (1, 4))
    assert is_linear(JUDGES[name], short, long, times=IN_HALVES)


def told_in(shape: Callable[[int], Iterator[str]], count: int) -> Told:
    (history,) = read("\n".join(["== full of it", *shape(count)]))
    return history.events, Index(history.events)


def all_pairs(told: Told) -> None:
    """What is the same at two places: by looking at each place again for every place."""
    for one in told[1].rows["ok"]:
        for other in told[1].rows["ok"]:
            if one.off == other.off:
                continue


def any_before(told: Told) -> list[bool]:
    acked = told[1].acked
    return [any(other is row for other, _ in acked[:at]) for at, (row, _) in enumerate(acked)]


def listed_anew(told: Told) -> list[int]:
    return [len([row.eid for row in told[1].rows["ok"]]) for _ in told[1].rows["ok"]]


@pytest.mark.slow
@pytest.mark.parametrize("judge", [all_pairs, any_before, listed_anew])
def test_a_judge_that_goes_through_all_pairs_would_be_found(both, judge):
    assert not is_linear(judge, *both)


def test_work_is_counted_alike_each_time(both):
    first, second = (instructions_of(lambda: JUDGES["Durability"](both[0])) for _ in range(2))
    assert first == second > len(both[0][0])
