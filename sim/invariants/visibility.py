"""Online: no client is told of a record, or reads it, before it is committed."""

from __future__ import annotations

from ottla.sim.invariants.findings import ACKS_ALL, Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutant, CheckerMutants


class Visibility:
    """sim-I09, sim-I10: offsets against the highest committed one that any node knows."""

    def __init__(self, findings: Findings, mutants: CheckerMutants):
        self._report = findings.report
        self._committed: dict[int, int] = {}
        """First offset not known to be committed, by partition."""
        self._slack = 1 if CheckerMutant.LESS_OR_EQUAL in mutants else 0

    def listen(self, rows: Rows) -> None:
        """Listen to commits, acknowledgements and reads."""
        rows.listen(("commit",), self._commit)
        rows.listen(("ok",), self._ok)
        rows.listen(("poll",), self._poll)

    def _commit(self, row: Row) -> None:
        hw = row.hw
        if hw is not None and hw > self._committed.get(row.partition, 0):
            self._committed[row.partition] = hw

    def _ok(self, row: Row) -> None:
        if row.acks == ACKS_ALL and row.off is not None:
            committed = self._committed.get(row.partition, 0) + self._slack
            if row.off >= committed:
                self._report(
                    "sim-I09",
                    row.eid,
                    f"op {row.op} is acknowledged at offset {row.off} of partition "
                    f"{row.partition}, only offsets below {committed} are committed",
                )

    def _poll(self, row: Row) -> None:
        committed = self._committed.get(row.partition, 0) + self._slack
        if row.off >= committed:
            self._report(
                "sim-I10",
                row.eid,
                f"consumer {row.client} reads offset {row.off} of partition {row.partition}, "
                f"only offsets below {committed} are committed",
            )
