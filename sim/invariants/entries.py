"""Online: one log, on all nodes.

`chain` is a hash over a whole prefix, so two logs agree up to an index if their chains there are
equal. Log Matching, State Machine Safety and Leader Completeness are therefore comparisons of two
numbers.

For Leader Completeness it remembers what each node wrote at each index, including entries that were
cut off. Those do no harm: every index up to the end of a new leader's log was written again after
the cut, unless a snapshot replaced it (`_replaced`). A crash may undo the snapshot; then the
entries that are back are written once more.
"""

from __future__ import annotations

from bisect import bisect_right

from ottla.sim.invariants.commits import Commit, Commits
from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants


class _Replaced:
    """Which entries of one node were replaced by snapshots that it installed."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        """Ends of the snapshots that no later one reaches, as negative numbers, ascending."""
        self._installed: list[int] = []
        """The row of each of these snapshots."""
        self._written: dict[int, int] = {}
        """By index, the row that last wrote the entry; since the first snapshot."""

    def install(self, end: int, eid: int) -> None:
        """A snapshot up to `end` was installed."""
        while self._ends and -self._ends[-1] <= end:
            self._ends.pop()
            self._installed.pop()
        self._ends.append(-end)
        self._installed.append(eid)

    def write(self, index: int, eid: int) -> None:
        """An entry was written again."""
        self._written[index] = eid

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self._ends, -index)
        return place > 0 and self._installed[place - 1] > self._written.get(index, -1)


class Entries:
    """sim-I19, sim-I20, sim-I21."""

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._matching: dict[int, dict[int, dict[int, int]]] = {}
        """Chain by log index, by term, by partition."""
        self._applied: dict[int, dict[int, int]] = {}
        """Chain by log index, by partition."""
        self.logs: dict[int, dict[int, dict[int, int]]] = {}
        """Chain by log index, as last written, by node, by partition."""
        self._replaced: dict[tuple[int, int], _Replaced] = {}
        """By partition and node that ever installed a snapshot."""
        self._commits: dict[int, Commits] = {}
        """Commits of leaders, by partition."""

    def listen(self, rows: Rows) -> None:
        """Listen to writes, commits and applies."""
        rows.listen(("append",), self._append)
        rows.listen(("apply",), self._apply)
        rows.listen(("commit",), self._commit)
        rows.listen(("leader",), self._leader)
        rows.listen(("snapshot",), self._snapshot)

    def differ(self, commit: Row, node: int) -> bool:
        """Whether a node is known to hold another entry there than the node that commits."""
        partition, index = commit.partition, commit.log_index
        own = self._held(partition, commit.node, index)
        chain = self._held(partition, node, index)
        return chain is not None and own is not None and chain != own

    def _append(self, row: Row) -> None:
        partition, term, index, chain = row.partition, row.term, row.log_index, row.chain
        terms = self._matching.get(partition)
        if terms is None:
            terms = self._matching[partition] = {}
            self.logs[partition] = {}
        chains = terms.get(term)
        if chains is None:
            chains = terms[term] = {}
        first = chains.setdefault(index, chain)
        if first != chain:
            self._report(
                "sim-I19",
                row.eid,
                f"entry {index} of term {term} in partition {partition} follows different logs: "
                f"chain {chain} on node {row.node}, {first} before",
            )
        logs = self.logs[partition]
        log = logs.get(row.node)
        if log is None:
            log = logs[row.node] = {}
        log[index] = chain
        if self._replaced and (partition, row.node) in self._replaced:
            self._replaced[partition, row.node].write(index, row.eid)

    def _apply(self, row: Row) -> None:
        chains = self._applied.get(row.partition)
        if chains is None:
            chains = self._applied[row.partition] = {}
        first = chains.setdefault(row.log_index, row.chain)
        if first != row.chain:
            self._report(
                "sim-I21",
                row.eid,
                f"node {row.node} applies chain {row.chain} at {row.log_index} of partition "
                f"{row.partition}, {first} was applied there before",
            )

    def _snapshot(self, row: Row) -> None:
        if row.code == "installed":
            replaced = self._replaced.setdefault((row.partition, row.node), _Replaced())
            replaced.install(row.log_index, row.eid)

    def _commit(self, row: Row) -> None:
        if row.aux != 1:
            return
        commits = self._commits.get(row.partition)
        if commits is None:
            commits = self._commits[row.partition] = Commits()
        log = self.logs.get(row.partition, {}).get(row.node, {})
        commits.add(row.term, Commit(row.log_index, log.get(row.log_index)))

    def _leader(self, row: Row) -> None:
        """Compared with commits of lower terms only: a leader of an old term may win late, when a
        newer term has committed entries that it never had."""
        commits = self._commits.get(row.partition)
        highest = None if commits is None else commits.below(row.term)
        if highest is None:
            return
        index, chain = highest
        last, own = row.log_index - 1, row.chain
        if last > index:
            own = self._held(row.partition, row.node, index)
        if last < index or (own is not None and chain is not None and own != chain):
            self._report(
                "sim-I20",
                row.eid,
                f"node {row.node} leads term {row.term} of partition {row.partition} with a log up "
                f"to {last}, chain {own} at {index}; chain {chain} at {index} was committed",
            )

    def _held(self, partition: int, node: int, index: int) -> int | None:
        """The chain of a node's entry there, if its log reaches so far. None: no row wrote it, as
        inside a snapshot, which covers only committed entries."""
        replaced = self._replaced.get((partition, node))
        if replaced is not None and index in replaced:
            return None
        return self.logs.get(partition, {}).get(node, {}).get(index)
