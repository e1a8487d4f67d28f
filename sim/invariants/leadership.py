"""Online: what a leader commits, and what it keeps from earlier leaderships."""

from __future__ import annotations

from ottla.sim.invariants.commits import Commit, Commits
from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants


class Leadership:
    """sim-I23, sim-I26.

    A leader of an old term may learn late of a commit, below one of a newer term. So a commit is
    only compared with those of terms up to its own.
    """

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._commits: dict[int, Commits] = {}
        """Commits by partition."""

    def listen(self, rows: Rows) -> None:
        """Listen to commits and elections."""
        rows.listen(("commit",), self._commit)
        rows.listen(("leader",), self._leader)

    def _commit(self, row: Row) -> None:
        if row.aux != 1:
            return
        term, index = row.term, row.log_index
        commits = self._commits.get(row.partition)
        if commits is None:
            commits = self._commits[row.partition] = Commits()
        highest = commits.below(term + 1)
        if highest is not None and index < highest.log_index:
            self._report(
                "sim-I23",
                row.eid,
                f"the leader of term {term} on node {row.node} commits {index} in partition "
                f"{row.partition}, but {highest.log_index} was committed in that term or before",
            )
        commits.add(term, Commit(index))

    def _leader(self, row: Row) -> None:
        if row.aux:
            self._report(
                "sim-I26",
                row.eid,
                f"node {row.node} leads term {row.term} of partition {row.partition} with "
                f"{row.aux} requests in flight of an earlier leadership",
            )
