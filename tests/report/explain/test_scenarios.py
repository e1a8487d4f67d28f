"""A scenario explained: what was done on purpose stands beside what came of it."""

import re
from xml.etree import ElementTree as ET

import pytest

from ottla.report.explain.report import page
from ottla.sim.recording.scenario import NoSuchActError, record_scenario, scenario_named
from ottla.sim.scenarios.files import files

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


def test_what_the_script_did_to_nodes_and_links_is_among_the_faults_at_a_glance():
    """That lane was empty, and node 1 was isolated."""
    text = page(record_scenario(A_C_B, 2, "", ""))
    (lane,) = re.findall(r">faults</text>(.*?)</svg>", text, re.DOTALL)
    assert "&gt; isolate 1" in lane
    assert "&gt; send" not in lane


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


def test_what_acks_1_lost_is_said_to_be_weakened():
    """Scenario S57 was said to have passed, though a record that was acknowledged is gone."""
    path = scenario_named("s57")
    assert path is not None
    text = page(record_scenario(path, 1, "", "ottla sim explain s57"))
    assert ">weakened</span>" in text
    assert "1 of 3 records acknowledged with acks=1 are lost" in text


@pytest.mark.slow
def test_words_stay_within_their_bands():
    """Those of two leaders side by side ran into each other in scenario S12."""
    path = scenario_named("s12")
    assert path is not None
    (picture,) = re.findall(
        r'<svg class="glance".*?</svg>', page(record_scenario(path, 1, "M11", ""))
    )
    band, words = 0.0, []
    for each in ET.fromstring(picture):
        if each.tag == "rect":
            band = float(each.attrib["width"])
        elif each.get("class") == "term":
            words.append((each.text or "", band))
    assert all(text and len(text) * 7.5 < width for text, width in words)
    said = [text for text, _ in words if text.startswith("node")]
    assert said == ["node 1", "node 2", "node 1, term 9", "node 1", "node 5, term 4"]
    assert "<title>node 2 led term 2 from 0.752 to 1.252 s</title>" in picture


def test_there_are_only_so_many_acts():
    with pytest.raises(NoSuchActError, match="2 acts"):
        record_scenario(A_C_B, 3, "", "")
