"""Predicates: which of the named scenarios came about by chance, as a table.

Ids are those of facts/simulation.md 2.2. A predicate recognises the shape of its scenario in the
rows of a run, not its outcome: that is what invariants judge. It may miss a case; what it counts is
one. Scenarios that need a script (an id handed out twice, clients of two minds) have no predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.sim.coverage.facts import Batch, Facts, Reign, in_order

LONG_TAIL = 5
"""Entries of a dead term that make a divergent tail a long one, in a run of some hundred records.
The scenario has a thousand."""
MANY = 5
"""Requests of one producer under way at once, as many as real clients allow."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One row."""

    id: str
    says: str
    """What happens; and the setting that it takes, where the swarm does not draw it."""
    holds: Callable[[Facts], bool]


# ---- batches


def _any(facts: Facts, holds: Callable[[Batch], bool]) -> bool:
    return any(holds(batch) for batch in facts.batches.values())


def _again_at(batch: Batch) -> Iterator[tuple[int, int]]:
    """(node, event) of each send of it behind the first answer that it is stored."""
    stored = batch.stored_answers()
    if stored:
        for row in batch.sends:
            if row.eid > stored[0].eid:
                yield row.node, row.eid


def _same_leader(batch: Batch) -> bool:
    first = batch.stored_answers()[:1]
    return any(node == row.node for row in first for node, _ in _again_at(batch))


def _new_leader(batch: Batch) -> bool:
    stored = batch.stored_answers()
    return len({row.node for row in stored}) > 1 and len(batch.appends) == 1


def _two_leaders(batch: Batch) -> bool:
    return len({row.term for row in batch.appends}) > 1


def _next_has_it(batch: Batch) -> bool:
    """Appended by one leader, acknowledged by another alone, who never appended it."""
    writers = {row.node for row in batch.appends}
    tellers = {row.node for row in batch.stored_answers()}
    return bool(writers) and bool(tellers) and not writers & tellers


def _next_lacks_it(batch: Batch) -> bool:
    return any(row.eid > gone.eid for gone in batch.cut for row in batch.appends)


def _pipeline_fails(facts: Facts) -> bool:
    """Two batches of a producer fail at once: what the first rests on is unknown."""
    seen: set[tuple[int, int, int]] = set()
    for row in facts.of("answer"):
        if row.code == "NOT_LEADER_OR_FOLLOWER" and row.pid is not None:
            key = (row.node, row.pid, row.t_us)
            if key in seen:
                return True
            seen.add(key)
    return False


def _a_c_b(facts: Facts) -> bool:
    """Two batches in sequence, appended by one node in two terms, another leader between them."""
    for left, right in in_order(facts.batches.values()):
        if not left.appends or not right.appends:
            continue
        a, b = left.appends[-1], right.appends[0]
        between = [
            reign.row
            for reign in facts.reigns.get(left.key[0], ())
            if a.term < reign.row.term < b.term and reign.row.node != a.node
        ]
        if a.node == b.node and between:
            return True
    return False


