"""A page is smaller than a megabyte whatever the run, and says what it leaves out.

The runs are made up, each large in another way: many partitions, producers, entries, long texts.
What the script is given in brief must add up to what the tables say.
"""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from explain_big_run import Big
from ottla.report.explain.lanes import leaned
from ottla.report.explain.report import page
from ottla.report.explain.room import MOST_BYTES
from ottla.report.explain.scenes import fewer_scenes, moments_of
from ottla.report.explain.story import tell
from ottla.sim.recording.record import record
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from work import lines_of

LEFT_OUT = "What this page leaves out"
LARGE = [
    Big(partitions=5, nodes=7, producers=10, turns=120),
    Big(partitions=5, nodes=7, producers=10, turns=120, failed=True, invariant="sim-I31"),
    Big(partitions=1, nodes=7, producers=1000, turns=200, failed=True),
    Big(partitions=12, nodes=3, producers=2, turns=150),
    Big(partitions=1000, nodes=3, turns=4),
    Big(partitions=1000, nodes=3, turns=4, failed=True),
    Big(partitions=2, nodes=3, turns=30, words=200_000, failed=True),
    Big(partitions=1, nodes=5, turns=40, added=3_000, failed=True),
    Big(partitions=1, nodes=3, turns=3_000),
]
QUICK = (LARGE[5], LARGE[6])
"""Runs whose pages are made in half a second: many partitions, long texts."""


def size(text):
    return len(text.encode())


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=() if each in QUICK else pytest.mark.slow, id=str(each))
        for each in LARGE
    ],
)
def large(request):
    recording = request.param.recording()
    return recording, page(recording)


@pytest.mark.slow
def test_it_stays_below_a_megabyte(large):
    _, text = large
    assert size(text) < MOST_BYTES


def test_its_links_and_pictures_are_whole(large):
    _, text = large
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'id="([^"]+)"', text))
    for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert ET.fromstring(each).get("aria-label")


def test_the_first_bad_event_is_kept(large):
    recording, text = large
    places = 5 if "sim-I31" in str(recording.anomalies) else 1  # it has none: in each that is drawn
    marked = len(re.findall(r'class="moment[^"]* bad"', text))
    assert marked == places * len(recording.anomalies)
    assert len(re.findall(r'">Show it</a>', text)) == len(recording.anomalies)


@pytest.fixture(scope="module")
def cut():
    recording = LARGE[0].recording()
    return recording, page(recording)


@pytest.mark.slow
def test_what_is_left_out_is_said_with_the_command_that_shows_it(cut):
    _, text = cut
    assert LEFT_OUT in text
    run_again = "ottla sim run --seed 5 --set partitions=5 --tape run.tape"
    assert f"<code>{run_again}</code> and <code>ottla sim show run.tape</code>" in text
    for partition in range(5):
        (steps,) = re.findall(rf'<section id="steps{partition}">.*?</section>', text, re.DOTALL)
        left, of = re.findall(r"(\d+) of (\d+) moments that would be drawn", steps)[0]
        assert steps.count('class="moment') == int(of) - int(left) > 0
        assert f"ottla sim explain 5 --set partitions=5 --partition {partition}" in steps


def test_the_room_is_used(cut):
    _, text = cut
    assert size(text) > 0.9 * MOST_BYTES


def test_partitions_that_are_too_many_are_named():
    text = page(Big(partitions=120, turns=3).recording())
    assert "Nothing is drawn of partition 40 to 119." in text
    assert "--set partitions=120 --partition 40</code>" in text


def test_a_partition_is_drawn_alone():
    recording = Big(partitions=3, failed=True).recording()
    text = page(recording, partition=2)
    assert re.findall(r'id="steps(\d+)"', text) == ["2"]
    assert "What went wrong" in text
    assert LEFT_OUT not in text


def test_a_page_that_fits_is_left_alone():
    text = page(Big().recording())
    assert LEFT_OUT not in text
    assert "as on node" not in text


@pytest.mark.parametrize("most", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("failed", [False, True])
def test_what_is_kept_lies_around_the_bad_event_and_at_the_beginning(most, failed):
    recording = Big(turns=80, failed=failed).recording()
    anomaly = recording.anomalies[0] if failed else None
    moments = moments_of(recording, tell(recording, 0, anomaly))
    scenes = fewer_scenes(recording, moments, most)
    kept = [each for scene in scenes for each in scene.moments]
    assert len(kept) <= most
    assert any(each.bad for each in kept) == (failed and most > 0)
    if most >= (8 if failed else 2):
        assert next(each for each in moments if each.decisive) in kept
    assert scenes[-1].before, "what comes behind the last scene is counted"


def resolved(base):
    """What the script makes of it."""
    for known in base.values():
        for name in ("log", "producers"):
            if isinstance(known[name], str):
                known[name] = base[known[name]][name]
    return {node: {**known, "producers": dict(known["producers"])} for node, known in base.items()}


def take(known, change):
    known.update(
        {name: change[name] for name in ("role", "term", "hw", "others") if name in change}
    )
    told = {**known["producers"], **change.get("told", {})}
    known["producers"] = {pid: said for pid, said in told.items() if said is not None}
    if "skip" in change:
        known["more"] += len(known["log"]) + change["skip"]
        known["log"] = []
    known["log"] = known["log"] + change.get("add", [])


def test_what_the_script_is_given_in_brief_adds_up(cut):
    _, text = cut
    told = re.findall(r'<script type="application/json" class="data">(.*?)</script>', text)
    tables = re.findall(r'<div class="scroll states">.*?</div>', text)
    scenes = [scene for each in told for scene in json.loads(each)]
    assert len(scenes) == len(tables)
    for scene, table in zip(scenes, tables, strict=True):
        nodes = resolved(scene["base"])
        for changes in scene["moments"].values():
            for node, change in changes:
                take(nodes[str(node)], change)
        rows = dict(re.findall(r"<tr><th>(\d)</th>(.*?)</tr>", table))
        for node, known in nodes.items():
            assert f"<td>{known['role']}</td>" in rows[node]
            assert f"<td class='n'>{known['hw']}</td>" in rows[node]
            alike = re.findall(
                r"<td class='producers'><span class='more'>as on node (\d)", rows[node]
            )
            shown = rows[alike[0]] if alike else rows[node]
            for pid, said in known["producers"].items():
                assert f"{pid}: {said}" in shown


@pytest.mark.slow
def test_a_run_of_many_partitions_has_room():
    many = 'partitions = 16\nnodes = 5\nreplicas = 5\narrivals = "even"\nfault_every_ms = 500'
    many += "\nload_ms = 8_000\nrecords = 200"
    text = page(record(run(5, from_toml(many)), "Seed 5", "ottla sim explain 5"))
    assert 0.75 * MOST_BYTES < size(text) < MOST_BYTES
    assert LEFT_OUT in text


@pytest.mark.slow
def test_a_short_run_has_room_as_it_is():
    config = RunConfig(profile="reference-strict", load_ms=2_000, records=40)
    assert LEFT_OUT not in page(record(run(1, config), "Seed 1", "ottla sim explain 1"))


def work_of_partitions(partitions):
    """What of a page is made for each partition, but for its drawing."""
    recording = Big(partitions=partitions, turns=4).recording()

    def look():
        leaned(recording, range(partitions))
        for each in range(partitions):
            moments_of(recording, tell(recording, each, None))

    return lines_of(look)


@pytest.mark.slow
def test_each_partition_costs_what_it_has_itself_and_not_what_all_have():
    assert work_of_partitions(80) < 4.5 * work_of_partitions(20)
