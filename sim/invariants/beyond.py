"""Runs beyond the fault budget: does a fault that no Raft survives explain what was lost?

Raft assumes that a disk keeps what it reported as synced. A script may break that; a *beyond* row
says so. A loss is then no bug of the broker, if it follows from that fault and from nothing else.
So the history is used to trace each loss. For every partition this keeps up to where each node's
disk holds the log, and what it *forgot*: what had been durable and was gone after a restart.

A partition *breaks* when something committed is on fewer disks than a quorum, and would be on a
quorum if no disk had forgotten it. From then on a leader without it may be elected. A lost record
is explained if it was in such a range; any other lost record is a failure as always. So is what no
lost entry explains (a duplicate, a gap in offsets), and what had happened before the break, because
a cause comes first.

A break also explains that a run cannot go on. So does a disk that forgot what a quorum still has,
if it forgot below the log end of a leader that goes on leading: that leader knows what the node had
acknowledged and never sends it again. A node that forgot its vote and votes again in the same term
breaks its partition from its present log end on.

A disk that could forget and never did explains nothing. What is gone from a log shows in its end
after a restart. A lost term, vote or truncation does not show there. It may be lost if it was not
on the disk when the disk began to lie and a loss of power took appends, or if it was written before
an old copy was restored.

A producer id with two owners explains what happens to records sent under it: either it was given
out twice on purpose, or the controller's partition broke, which remembers the ids given out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter

from ottla.sim.history.history import CONTROLLER_PARTITION, Event
from ottla.sim.invariants import acks
from ottla.sim.invariants.disks import NEVER, Break, Copies, Disk, Forgot
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import SEQUENCES, Index

SAME_ID = "same id"
LOST_SYNC = "a sync that kept nothing"
OLD_COPY = "an old copy of it"
_AT_THE_END = (27, 28, 31, 36, 37, *range(39, 43), 46, 47, 48)
_LOGS = (0, 4, 6, 7, 8, 10, 11, 12, *range(14, 18), *range(19, 26), *_AT_THE_END)
_OF_DISKS = frozenset(f"sim-I{number:02d}" for number in _LOGS)
"""What may follow when something committed is lost; losses themselves are traced by record."""
_OF_ONE_DISK = frozenset({"sim-I16", "sim-I17", "sim-I21", "sim-I22", "sim-I24", "sim-I25"})
"""What may follow from one disk that forgot: errors of its node, or of a leader that relies on what
the node acknowledged."""
_OF_IDS = frozenset(f"sim-I{number:02d}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 14, 34, 36))
_OF_WHAT_IS_LEFT = frozenset({"sim-I06", "sim-I11", "sim-I14", "sim-I27"})
"""Invariants whose row was right at its time: it is compared with later rows, which are wrong."""
_BUG = "sim-I00"
_NOT_LIVE = "sim-I31"
_OF_THE_RUN = frozenset({_BUG, _NOT_LIVE})
"""Invariants whose row is the last one of the run, whatever it is about."""
_SAID = 1
"""Value of `aux` of a vote that leaves the node."""
_NO_END = 1 << 62


def weighed(rows: Sequence[Event], found: Sequence[Anomaly]) -> tuple[list[str], list[Anomaly]]:
    """Separates what faults beyond the budget explain (returned as sentences) from what they do not
    (returned as anomalies).

    There is a sentence for each acknowledged record that they took, with the disks that explain it;
    if they took none, one sentence for the other anomalies that they explain.
    """
    walk, index = _Walk(rows), Index(rows)
    told: list[str] = []
    left = [each for each in found if each.invariant != "sim-I01" and not walk.explains(each)]
    lost = any(each.invariant == "sim-I01" for each in found)
    for anomaly in acks.lost(index) if lost else ():
        reason = walk.reason(rows[anomaly.eid])
        if reason is None:
            left.append(anomaly)
        else:
            told.append(reason)
    if not told and len(left) < len(found):
        excused = sorted({each.invariant for each in found} - {each.invariant for each in left})
        end = "the run ended there" if _BUG in excused else "nothing acknowledged is lost"
        told = [f"{', '.join(excused)} did not hold; {end}"]
    return told, sorted(left, key=lambda anomaly: anomaly.eid)


class _Walk:
    """One pass over the rows that say what disks hold."""

    def __init__(self, rows: Sequence[Event]):
        self._rows = rows
        self._partitions: dict[int, Copies] = {}
        self._appends: dict[int, list[Row]] = {}
        """*append* rows by partition."""
        self._faults: dict[int, str] = {}
        """The latest fault of each node's disk."""
        self._lies: dict[int, int] = {}
        """By node, the row from which on its disk lies."""
        self._copies: dict[int, int] = {}
        """By node, the row in which an old copy of its disk was last restored."""
        self._ids: dict[int, int] = {}
        """By producer id, the row from which on it has two owners."""
        self._senders: dict[int, int] = {}
        """The first client that sent under each producer id."""
        handlers: dict[str, Callable[[Row], None]] = {
            "beyond": self._beyond,
            "append": self._append,
            "durable": self._durable,
            "truncate": self._truncate,
            "crash": self._restarted,
            "start": self._restarted,
            "commit": self._commit,
            "leader": self._led,
            "term": self._wrote,
            "vote": self._vote,
            "snapshot": self._snapshot,
            "send": self._sent,
        }
        for row in rows:
            handler = handlers.get(row.kind)
            if handler is not None:
                handler(row)

    def _of(self, row: Row) -> Copies:
        return self._partitions.setdefault(row.partition, Copies())

    def _beyond(self, row: Row) -> None:
        if row.code == SAME_ID:
            self._ids.setdefault(row.pid, row.eid)
        else:
            self._faults[row.node] = row.code
            if row.code == LOST_SYNC:
                self._lies.setdefault(row.node, row.eid)
            elif row.code == OLD_COPY:
                self._copies[row.node] = row.eid

    def _append(self, row: Row) -> None:
        self._appends.setdefault(row.partition, []).append(row)
        disk = self._of(row).disk(row.node)
        if row.log_index <= disk.mark and row.node in self._faults:
            if disk.at(row.log_index) == row.chain:
                return  # a restart gave it back, unchanged
            self._forgets(row, disk, row.log_index)  # an old copy had another entry there
        disk.append(row.log_index, row.chain)

    def _durable(self, row: Row) -> None:
        disk = self._of(row).disk(row.node)
        disk.sync(row.log_index)
        if row.node not in self._lies:
            disk.kept = disk.wrote

    def _forgets(self, row: Row, disk: Disk, first: int) -> None:
        how = self._faults[row.node]
        for index in range(first, disk.mark + 1):
            disk.forgot[index] = Forgot(disk.at(index), how)
        disk.since = row.eid
        disk.first = min(disk.first, row.eid)
        disk.cut(first)
        self._of(row).look(row.eid)

    def _wrote(self, row: Row) -> None:
        self._of(row).disk(row.node).wrote = row.eid

    def _snapshot(self, row: Row) -> None:
        self._wrote(row)
        if row.code == "installed":
            self._of(row).disk(row.node).install(row.log_index)

    def _truncate(self, row: Row) -> None:
        self._wrote(row)
        self._of(row).disk(row.node).cut(row.log_index)

    def _restarted(self, row: Row) -> None:
        disk = self._of(row).disk(row.node)
        disk.installed = 0
        if row.log_index < disk.mark and row.node in self._faults:
            self._forgets(row, disk, row.log_index + 1)
        if row.kind == "start":
            gone = -1 < disk.wrote < self._copies.get(row.node, -1)
        else:
            gone = bool(row.aux) and row.node in self._lies and disk.kept < disk.wrote
        if gone:
            disk.first = min(disk.first, row.eid)
        disk.cut(row.log_index + 1)

    def _commit(self, row: Row) -> None:
        known = self._of(row)
        known.quorum = row.quorum
        disk, fresh = known.disk(row.node), row.log_index > known.commit
        for index in range(known.commit + 1, row.log_index + 1):
            known.committed[index] = disk.at(index)
        known.commit = max(known.commit, row.log_index)
        if fresh and self._faults:
            known.look(row.eid)

    def _led(self, row: Row) -> None:
        self._of(row).led = row.eid

    def _vote(self, row: Row) -> None:
        known = self._of(row)
        disk = known.disk(row.node)
        if row.aux != _SAID:
            disk.wrote = row.eid
        elif row.node not in self._lies:
            disk.kept = disk.wrote
        before = known.votes.setdefault((row.node, row.term), row.cand)
        if before != row.cand and disk.first < row.eid:
            low = min(disk.forgot, default=1)
            how = {row.node: self._faults[row.node]}
            known.breaks.append(Break(row.eid, low, _NO_END, frozenset(), how))

    def _sent(self, row: Row) -> None:
        given_again = self._senders.setdefault(row.pid, row.client) != row.client
        if given_again and row.pid is not None and self._broke(CONTROLLER_PARTITION, row.eid):
            self._ids.setdefault(row.pid, row.eid)

    def _broke(self, partition: int, until: int) -> bool:
        """Whether a partition had broken by that row."""
        breaks = self._partitions.get(partition, Copies()).breaks
        return bool(breaks) and breaks[0].eid <= until

    # ---- what it explains

    def explains(self, anomaly: Anomaly) -> bool:
        """Whether an anomaly, other than a lost record, follows from a fault beyond the budget."""
        row: Row = self._rows[anomaly.eid]
        until = _NO_END if anomaly.invariant in _OF_WHAT_IS_LEFT else anomaly.eid
        if anomaly.invariant in _OF_IDS and self._is_two(row.pid, until):
            return True
        if anomaly.invariant in _OF_ONE_DISK and self._forgot(row, until):
            return True
        if anomaly.invariant not in _OF_DISKS:
            return False
        if anomaly.invariant == _NOT_LIVE and any(map(_relied, self._partitions.values())):
            return True
        if anomaly.invariant in _OF_THE_RUN or row.partition is None:
            return any(self._broke(each, until) for each in self._partitions)
        return self._broke(row.partition, until)

    def _forgot(self, row: Row, until: int) -> bool:
        """Whether a node's disk had forgotten anything of the partition before row `until`: the
        disk of the row's node, or for a commit any disk that held what is committed."""
        disks = self._partitions.get(row.partition, Copies()).disks
        if row.kind == "commit":
            return any(
                row.log_index in each.forgot and each.first <= until for each in disks.values()
            )
        return disks.get(row.node, Disk()).first <= until

    def _is_two(self, pid: int, until: int) -> bool:
        """Whether an id had two owners by that row."""
        return self._ids.get(pid, NEVER) <= until

    def reason(self, ok: Row) -> str | None:
        """What took an acknowledged record, in words; None: no fault beyond the budget."""
        what = f"offset {ok.off} of partition {ok.partition} is lost"
        if self._is_two(ok.pid, ok.eid):
            return f"{what}: producer id {ok.pid} is two producers'"
        entry = _entry(self._appends.get(ok.partition, ()), ok) or 0
        known = self._partitions.get(ok.partition, Copies())
        for broken in known.breaks:
            if broken.low <= entry <= broken.high:
                return f"{what}: {'; '.join(self._clauses(ok.partition, entry, broken))}"
        return None

    def _clauses(self, partition: int, entry: int, broken: Break) -> Iterator[str]:
        for node in sorted(self._partitions[partition].disks):
            if node in broken.forgetters:
                yield f"node {node} had it on its disk and forgot it ({broken.forgetters[node]})"
            elif node in broken.holders:
                cut = self._cut(partition, node, entry, broken.eid)
                yield f"node {node} had it{', and cut it off for a leader without it' * cut}"
            else:
                yield f"node {node} did not have it"

    def _cut(self, partition: int, node: int, entry: int, since: int) -> bool:
        """Whether a node cut off an entry because another leader had another one there."""
        rows: Sequence[Row] = self._rows[since:]
        return any(
            row.kind == "truncate"
            and (row.partition, row.node) == (partition, node)
            and row.log_index <= entry
            for row in rows
        )


def _relied(partition: Copies) -> bool:
    """Whether its last leader was leading when a node forgot what it had acknowledged."""
    return any(partition.led < disk.since < NEVER for disk in partition.disks.values())


def _entry(appends: Sequence[Row], ok: Row) -> int | None:
    """The log index of the entry with an acknowledged record, from the rows of appends to its
    partition. If only its offset is known, that is the last entry that begins there or before, on
    the node that acknowledged it."""
    before = bisect_left(appends, ok.eid, key=attrgetter("eid"))
    for row in islice(reversed(appends), len(appends) - before, None):
        if ok.seq is None:
            if row.off is not None and row.off <= ok.off and row.node == ok.node:
                return int(row.log_index)
        elif row.seq is not None and (row.pid, row.epoch) == (ok.pid, ok.epoch):
            place = (ok.seq - row.seq) % SEQUENCES
            within = place <= (row.seq_last - row.seq) % SEQUENCES
            if within and (ok.off < 0 or row.off == ok.off - place):
                return int(row.log_index)
    return None
