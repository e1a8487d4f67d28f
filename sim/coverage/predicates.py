"""Predicates: which of the named scenarios came about by chance, as a table.

Ids are those of docs/reference/scenarios.md. A predicate recognises the shape of its scenario in
the rows of a run, not its outcome: invariants judge that. It may miss a case, but every case that
it counts is one. Scenarios that need a script (an id handed out twice, clients that disagree) have
no predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.sim.coverage.batch_shapes import (
    a_c_b,
    any_batch,
    epochs,
    flapping,
    head_fails,
    in_flight,
    new_leader,
    next_has_it,
    next_lacks_it,
    older_than_window,
    pipeline_fails,
    same_leader,
    two_leaders,
)
from ottla.sim.coverage.facts import Facts, Reign

LONG_TAIL = 5
"""How many entries of a dead term make a long divergent tail, in a run of some hundred records. The
scenario has a thousand."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One row of the table."""

    id: str
    says: str
    """What happens, and the setting that it needs if the swarm does not draw it."""
    holds: Callable[[Facts], bool]


def _reign(facts: Facts, holds: Callable[[Reign], bool]) -> bool:
    return any(holds(reign) for reigns in facts.reigns.values() for reign in reigns)


def _reelected(facts: Facts) -> bool:
    """The same life of a node leads again after another node did."""
    for reigns in facts.reigns.values():
        led: set[tuple[int, int]] = set()
        for reign in reigns:
            before = reign.before
            who = (reign.row.node, reign.row.inc)
            if who in led and before is not None and before.node != reign.row.node:
                return True
            led.add(who)
    return False


def _paused_leader(facts: Facts) -> bool:
    """A paused leader goes on after another one was elected."""
    paused: dict[int, int] = {}
    for row in sorted(facts.of("pause", "resume"), key=lambda row: row.eid):
        if row.kind == "pause" and facts.led(row.node, row.eid):
            paused[row.node] = row.eid
        elif row.kind == "resume" and row.node in paused:
            since = paused.pop(row.node)
            for reigns in facts.reigns.values():
                if any(
                    r.before is not None
                    and r.before.node == row.node
                    and since < r.row.eid < row.eid
                    for r in reigns
                ):
                    return True
    return False


def _fault_on_leader(facts: Facts, words: str) -> bool:
    return any(facts.led(row.node, row.eid) for row in facts.faults(words) if row.node)


def _deaf_follower(facts: Facts) -> bool:
    """A node that is up hears no other node, and another node leads."""
    elections = [row.eid for row in facts.of("leader") if row.partition >= 0]
    return any(
        elections
        and elections[0] < row.eid
        and facts.up(row.node, row.eid)
        and not facts.led(row.node, row.eid)
        for row in facts.faults("hears nobody")
    )


def _behind(facts: Facts) -> bool:
    """A new leader knows a lower high watermark than another node has told."""
    most: dict[int, int] = {}
    own: dict[tuple[int, int], int] = {}
    for row in sorted(facts.of("leader", "commit"), key=lambda row: row.eid):
        if row.partition < 0:
            continue
        key = (row.partition, row.node)
        if row.kind == "commit":
            own[key] = row.hw or 0
            most[row.partition] = max(most.get(row.partition, 0), own[key])
        elif own.get(key, 0) < most.get(row.partition, 0):
            return True
    return False


def _all_time_out(facts: Facts) -> bool:
    """Every producer gets a timeout within a second."""
    producers = {row.client for row in facts.of("send")}
    late = [row for row in facts.of("close") if "timeout" in row.code]
    for row in late:
        near = {each.client for each in late if 0 <= each.t_us - row.t_us < 1_000_000}
        if len(producers) > 1 and producers <= near:
            return True
    return False


def _crash_where(facts: Facts, words: str) -> bool:
    return any(words in row.code for row in facts.of("crash"))


