"""A story names what a reader looks for: the message that came too late, who shows too little."""

import pytest

from ottla.commands.sim.asking import config_of
from ottla.report.explain.story import tell
from ottla.sim.recording.scenario import record_scenario, scenario_named
from ottla.sim.run import run


def story_of(scenario, mutant):
    path = scenario_named(scenario)
    assert path is not None
    recording = record_scenario(path, 1, mutant, "")
    anomaly = recording.anomalies[0] if recording.anomalies else None
    return [item.text for item in tell(recording, 0, anomaly).items]


def test_entries_of_a_deposed_leader_are_told_where_they_break_something():
    """The story of M28 showed a log that was cut, and not the entries for which it was cut."""
    told = story_of("S56", "M28")
    late = [text for text in told if "of term 1; node 2 has begun to lead term 2" in text]
    assert late[0].startswith("node 2 gets entry 4 of node 1")
    assert told[-1].startswith("node 2 cuts its log")


def test_without_an_anomaly_no_message_is_too_late():
    assert not any("has begun to lead" in text for text in story_of("S56", ""))


@pytest.mark.slow
def test_who_shows_too_little_at_the_end_is_named():
    """The story of M51 said that a high watermark was missing, and not whose or why."""
    told = (
        *("mutants=M51", "nodes=3", "replicas=3", "min_insync=3", "replica_lag_ms=1000", "acks=1"),
        *("faults=isolate freeze", "fault_every_ms=2000", "load_ms=10000", "records=24"),
    )
    (found,) = run(1, config_of(None, [*told])).anomalies
    assert "node 2 shows partition 1 up to offset 7 of 8" in found.text
    assert found.text.endswith("with nodes [2, 1, 3] in sync of 3 that must be")
