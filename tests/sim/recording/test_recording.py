"""A recorded run is the run: nothing that watches chooses, or adds an event.

What is broken has a place in the recording, also where no row of the history has one: on a node,
or where the run ended.
"""

from dataclasses import replace

import pytest

from ottla.broker.wire.requests import ProduceRequest
from ottla.raft.messages import AppendEntries
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.record import NotTheSameError, record
from ottla.sim.recording.states import DOWN, Known
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig

SHORT = RunConfig(profile="reference-strict", load_ms=3_000, records=60, fault_every_ms=300)


@pytest.fixture(scope="module")
def outcome():
    return run(5, SHORT)


@pytest.fixture(scope="module")
def recording(outcome):
    return record(outcome, "seed 5", "")


@pytest.mark.slow
def test_it_has_every_row_and_the_same_digest(outcome, recording):
    assert recording.digest == outcome.digest
    assert [step.row for step in recording.steps if step.row is not None] == outcome.rows


@pytest.mark.slow
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


GAPLESS = RunConfig(
    mutants="M02",
    client_model="java",
    client_rtt_us=50_000,
    batch_records=1,
    in_flight=5,
    partitions=2,
    reset_ppm=20_000,
    faults="transfer",
    fault_every_ms=1_000,
    load_ms=3_000,
    records=60,
)


ID = "sim-I35"


@pytest.mark.slow
def test_a_decision_that_the_model_would_not_take_is_where_it_was_taken():
    outcomes = (run(seed, GAPLESS) for seed in range(40))
    failed = next(each for each in outcomes if [a.invariant for a in each.anomalies][:1] == [ID])
    (anomaly, *_) = failed.anomalies
    (step,) = (
        each
        for each in record(failed, "", "").steps
        if each.row is not None and each.row.eid == anomaly.eid
    )
    taken = failed.rows[anomaly.eid - 1]
    assert step.row is not None
    assert step.row.node == 0
    assert step.place == ("node", taken.node)
    assert step.detail == taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("node 2: AssertionError: truncation at 9, applied 35", ("node", 2)),
        ("node 2 and node 3 do not agree", None),
        ("node 9 is none of them", None),
        ("agreement of all: not within 9 ms", None),
    ],
)
@pytest.mark.parametrize(("back", "what"), [(1, "ended"), (100, "noticed")])
def test_what_is_broken_in_no_row_is_a_step_of_its_own(outcome, text, place, back, what):
    rows = [row for row in outcome.rows if row.kind != "final"]
    broken = Anomaly("sim-I00", len(rows) - back, text)
    recording = record(replace(outcome, anomalies=[broken]), "", "")
    (step,) = (each for each in recording.steps if each.what in {"ended", "noticed"})
    assert (step.what, step.place) == (what, place)
    if what == "ended":
        assert step == recording.steps[-1]
    else:
        before = [each.row for each in recording.steps[: step.number] if each.row is not None]
        assert before[-1].eid == broken.eid


def test_messages_have_two_ends_in_that_order(recording):
    steps = recording.steps
    wires = {id(step.wire): step.wire for step in steps if step.wire is not None}.values()
    arrived = [wire for wire in wires if wire.end is not None]
    assert {AppendEntries, ProduceRequest} <= {type(wire.message) for wire in arrived}
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
