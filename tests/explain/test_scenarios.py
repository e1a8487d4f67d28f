"""A scenario explained: what was done on purpose stands beside what came of it."""

import pytest

from ottla.explain.report import page
from ottla.sim.recording.scenario import NoSuchActError, record_scenario, scenario_named
from ottla.sim.scenarios.page import files

A_C_B = next(each for each in files() if each.stem == "s07_a_c_b")
S35 = next(each for each in files() if each.stem.startswith("s35_"))


def test_a_scenario_is_found_by_its_number():
    assert scenario_named("s07") == A_C_B
    assert scenario_named("S07") == scenario_named("sim-S07") == A_C_B
    assert scenario_named("s7") == scenario_named("sim-S7") == A_C_B
    assert scenario_named("7") is None
    assert scenario_named("s3") != S35


def test_a_mutant_is_caught_in_it_and_the_page_says_how():
    recording = record_scenario(A_C_B, 2, "M05", "ottla sim explain s07 --act 2 --mutant M05")
    assert recording.anomalies[0].invariant == "sim-I26"
    text = page(recording)
    assert "&gt; send P A to 1 seq 1" in text
    assert "uncommitted state leaks" in text
    assert ">P</text>" in text


def test_without_a_mutant_it_passes():
    recording = record_scenario(A_C_B, 1, "", "")
    assert not recording.anomalies
    assert ">passed<" in page(recording)


def test_what_no_raft_stands_is_said_to_be_weakened():
    """Scenario S35 was drawn as if nothing had been lost in it."""
    recording = record_scenario(S35, 3, "", "")
    assert not recording.anomalies
    text = page(recording)
    assert ">weakened</span>" in text
    assert "offset 1 of partition 0 is lost" in text


def test_there_are_only_so_many_acts():
    with pytest.raises(NoSuchActError, match="2 acts"):
        record_scenario(A_C_B, 3, "", "")
