"""Online: what may be cut off a log, and on how many disks committed entries must be.

For each node and partition this keeps a *mark*: the last log index that is known to survive. Only a
sync raises it. A truncation lowers it: the disk may still hold what was there, but the log no
longer does (append ABA, sim-S32). An installed snapshot lowers it too, and so does what is lost in
a crash.

A mark says how far, not what: the entry at an index that one leader commits may be the tail of
another, dead leader. So a disk counts for a commit only if its entry there is the same as that of
the node that commits, or is unknown.
"""

from __future__ import annotations

from ottla.sim.invariants.entries import Entries
from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants

_LEADER = "L"
_NO_LOG: dict[int, int] = {}
_NO_LOGS: dict[int, dict[int, int]] = {}


class Durability:
    """sim-I18, sim-I22, sim-I24; and what `Entries` judges, whose logs it needs."""

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._marks: dict[int, dict[int, int]] = {}
        """Marks by node, by partition."""
        self._known: dict[tuple[int, int, int], int] = {}
        """The last index that a life knows committed, by partition, node and incarnation."""
        self._entries = Entries(findings, mutants)

    def listen(self, rows: Rows) -> None:
        """Listen to disks, logs and commits."""
        rows.listen(("durable",), self._durable)
        rows.listen(("truncate",), self._truncate)
        rows.listen(("crash", "start"), self._cut)
        rows.listen(("commit",), self._commit)
        rows.listen(("snapshot",), self._snapshot)
        self._entries.listen(rows)

    def _durable(self, row: Row) -> None:
        marks = self._marks.get(row.partition)
        if marks is None:
            marks = self._marks[row.partition] = {}
        marks[row.node] = row.log_index

    def _truncate(self, row: Row) -> None:
        if row.code == _LEADER:
            self._report(
                "sim-I18",
                row.eid,
                f"node {row.node} leads partition {row.partition} and drops its own entries from "
                f"{row.log_index} on",
            )
        if row.aux is not None and row.log_index <= row.aux:
            self._report(
                "sim-I22",
                row.eid,
                f"node {row.node} drops entries of partition {row.partition} from "
                f"{row.log_index} on, entries up to {row.aux} are committed",
            )
        marks = self._marks.get(row.partition, {})
        if row.log_index <= marks.get(row.node, 0):
            marks[row.node] = row.log_index - 1

    def _cut(self, row: Row) -> None:
        marks = self._marks.setdefault(row.partition, {})
        mark = marks.get(row.node, 0)
        if row.log_index < mark:
            self._report(
                "sim-I22",
                row.eid,
                f"the log of partition {row.partition} on node {row.node} ends at {row.log_index} "
                f"after a {row.kind}, all entries up to {mark} were durable",
            )
        # What is left need not be durable: without flushes it may be in a cache.
        marks[row.node] = min(mark, row.log_index)

    def _snapshot(self, row: Row) -> None:
        """An installed snapshot begins the log anew after it. Below the mark that is legal: what
        was durable there may be the tail of a dead leader."""
        if row.code != "installed":
            return
        known = self._known.get((row.partition, row.node, row.inc), 0)
        if row.log_index < known:
            self._report(
                "sim-I22",
                row.eid,
                f"node {row.node} goes back to a snapshot of partition {row.partition} that ends "
                f"at {row.log_index}, entries up to {known} are committed",
            )
        marks = self._marks.get(row.partition, {})
        if row.log_index <= marks.get(row.node, 0):
            marks[row.node] = row.log_index - 1

    def _commit(self, row: Row) -> None:
        life = row.partition, row.node, row.inc
        if row.log_index > self._known.get(life, 0):
            self._known[life] = row.log_index
        quorum = row.quorum
        if quorum is None:
            return
        index, partition, count = row.log_index, row.partition, 0
        marks = self._marks.get(partition)
        if marks is not None:
            logs = self._entries.logs.get(partition, _NO_LOGS)
            own = logs.get(row.node, _NO_LOG).get(index)
            for node, mark in marks.items():
                if mark >= index and (
                    logs.get(node, _NO_LOG).get(index) == own or not self._entries.differ(row, node)
                ):
                    count += 1
        if count < quorum:
            self._report(
                "sim-I24",
                row.eid,
                f"node {row.node} commits {index} in partition {partition}, durable on "
                f"{count} nodes, wanted {quorum}",
            )
