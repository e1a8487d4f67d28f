"""Shapes of what happens to batches: those of the scenarios about batches.

Each is a question about the rows of one run (`ottla.sim.coverage.facts`) or about one batch. The
table of `predicates` says which scenario each recognises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.sim.coverage.facts import Batch, Facts, in_order

MANY = 5
"""Open requests of one producer, as many as real clients allow."""


def any_batch(facts: Facts, holds: Callable[[Batch], bool]) -> bool:
    """Whether it holds for at least one batch."""
    return any(holds(batch) for batch in facts.batches.values())


def again_at(batch: Batch) -> Iterator[tuple[int, int]]:
    """(node, event) of each send of the batch after the first answer that it is stored."""
    stored = batch.stored_answers()
    if stored:
        for row in batch.sends:
            if row.eid > stored[0].eid:
                yield row.node, row.eid


def same_leader(batch: Batch) -> bool:
    """Sent again to the node that first answered that it is stored."""
    first = batch.stored_answers()[:1]
    return any(node == row.node for row in first for node, _ in again_at(batch))


def new_leader(batch: Batch) -> bool:
    """Two nodes answer that it is stored, and one appended it."""
    stored = batch.stored_answers()
    return len({row.node for row in stored}) > 1 and len(batch.appends) == 1


def two_leaders(batch: Batch) -> bool:
    """Leaders of two terms appended it."""
    return len({row.term for row in batch.appends}) > 1


def next_has_it(batch: Batch) -> bool:
    """Appended by one leader, acknowledged only by another that never appended it."""
    writers = {row.node for row in batch.appends}
    tellers = {row.node for row in batch.stored_answers()}
    return bool(writers) and bool(tellers) and not writers & tellers


def next_lacks_it(batch: Batch) -> bool:
    """Cut from a log, and appended again later."""
    return any(row.eid > gone.eid for gone in batch.cut for row in batch.appends)


def pipeline_fails(facts: Facts) -> bool:
    """Two batches of a producer fail at once: the outcome of the first is unknown."""
    seen: set[tuple[int, int, int]] = set()
    for row in facts.of("answer"):
        if row.code == "NOT_LEADER_OR_FOLLOWER" and row.pid is not None:
            key = (row.node, row.pid, row.t_us)
            if key in seen:
                return True
            seen.add(key)
    return False


def a_c_b(facts: Facts) -> bool:
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


def head_fails(facts: Facts) -> bool:
    """A batch is out of order because the one before it was refused for want of a leader."""
    for left, right in in_order(facts.batches.values()):
        head = [row.eid for row in left.errors if row.code == "NOT_LEADER_OR_FOLLOWER"]
        tail = [row.eid for row in right.errors if row.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"]
        if head and tail and tail[-1] > head[0]:
            return True
    return False


def in_flight(facts: Facts) -> bool:
    """`MANY` sends of one client in a row without an answer in between."""
    waiting: dict[int, int] = {}
    for row in sorted(facts.of("send", "ok", "error", "close"), key=lambda row: row.eid):
        if row.kind == "send":
            waiting[row.client] = waiting.get(row.client, 0) + 1
            if waiting[row.client] >= MANY:
                return True
        else:
            waiting[row.client] = 0
    return False


def epochs(facts: Facts, holds: Callable[[Batch], bool]) -> bool:
    """A batch of a later epoch than the producer's first one."""
    first: dict[int, int] = {}
    for batch in facts.batches.values():
        first[batch.key[1]] = min(first.get(batch.key[1], batch.key[2]), batch.key[2])
    return any_batch(facts, lambda batch: batch.key[2] > first[batch.key[1]] and holds(batch))


def older_than_window(facts: Facts) -> bool:
    """A batch is refused that ends at or before one that is stored."""
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


def flapping(facts: Facts) -> bool:
    """A batch goes to one node, to another one, and to the first again."""

    def flaps(batch: Batch) -> bool:
        nodes = [row.node for row in batch.sends]
        return any(
            nodes[i] != nodes[i + 1] and nodes[i] in nodes[i + 2 :] for i in range(len(nodes) - 2)
        )

    return any_batch(facts, flaps)
