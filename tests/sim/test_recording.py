"""A recorded run is the run: nothing that watches chooses, or adds an event."""

import pytest

from ottla.raft.messages import AppendEntries
from ottla.sim.recording.record import NotTheSameError, record
from ottla.sim.recording.states import DOWN, Known
from ottla.sim.requests import Produce
from ottla.sim.run import run
from ottla.sim.settings import RunConfig

SHORT = RunConfig(profile="reference-strict", load_ms=3_000, records=60, fault_every_ms=300)


@pytest.fixture(scope="module")
def outcome():
    return run(5, SHORT)


@pytest.fixture(scope="module")
def recording(outcome):
    return record(outcome, "seed 5", "")


def test_it_has_every_row_and_the_same_digest(outcome, recording):
    assert recording.digest == outcome.digest
    assert [step.row for step in recording.steps if step.row is not None] == outcome.rows


def test_another_run_is_not_taken_for_it(outcome):
    outcome.digest, digest = "of another run", outcome.digest
    try:
        with pytest.raises(NotTheSameError):
            record(outcome, "seed 5", "")
    finally:
        outcome.digest = digest


def test_the_row_that_ends_a_run_is_there():
    failed = run(1, SHORT.with_(mutants="M06"))
    steps = record(failed, "", "").steps
    assert failed.anomalies
    assert steps[-1].row == failed.rows[-1]


def test_messages_have_two_ends_in_that_order(recording):
    steps = recording.steps
    wires = {id(step.wire): step.wire for step in steps if step.wire is not None}.values()
    arrived = [wire for wire in wires if wire.end is not None]
    assert {AppendEntries, Produce} <= {type(wire.message) for wire in arrived}
    for wire in arrived:
        start, end = steps[wire.start], steps[wire.end]
        assert start.place == wire.origin
        assert end.place == wire.goal
        assert start.at < end.at
    assert any(wire.end is None for wire in wires), "with these faults something is lost"


def test_changes_add_up_to_the_final_logs(recording):
    known: dict[tuple[int, int], Known] = {}
    for step in recording.steps:
        for change in step.changes:
            known.setdefault((change.node, change.partition), Known()).take(change)
    final: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for row in recording.rows:
        if row.kind == "final":
            final.setdefault((row.node, row.partition), set()).add((row.off, row.term))
    for key, records in final.items():
        lines = {(line.off, line.term) for line in known[key].log if line.off is not None}
        assert lines <= records
        assert min(records) in lines
        assert known[key].role != DOWN
    assert final


def test_decisions_name_their_rule(recording):
    decided = [step.detail for step in recording.steps if step.what == "decided"]
    labels = {decision.row.label for _, _, decision in decided}
    assert {"unknown-start", "next"} <= labels