def _head_fails(facts: Facts) -> bool:
    """A batch is out of order because the one before it was refused for want of a leader."""
    for left, right in in_order(facts.batches.values()):
        head = [row.eid for row in left.errors if row.code == "NOT_LEADER_OR_FOLLOWER"]
        tail = [row.eid for row in right.errors if row.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"]
        if head and tail and tail[-1] > head[0]:
            return True
    return False


def _in_flight(facts: Facts) -> bool:
    """`MANY` sends of one client in a row with nothing heard between them."""
    waiting: dict[int, int] = {}
    for row in sorted(facts.of("send", "ok", "error", "close"), key=lambda row: row.eid):
        if row.kind == "send":
            waiting[row.client] = waiting.get(row.client, 0) + 1
            if waiting[row.client] >= MANY:
                return True
        else:
            waiting[row.client] = 0
    return False


def _epochs(facts: Facts, holds: Callable[[Batch], bool]) -> bool:
    """A batch of a later epoch than the producer's first one."""
    first: dict[int, int] = {}
    for batch in facts.batches.values():
        first[batch.key[1]] = min(first.get(batch.key[1], batch.key[2]), batch.key[2])
    return _any(facts, lambda batch: batch.key[2] > first[batch.key[1]] and holds(batch))


def _older_than_window(facts: Facts) -> bool:
    ends: dict[tuple[int, int, int], int] = {}
    for row in facts.of("answer"):
        if row.pid is None or row.pid < 0:
            continue
        key = (row.partition, row.pid, row.epoch)
        if row.code == "NONE":
            ends[key] = max(ends.get(key, -1), row.seq_last)
        elif row.code == "OUT_OF_ORDER_SEQUENCE_NUMBER" and row.seq_last <= ends.get(key, -1):
            return True
    return False


# ---- leadership


def _reign(facts: Facts, holds: Callable[[Reign], bool]) -> bool:
    return any(holds(reign) for reigns in facts.reigns.values() for reign in reigns)


def _reelected(facts: Facts) -> bool:
    """The same life of a node leads again after somebody else did."""
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
    """A node that is up hears nobody, and another one leads."""
    elections = [row.eid for row in facts.of("leader") if row.partition >= 0]
    return any(
        elections
        and elections[0] < row.eid
        and facts.up(row.node, row.eid)
        and not facts.led(row.node, row.eid)
        for row in facts.faults("hears nobody")
    )


def _behind(facts: Facts) -> bool:
    """Whoever comes to lead knows a lower high watermark than another node has told."""
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


def _flapping(facts: Facts) -> bool:
    """A batch goes to one node, to another one, and to the first again."""

    def flaps(batch: Batch) -> bool:
        nodes = [row.node for row in batch.sends]
        return any(
            nodes[i] != nodes[i + 1] and nodes[i] in nodes[i + 2 :] for i in range(len(nodes) - 2)
        )

    return _any(facts, flaps)


def _all_time_out(facts: Facts) -> bool:
    """Every producer hears of a timeout within a second."""
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
    Predicate("sim-S01", "five batches of a producer under way at once", _in_flight),
    Predicate(
        "sim-S02",
        "stored, not heard, sent to the same leader again",
        lambda facts: _any(facts, _same_leader),
    ),
    Predicate(
        "sim-S03",
        "stored, not heard, sent to the next leader, who finds it",
        lambda facts: _any(facts, _new_leader),
    ),
    Predicate(
        "sim-S04", "appended by leaders of two terms", lambda facts: _any(facts, _two_leaders)
    ),
    Predicate(
        "sim-S05",
        "appended by one leader, acknowledged by the next alone",
        lambda facts: _any(facts, _next_has_it),
    ),
    Predicate(
        "sim-S06", "appended, cut, appended again", lambda facts: _any(facts, _next_lacks_it)
    ),
    Predicate("sim-S07", "A C B: leadership away and back between two batches in sequence", _a_c_b),
    Predicate("sim-S08", "a paused leader goes on after another was elected", _paused_leader),
    Predicate(
        "sim-S09", "two batches of a producer fail at once: leadership is lost", _pipeline_fails
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
    Predicate("sim-S14", "out of order, because the one before found no leader", _head_fails),
    Predicate(
        "sim-S15",
        "a producer goes on in a new epoch",
        lambda facts: _epochs(facts, lambda batch: bool(batch.appends)),
    ),
    Predicate(
        "sim-S17",
        "the first batch of a new epoch is cut again",
        lambda facts: _epochs(facts, lambda batch: bool(batch.cut)),
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
    Predicate("sim-S25", "a copy older than the window comes", _older_than_window),
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
    Predicate("sim-S60", "a batch goes to one node, to another, and to the first again", _flapping),
)
"""Every predicate, in the order of the catalogue."""


def _tails(facts: Facts) -> Iterator[list[int]]:
    """Entries that each truncation cut."""
    ends: dict[tuple[int, int], int] = {}
    for row in sorted(facts.of("append", "truncate", "crash"), key=lambda row: row.eid):
        key = (row.node, row.partition)
        if row.kind == "truncate":
            yield list(range(row.log_index, ends.get(key, 0) + 1))
            ends[key] = row.log_index - 1
        else:
            ends[key] = row.log_index


def _settled(facts: Facts) -> int:
    """When everything is healed; the end, if it never was."""
    ends = [row.eid for row in facts.of("phase") if row.code == "settle"]
    return ends[0] if ends else len(facts.rows)
