"""Seven invariants a second time, written as literally as possible, without regard to speed.

Each is a predicate that compares all pairs of rows. When it needs a node's log, it rebuilds it from
the first row on. No code is shared with `ottla.sim.invariants`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.history.history import Event

Rows = Sequence[Event]


def _of(rows: Rows, *kinds: str) -> list[Event]:
    return [row for row in rows if row.kind in kinds]


def _num(value: int | None) -> int:
    assert value is not None
    return value


def duplicates(rows: Rows) -> bool:
    """sim-I02, of histories with one node."""
    log = [row for row in _of(rows, "final") if row.aux == 1]
    return any(
        a.off != b.off
        and (a.partition, a.pid, a.epoch) == (b.partition, b.pid, b.epoch)
        and (a.seq == b.seq or a.value == b.value)
        for a in log
        for b in log
    )


def gaps(rows: Rows) -> bool:
    """sim-I04, of histories with one node and sequences far from the wrap: whoever comes with a
    number above all before it has the one below it there already."""
    log = sorted((row for row in _of(rows, "final") if row.aux == 1), key=lambda row: _num(row.off))
    for place, row in enumerate(log):
        before = [
            _num(other.seq)
            for other in log[:place]
            if (other.partition, other.pid, other.epoch) == (row.partition, row.pid, row.epoch)
        ]
        if before and _num(row.seq) > max(before) and _num(row.seq) - 1 not in before:
            return True
    return False


def late(rows: Rows) -> bool:
    """sim-I08."""
    oks = [row for row in _of(rows, "ok") if row.acks == -1 and _num(row.off) >= 0]
    return any(
        first.eid < given.eid < second.eid
        and (first.partition == given.partition and given.op == second.op)
        and _num(first.off) >= _num(second.off)
        for given in _of(rows, "inv")
        for first in oks
        for second in oks
    )


def jumps(rows: Rows) -> bool:
    """sim-I12, where the log start never moved."""
    polls = _of(rows, "poll")
    for row in polls:
        before = [
            other
            for other in polls
            if other.eid < row.eid
            and (other.client, other.partition) == (row.client, row.partition)
        ]
        if before and _num(row.off) != _num(before[-1].off) + 1:
            return True
    return False


def incomplete_leader(rows: Rows) -> bool:
    """sim-I20."""
    for leader in _of(rows, "leader"):
        commits = [
            row
            for row in _of(rows, "commit")
            if row.eid < leader.eid
            and row.partition == leader.partition
            and row.aux == 1
            and _num(row.term) < _num(leader.term)
        ]
        if commits:
            index = max(_num(row.log_index) for row in commits)
            commit = next(row for row in commits if row.log_index == index)
            wanted = _written_last(rows, commit)
            own = log_of(rows, leader, leader.eid)
            if max(own, default=0) < index:
                return True
            held = leader.chain if index == _num(leader.log_index) - 1 else own.get(index)
            if held is not None and wanted is not None and held != wanted:
                return True
    return False


def _written_last(rows: Rows, commit: Event) -> int | None:
    """The chain of what who commits wrote there last, be a snapshot put over it since."""
    for row in reversed(rows[: commit.eid]):
        there = (row.node, row.partition, row.log_index)
        if row.kind == "append" and there == (commit.node, commit.partition, commit.log_index):
            return row.chain
    return None


def log_of(rows: Rows, owner: Event, until: int) -> dict[int, int | None]:
    """What the owner's log holds just before a row: chain by index, None inside of a snapshot."""
    log: dict[int, int | None] = {}
    for row in rows[:until]:
        if (row.node, row.partition) != (owner.node, owner.partition):
            continue
        index = row.log_index
        if row.kind == "append":
            log[_num(index)] = row.chain
        elif row.kind == "truncate":
            log = {each: chain for each, chain in log.items() if each < _num(index)}
        elif row.kind == "crash":
            log = {each: chain for each, chain in log.items() if each <= _num(index)}
        elif row.kind == "snapshot":
            log = dict.fromkeys(range(1, _num(index) + 1))
    return log


def commit_falls(rows: Rows) -> bool:
    """sim-I23."""
    commits = [row for row in _of(rows, "commit") if row.aux == 1]
    return any(
        first.eid < second.eid
        and first.partition == second.partition
        and _num(first.term) <= _num(second.term)
        and _num(first.log_index) > _num(second.log_index)
        for first in commits
        for second in commits
    )


def no_durable_quorum(rows: Rows) -> bool:
    """sim-I24."""
    for commit in _of(rows, "commit"):
        holding = {
            row.node
            for row in rows[: commit.eid]
            if row.partition == commit.partition
            and row.kind in {"durable", "truncate", "crash", "snapshot"}
            and durable_up_to(rows, row, commit.eid) >= _num(commit.log_index)
            and not _differ(rows, row, commit)
        }
        if len(holding) < _num(commit.quorum):
            return True
    return False


def _differ(rows: Rows, owner: Event, commit: Event) -> bool:
    """Whether two nodes are known to have written different entries last where one commits."""
    written: list[int | None] = [None, None]
    for row in rows[: commit.eid]:
        for place, node in enumerate((owner.node, commit.node)):
            if (row.node, row.partition) == (node, commit.partition):
                if row.kind == "append" and row.log_index == commit.log_index:
                    written[place] = row.chain
                elif row.kind == "snapshot" and _num(row.log_index) >= _num(commit.log_index):
                    written[place] = None
    return None not in written and written[0] != written[1]


def durable_up_to(rows: Rows, owner: Event, until: int) -> int:
    """Up to where the owner's log survives just before a row."""
    mark = 0
    for row in rows[:until]:
        if (row.node, row.partition) == (owner.node, owner.partition):
            index = _num(row.log_index) if row.log_index is not None else 0
            if row.kind == "durable":
                mark = index
            elif row.kind in {"truncate", "snapshot"}:
                mark = min(mark, index - 1)
            elif row.kind == "crash":
                mark = min(mark, index)
    return mark
