"""The page about a run: self-contained, complete, readable without its script.

Its pictures must be well-formed XML, its links must lead somewhere, and what the script is given
must add up to what the tables say.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from ottla.report.explain.diagram import Diagram
from ottla.report.explain.lanes import Lanes
from ottla.report.explain.report import STYLE, page
from ottla.report.explain.scenes import Moment, Scene
from ottla.report.explain.steps import WIDEST
from ottla.sim.chance.choices import Drawn
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.record import record
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.whole import run_whole

SHORT = RunConfig(profile="reference-strict", load_ms=3_000, records=60, fault_every_ms=300)
MOST_BYTES = 1_000_000


def explained(seed, **settings):
    outcome = run(seed, SHORT.with_(**settings))
    recording = record(outcome, f"Seed {seed}", "ottla sim explain <seed>")
    return recording, page(recording)


@pytest.fixture(scope="module")
def failed():
    return explained(1, mutants="M06")


@pytest.fixture(scope="module")
def passed():
    return explained(4, nodes=5, partitions=3)


@pytest.fixture(scope="module", params=["failed", "passed"])
def either(request):
    return request.getfixturevalue(request.param)


def shown_at(outcome):
    return outcome.rows[outcome.anomalies[0].eid].partition


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


@pytest.mark.slow
def test_it_needs_nothing_else(either):
    _, text = either
    assert len(text.encode()) < MOST_BYTES
    assert not re.search(r"(src|href)=.(?!#)|url\((?!#)|@import|https?://", text)


def test_pictures_are_well_formed_and_say_what_they_are(either):
    _, text = either
    found = pictures(text)
    assert len(found) > 2
    assert all(each.get("role") == "img" and each.get("aria-label") for each in found)


def test_a_long_sentence_is_told_in_lines_and_moves_what_is_below_it(failed):
    recording, _ = failed
    words = " ".join(f"word{n}" for n in range(30))
    said = [words, "short", f"{words} {words} {words}"]
    steps = recording.steps[:1]
    moments = [Moment(None, 0, steps, each, bad=not n) for n, each in enumerate(said)]
    (drawn,) = Diagram(Lanes(recording, 0), [], {}).strips(Scene(moments))
    groups = list(ET.fromstring(drawn).iter("g"))
    told = [
        [each.text or "" for each in g.iter("text") if each.get("class") == "said"] for g in groups
    ]
    assert " ".join(each.strip() for each in told[0]) == f"\u25b6 first bad event: {words}"
    assert len(told[0]) > 2
    assert told[1] == ["short"]
    assert told[2][-1].endswith("\u2026")
    rows = [each for g in groups for each in g.iter("rect")]
    tops = [float(each.attrib["y"]) for each in rows]
    ends = [top + float(each.attrib["height"]) for top, each in zip(tops, rows, strict=True)]
    assert tops == [0, *ends[:-1]]


WINDOW = r"@media screen and \(min-width: (\d+)px\) \{ \.diagram\.fits\S* \{ overflow: clip"


def test_names_of_lanes_stay_at_the_top_of_what_scrolls(failed):
    """They scrolled away with the page: a diagram that scrolls by itself, across alone, is what
    they stayed in. One that has room across a wide window scrolls with the page."""
    recording, text = failed
    style = STYLE.read_text(encoding="utf-8")
    assert re.search(r"^\.diagram \{[^}]*overflow: auto; max-height: \d+vh", style, re.MULTILINE)
    (window,) = re.findall(WINDOW, style)
    (across,) = re.findall(r"^main \{ max-width: (\d+)px", style, re.MULTILINE)
    frame, bar = 2 * 28 + 2, 16
    assert min(int(window) - bar, int(across)) - frame >= WIDEST
    diagrams = re.findall(r'class="diagram( fits)?" style="--wide:([\d.]+)px"', text)
    assert [bool(fits) for fits, _ in diagrams] == [float(w) <= WIDEST for _, w in diagrams]
    wider = replace(recording, placement=dict.fromkeys(recording.placement, (1, 2, 3, 4, 5, 6, 7)))
    assert 'class="diagram"' in page(wider)


def test_links_lead_somewhere(either):
    _, text = either
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets
    names = re.findall(r' id="([^"]+)"', text)
    assert targets <= set(names)
    assert len(names) == len(set(names)), "a link leads to the first of those"


def test_what_all_partitions_draw_is_found_in_the_partition_that_tells_of_it(passed):
    """A crash, say: links of all stories led to the first partition."""
    _, text = passed
    parts = re.split(r"<h2>", text)
    told = [each for each in parts if 'class="story"' in each]
    assert len(told) == 3
    drawn = [each for each in parts if each.startswith("Step by step")]
    assert len(drawn) == 3
    for story, steps in zip(told, drawn, strict=True):
        targets = re.findall(r'href="#(p[^"]+)"', story)
        assert targets
        assert all(f'id="{each}"' in steps for each in targets)


def test_what_comes_from_outside_is_escaped(failed):
    _, text = failed
    assert "&lt;seed&gt;" in text
    assert "<seed>" not in text


def test_the_first_bad_event_is_marked_once_and_told(failed):
    recording, text = failed
    (anomaly,) = recording.anomalies
    assert len(re.findall(r'class="moment[^"]* bad"', text)) == 1
    assert "when a client is told of success with acks=all, some node knows" in text
    assert anomaly.text in text
    assert "first bad event" in text


def test_the_story_of_a_run_that_passed_is_its_failovers(passed):
    recording, text = passed
    assert sorted(recording.placement) == [-1, 0, 1, 2]
    for partition in range(3):
        assert f"Partition {partition}: the story" in text
    leads = [row for row in recording.rows if row.kind == "leader" and row.partition == 0]
    for row in leads:
        assert f"node {row.node} leads term {row.term}" in text


@pytest.mark.slow
def test_a_decision_that_the_model_would_not_take_has_a_ring_in_its_nodes_lane():
    outcomes = (run(seed, SHORT.with_(mutants="M01")) for seed in range(40))
    firsts = (each for each in outcomes if each.anomalies)
    failed = next(each for each in firsts if "model duplicate" in each.anomalies[0].text)
    assert failed.anomalies[0].invariant == "sim-I35"
    text = page(record(failed, "", ""))
    (bad,) = re.findall(r'<g class="moment[^"]* bad".*?</g>', text)
    node = failed.rows[failed.anomalies[0].eid - 1].node
    assert re.search(
        rf"first bad event: node {node}: accepts \S+, the model says duplicate of", bad
    )
    assert bad.count('class="ring"') == 1
    assert 'class="everywhere"' not in bad


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "drawn", "marks"),
    [
        ("node 2: AssertionError: truncation at 9, applied 35", [0, 1, 2], "ring"),
        ("agreement of all: not within 9 ms", [0, 1, 2], "everywhere"),
        ("no node of [1, 2] leads partition 2 in the end", [2], "everywhere"),
        ("no node of [1, 2] leads partition -1 in the end", [-1], "everywhere"),
    ],
)
def test_what_is_broken_in_no_row_is_drawn_where_the_run_ended(said, drawn, marks):
    """The last row was drawn for it, or nothing where that was the controller's."""
    outcome = run(4, SHORT.with_(nodes=3, replicas=3, partitions=3))
    broken = Anomaly("sim-I00", len(outcome.rows) - 1, said)
    recording = record(replace(outcome, anomalies=[broken]), "", "")
    text = page(replace(recording, anomalies=[broken]))
    names = ["controller" if each < 0 else f"partition {each}" for each in drawn]
    assert re.findall(r"<h2>Step by step: ([^<]*)</h2>", text) == names
    bad = re.findall(r'<g class="moment[^"]* bad".*?</g>', text)
    assert len(bad) == len(drawn)
    who = "node 2: " if marks == "ring" else ""
    for each in bad:
        assert f"first bad event: {who}the run ended here: {said.removeprefix(who)}" in each
        assert f'class="{marks}"' in each
    assert ">Show it</a>" in text
    assert len(re.findall(r'<li class="bad">', text)) == len(drawn)


