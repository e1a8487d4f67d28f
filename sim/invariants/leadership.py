"""Online: what a leader commits, and what it brings along."""

from __future__ import annotations

from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants


class Leadership:
    """sim-I23, sim-I26.

    A leader of an old term may learn late of a commit, below one of a newer term; so commits are
    compared with those of terms up to their own only. Nearly all are of the newest term yet.
    """

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._highest: dict[int, dict[int, int]] = {}
        """Highest commit by term, by partition."""
        self._newest: dict[int, int] = {}
        """Newest term that committed, by partition."""
        self._most: dict[int, int] = {}
        """Highest commit of all, by partition."""

    def listen(self, rows: Rows) -> None:
        """See commits and elections."""
        rows.listen(("commit",), self._commit)
        rows.listen(("leader",), self._leader)

    def _commit(self, row: Row) -> None:
        if row.aux != 1:
            return
        partition, term, index = row.partition, row.term, row.log_index
        terms = self._highest.get(partition)
        if terms is None:
            terms = self._highest[partition] = {}
        before = self._most.get(partition, 0)
        if index > before:
            self._most[partition] = index
        if term < self._newest.get(partition, 0):
            before = max((most for old, most in terms.items() if old <= term), default=0)
        else:
            self._newest[partition] = term
        if index < before:
            self._report(
                "sim-I23",
                row.eid,
                f"the leader of term {term} on node {row.node} commits {index} in partition "
                f"{row.partition}, {before} was committed in that term or before",
            )
        if index > terms.get(term, 0):
            terms[term] = index

    def _leader(self, row: Row) -> None:
        if row.aux:
            self._report(
                "sim-I26",
                row.eid,
                f"node {row.node} leads term {row.term} of partition {row.partition} with "
                f"{row.aux} requests in flight of an earlier leadership",
            )
