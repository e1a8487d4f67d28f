"""Online: terms, votes and leaders.

What a node has *written* may be lost with the life that wrote it; what it has *said* may not. So
within one life terms only rise and a term has one vote. Over all lives the same holds for votes
that left the node and for terms that other nodes heard of.
"""

from __future__ import annotations

from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutant, CheckerMutants

_SAID = 1


class Terms:
    """sim-I15, sim-I16, sim-I17."""

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._one_life = CheckerMutant.IGNORED_INCARNATION in mutants
        self._leaders: dict[tuple[int, int], int] = {}
        """The leader by partition and term."""
        self._written: dict[tuple[int, int, int, int], int] = {}
        """The vote that was written, by partition, node, incarnation and term."""
        self._said: dict[tuple[int, int, int], int] = {}
        """The vote that was sent, by partition, node and term."""
        self._terms: dict[tuple[int, int, int], int] = {}
        """Term by partition, node and incarnation."""
        self._heard: dict[tuple[int, int], int] = {}
        """The highest term that other nodes heard of, by partition and node."""

    def listen(self, rows: Rows) -> None:
        """Listen to elections; there are few, so keys are made when they are needed."""
        rows.listen(("leader",), self._leader)
        rows.listen(("vote",), self._vote)
        rows.listen(("term", "start"), self._term)

    def _leader(self, row: Row) -> None:
        first = self._leaders.setdefault((row.partition, row.term), row.node)
        if first != row.node:
            self._report(
                "sim-I15",
                row.eid,
                f"nodes {first} and {row.node} both lead term {row.term} of partition "
                f"{row.partition}",
            )
        self._voted(row, row.node, said=True)

    def _vote(self, row: Row) -> None:
        self._voted(row, row.cand, said=row.aux == _SAID)

    def _voted(self, row: Row, choice: int, *, said: bool) -> None:
        """A leader has voted for itself, which needs no message."""
        life = 0 if self._one_life else row.inc
        cand = self._written.setdefault((row.partition, row.node, life, row.term), choice)
        if said:
            heard = self._said.setdefault((row.partition, row.node, row.term), choice)
            cand = cand if cand != choice else heard
            self._hear(row)
        if cand != choice:
            self._report(
                "sim-I16",
                row.eid,
                f"node {row.node} votes for {cand} and for {choice} in term {row.term} of "
                f"partition {row.partition}",
            )

    def _hear(self, row: Row) -> None:
        key = (row.partition, row.node)
        if row.term > self._heard.get(key, 0):
            self._heard[key] = row.term

    def _term(self, row: Row) -> None:
        key = (row.partition, row.node, 0 if self._one_life else row.inc)
        before = max(self._terms.get(key, 0), self._heard.get(key[:2], 0))
        if row.term < before:
            self._report(
                "sim-I17",
                row.eid,
                f"node {row.node} goes back from term {before} to {row.term} in partition "
                f"{row.partition}",
            )
        self._terms[key] = row.term