@pytest.mark.slow
def test_what_goes_wrong_in_the_controllers_group_is_drawn_there():
    settings = {"faults": "win-and-go kill isolate power", "batch_records": 1, "producers": 1}
    outcomes = (run(seed, SHORT.with_(mutants="M10", **settings)) for seed in range(60))
    outcome = next(each for each in outcomes if each.anomalies and shown_at(each) == -1)
    text = page(record(outcome, "", ""))
    assert "Step by step: controller" in text
    assert len(re.findall(r'class="moment[^"]* bad"', text)) == 1
    assert re.search(r"node \d votes for \d in term", text)


def test_what_the_script_is_given_adds_up_to_the_table(failed):
    _, text = failed
    (told,) = re.findall(r'<script type="application/json" class="data">(.*?)</script>', text)
    scene = json.loads(told)[-1]
    nodes = scene["base"]
    for changes in scene["moments"].values():
        for node, change in changes:
            known = nodes[str(node)]
            if "cut" in change:
                known["log"] = [line for line in known["log"] if line[0] < change["cut"]]
            known["log"] += change.get("add", ())
            known.update({k: v for k, v in change.items() if k in {"role", "term", "hw"}})
    table = re.findall(r'<div class="scroll states">.*?</div>', text)[-1]
    for node, known in nodes.items():
        (row,) = re.findall(rf"<tr><th>{node}</th>.*?</tr>", table)
        assert f"<td>{known['role']}</td>" in row
        for line in known["log"][-10:]:
            assert f">{line[3]}" in row


@pytest.mark.slow
def test_a_run_that_ended_before_its_topic_had_leaders_is_drawn_too():
    """There is the controller alone, which tries and tries."""
    config = RunConfig(sync_us=490_000, sync_jitter_us=0)

    def again(choices, watching):
        return run_whole(choices, config, None, watching)[0]

    recording = record(again(Drawn(1), ()), "Seed 1", "", again)
    assert list(recording.placement) == [-1]
    assert recording.anomalies[0].invariant == "sim-I00"
    text = page(recording)
    assert "Step by step: controller" in text
    assert recording.anomalies[0].text in text
    assert all(each.get("role") == "img" for each in pictures(text))
