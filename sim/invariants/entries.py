"""Online: one log, whoever holds it.

`chain` is a hash over a whole prefix, so two logs agree up to an index when their chains there are
equal: Log Matching, State Machine Safety and Leader Completeness are comparisons of two numbers.

For Leader Completeness it remembers what each node wrote at each index. Entries that were cut off
stay in there; that does no harm, since every index up to the end of a new leader's log was written
again after the cut, unless a snapshot took its place (`_covered`).
"""

from __future__ import annotations

from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants


class Entries:
    """sim-I19, sim-I20, sim-I21."""

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._matching: dict[int, dict[int, dict[int, int]]] = {}
        """Chain by log index, by term, by partition."""
        self._applied: dict[int, dict[int, int]] = {}
        """Chain by log index, by partition."""
        self.logs: dict[int, dict[int, dict[int, int]]] = {}
        """Chain by log index, as written last, by node, by partition."""
        self._covered: dict[tuple[int, int], int] = {}
        """End of the longest snapshot installed, by partition and node."""
        self._commits: dict[int, dict[int, tuple[int, int, int | None]]] = {}
        """Highest commit of a term's leader, minus its row and its chain, by term, by partition."""

    def listen(self, rows: Rows) -> None:
        """See what is written, committed and applied."""
        rows.listen(("append",), self._append)
        rows.listen(("apply",), self._apply)
        rows.listen(("commit",), self._commit)
        rows.listen(("leader",), self._leader)
        rows.listen(("snapshot",), self._snapshot)

    def differ(self, commit: Row, node: int) -> bool:
        """Whether a node is known to hold another entry than the one who commits, there."""
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
            key = (row.partition, row.node)
            self._covered[key] = max(row.log_index, self._covered.get(key, 0))

    def _commit(self, row: Row) -> None:
        if row.aux != 1:
            return
        terms = self._commits.get(row.partition)
        if terms is None:
            terms = self._commits[row.partition] = {}
        known = terms.get(row.term)
        if known is None or known[0] < row.log_index:
            log = self.logs.get(row.partition, {}).get(row.node, {})
            terms[row.term] = (row.log_index, -row.eid, log.get(row.log_index))

    def _leader(self, row: Row) -> None:
        """Against commits of lower terms only: a leader of an old term may win late, when a newer
        term has committed what it never had."""
        commits = self._commits.get(row.partition, {})
        lower = [commit for term, commit in commits.items() if term < row.term]
        if not lower:
            return
        index, _, chain = max(lower)
        last, own = row.log_index - 1, row.chain
        if last > index:
            own = self._held(row.partition, row.node, index)
        if last < index or (own is not None and chain is not None and own != chain):
            self._report(
                "sim-I20",
                row.eid,
                f"node {row.node} leads term {row.term} of partition {row.partition} with a log up "
                f"to {last}, chain {own} at {index}; committed was chain {chain} at {index}",
            )

    def _held(self, partition: int, node: int, index: int) -> int | None:
        """The chain of what a node holds there, if its log reaches so far; None where nobody saw
        it written, as inside of a snapshot, which is of what is committed."""
        if index <= self._covered.get((partition, node), 0):
            return None
        return self.logs.get(partition, {}).get(node, {}).get(index)
