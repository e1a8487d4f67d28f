"""Online: answers that differ from what the client that asked knows to be right.

The sender of an odd produce request knows its flaws, and so Kafka's answer
(`sim/world/order_of_checks.py`). If a node answers otherwise, a row of node 0 after its own says
what Kafka answers. The sequential client (`sim/clients/sequential.py`) has a model of its topic: a
row of node 0 says what the model answers.
"""

from __future__ import annotations

from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.invariants.findings import Findings, Row, Rows
from ottla.sim.invariants.mutants import CheckerMutants


class _Contradicted:
    """Reports each answer behind which a row of node 0 says what the right one is."""

    kind: str
    """Of the rows."""
    id: str

    def __init__(self, findings: Findings, _: CheckerMutants):
        self._report = findings.report
        self._answered: Row = None

    def listen(self, rows: Rows) -> None:
        """Listen to the answers."""
        rows.listen((self.kind,), self._answer)

    def text(self, row: Row, told: str) -> str:
        """What is wrong, in words; `told`: what was answered."""
        raise NotImplementedError

    def _answer(self, row: Row) -> None:
        if row.node != MODEL_NODE:
            self._answered = row
            return
        answered = self._answered
        told = f"node {answered.node} answers {answered.code}" if answered else "nobody answers"
        self._report(self.id, row.eid, self.text(row, told))


class Checks(_Contradicted):
    """sim-I38: answers to odd requests."""

    kind, id = "check", "sim-I38"

    def text(self, row: Row, told: str) -> str:
        """See `_Contradicted`."""
        return f"an odd request to partition {row.partition}: {told}, Kafka {row.code}"


class Steps(_Contradicted):
    """sim-I49: answers to the sequential client."""

    kind, id = "step", "sim-I49"

    def text(self, row: Row, told: str) -> str:
        """See `_Contradicted`."""
        return f"step {row.op}: {told}; the model says {row.code}"
