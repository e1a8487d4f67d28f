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


class Checks:
    """sim-I38."""

    def __init__(self, findings: Findings, _: CheckerMutants):
        self._report = findings.report
        self._answered: Row = None

    def listen(self, rows: Rows) -> None:
        """Listen to the answers to odd requests."""
        rows.listen(("check",), self._check)

    def _check(self, row: Row) -> None:
        if row.node != MODEL_NODE:
            self._answered = row
            return
        answered = self._answered
        told = f"node {answered.node} answers {answered.code}" if answered else "nobody answers"
        text = f"an odd request to partition {row.partition}: {told}, Kafka {row.code}"
        self._report("sim-I38", row.eid, text)


class Steps:
    """sim-I49."""

    def __init__(self, findings: Findings, _: CheckerMutants):
        self._report = findings.report
        self._answered: Row = None

    def listen(self, rows: Rows) -> None:
        """See what the sequential client is answered."""
        rows.listen(("step",), self._step)

    def _step(self, row: Row) -> None:
        if row.node != MODEL_NODE:
            self._answered = row
            return
        answered = self._answered
        told = f"node {answered.node} answers {answered.code}" if answered else "nobody answers"
        self._report("sim-I49", row.eid, f"step {row.op}: {told}; the model says {row.code}")