PREDICATES: tuple[Predicate, ...] = (
    Predicate("sim-S01", "five batches of a producer under way at once", in_flight),
    Predicate(
        "sim-S02",
        "stored, not heard, sent to the same leader again",
        lambda facts: any_batch(facts, same_leader),
    ),
    Predicate(
        "sim-S03",
        "stored, not heard, sent to the next leader, who finds it",
        lambda facts: any_batch(facts, new_leader),
    ),
    Predicate(
        "sim-S04", "appended by leaders of two terms", lambda facts: any_batch(facts, two_leaders)
    ),
    Predicate(
        "sim-S05",
        "appended by one leader, acknowledged by the next alone",
        lambda facts: any_batch(facts, next_has_it),
    ),
    Predicate(
        "sim-S06", "appended, cut, appended again", lambda facts: any_batch(facts, next_lacks_it)
    ),
    Predicate("sim-S07", "A C B: leadership away and back between two batches in sequence", a_c_b),
    Predicate("sim-S08", "a paused leader goes on after another was elected", _paused_leader),
    Predicate(
        "sim-S09", "two batches of a producer fail at once: leadership is lost", pipeline_fails
    ),
    Predicate("sim-S10", "the same life of a node leads again", _reelected),
    Predicate(
        "sim-S12",
        "a new leader has entries of old terms that nobody knows committed",
        lambda facts: _reign(facts, lambda reign: reign.open_before),
    ),
    Predicate(
        "sim-S13", "a gap is refused", lambda facts: "OUT_OF_ORDER_SEQUENCE_NUMBER" in facts.codes
    ),
    Predicate("sim-S14", "out of order, because the one before found no leader", head_fails),
    Predicate(
        "sim-S15",
        "a producer goes on in a new epoch",
        lambda facts: epochs(facts, lambda batch: bool(batch.appends)),
    ),
    Predicate(
        "sim-S17",
        "the first batch of a new epoch is cut again",
        lambda facts: epochs(facts, lambda batch: bool(batch.cut)),
    ),
    Predicate(
        "sim-S19",
        "a producer is forgotten (with --set producer_expiry_ms=2000)",
        lambda facts: any(facts.of("expire")),
    ),
    Predicate(
        "sim-S20",
        "the producer table is full (with --set max_producers=1)",
        lambda facts: "THROTTLING_QUOTA_EXCEEDED" in facts.codes,
    ),
    Predicate("sim-S21", "the log start moves", lambda facts: any(facts.of("snapshot"))),
    Predicate(
        "sim-S23",
        "sequences wrap (with --set first_sequence=2147483645)",
        lambda facts: any(
            row.seq_last < row.seq
            for row in facts.of("send")
            if row.seq_last is not None and row.seq is not None
        ),
    ),
    Predicate(
        "sim-S24", "an old epoch is refused", lambda facts: "INVALID_PRODUCER_EPOCH" in facts.codes
    ),
    Predicate("sim-S25", "a copy older than the window comes", older_than_window),
    Predicate(
        "sim-S30",
        "a node dies between a vote's write and its answer",
        lambda facts: _crash_where(facts, "vote"),
    ),
    Predicate(
        "sim-S33",
        "a crash takes what was not synced",
        lambda facts: any(row.aux for row in facts.of("crash")),
    ),
    Predicate(
        "sim-S34", "a sync fails, and the node stops", lambda facts: _crash_where(facts, "disk")
    ),
    Predicate("sim-S36", "a leader is isolated", lambda facts: _fault_on_leader(facts, "isolated")),
    Predicate(
        "sim-S37", "a leader hears nobody", lambda facts: _fault_on_leader(facts, "hears nobody")
    ),
    Predicate("sim-S38", "a follower sends and does not receive", _deaf_follower),
    Predicate(
        "sim-S39", "two halves meet in one node", lambda facts: bool(facts.faults("meet in"))
    ),
    Predicate("sim-S41", "a clock jumps", lambda facts: bool(facts.faults("clock jumps"))),
    Predicate("sim-S42", "leadership is handed over", lambda facts: bool(facts.faults("hands "))),
    Predicate(
        "sim-S46",
        "a follower gets a snapshot",
        lambda facts: any(row.code == "installed" for row in facts.of("snapshot")),
    ),
    Predicate("sim-S49", "a new leader's high watermark is behind", _behind),
    Predicate("sim-S51", "all producers time out together", _all_time_out),
    Predicate(
        "sim-S52",
        "leaders die at their first append",
        lambda facts: _crash_where(facts, "first append"),
    ),
    Predicate("sim-S53", "all nodes are down at once", lambda facts: facts.blackout),
    Predicate(
        "sim-S54",
        "a long tail of a dead term is cut",
        lambda facts: any(len(batches) >= LONG_TAIL for batches in _tails(facts)),
    ),
    Predicate(
        "sim-S57",
        "acks below all (with --set acks=1)",
        lambda facts: any(row.acks in {0, 1} for row in facts.of("inv")),
    ),
    Predicate(
        "sim-S58",
        "a minority stays away while the rest is healed",
        lambda facts: (
            len(
                {
                    row.node
                    for row in facts.of("phase")
                    if row.code == "heal" and row.eid < _settled(facts)
                }
            )
            < len(facts.nodes)
        ),
    ),
    Predicate("sim-S59", "a record's outcome stays unknown", lambda facts: any(facts.of("info"))),
    Predicate("sim-S60", "a batch goes to one node, to another, and to the first again", flapping),
)
"""Every predicate, in the order of the catalogue."""


def _tails(facts: Facts) -> Iterator[list[int]]:
    """The entries that each truncation cut."""
    ends: dict[tuple[int, int], int] = {}
    for row in sorted(facts.of("append", "truncate", "crash"), key=lambda row: row.eid):
        key = (row.node, row.partition)
        if row.kind == "truncate":
            yield list(range(row.log_index, ends.get(key, 0) + 1))
            ends[key] = row.log_index - 1
        else:
            ends[key] = row.log_index


def _settled(facts: Facts) -> int:
    """The event after which everything is healed; the end, if it never was."""
    ends = [row.eid for row in facts.of("phase") if row.code == "settle"]
    return ends[0] if ends else len(facts.rows)
