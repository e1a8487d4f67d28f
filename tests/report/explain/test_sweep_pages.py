"""The pages about many runs: the curve of `why`, and what a sweep reached.

The curve may not say more than its few futures prove, and has to be drawn whatever its points are;
its points here are made up.
"""

import re
from xml.etree import ElementTree as ET

import pytest

from ottla.report.explain.coverage import cover_page, growth
from ottla.report.explain.curve import curve_section, event_text, summary
from ottla.sim.coverage.cover import Cover, Reached
from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.why import Curve, Point

ROWS = [
    Event(0, 0, "start", node=1, inc=1, partition=0, term=1),
    Event(1, 10, "pause", node=1, inc=1),
    Event(2, 20, "leader", node=2, inc=1, partition=0, term=2, aux=0),
    Event(3, 30, "resume", node=1, inc=1),
]


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def curve(*hits):
    return Curve("sim-I01", tuple(Point(eid, 10 * eid, n, 20) for eid, n in enumerate(hits)))


def test_the_curve_says_between_which_events_it_rose():
    told = list(summary(curve(2, 2, 20, 20), ROWS))
    assert "from 10% to 100%, between event 1 (node 1: is paused) and event 2 (node 2" in told[0]
    assert told[1] == (
        "with event 2 at 0.0000 s kept, 20 of 20 futures (95 %: 86 to 100 %) break sim-I01"
    )
    assert "nowhere" in list(summary(curve(2, 2, 8, 9), ROWS))[1]


def test_few_futures_are_not_said_to_prove_much():
    few = Curve("sim-I01", (Point(0, 0, 0, 4), Point(2, 20, 4, 4)))
    assert "4 of 4 futures (95 %: 47 to 100 %) break sim-I01" in list(summary(few, ROWS))[1]


def test_what_was_wrong_from_the_first_event_has_a_curve_of_one_point():
    told = list(summary(curve(20), ROWS))
    assert told[0] == "the share is 100% at every event asked about, it rises nowhere"
    assert "with event 0 at" in told[1]
    assert "the share rises most here" not in curve_section(curve(20), ROWS)
    assert len(pictures(curve_section(curve(20), ROWS))) == 1


def test_an_opinion_of_the_reference_model_is_said_by_it_once():
    batch = {"pid": 7, "epoch": 0, "seq": 3, "seq_last": 5}
    row = Event(0, 0, "decide", node=0, partition=0, code="gap", **batch)
    assert event_text(row) == "the reference model: says of 7/0:3-5: gap (partition 0)"


def test_a_curve_that_is_flat_rose_nowhere():
    told = list(summary(curve(20, 20, 20, 20), ROWS))
    assert told[0] == "the share is 100% at every event asked about, it rises nowhere"
    assert told[1].startswith("with event 0 at")


def test_the_curve_is_drawn_point_by_point():
    text = curve_section(curve(2, 3, 19, 20), ROWS)
    (picture,) = pictures(text)
    assert len([each for each in picture.iter("circle") if each.get("class") == "dot"]) == 4
    assert text.count("of 20</td>") == 4


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([4], ["seed 1"]),
        ([4, 5], ["seed 1", "seed 2"]),
        ([4, 5, 6], ["seed 1", "seed 2", "seed 3"]),
        ([4] * 100, ["seed 1", "seed 50", "seed 100"]),
    ],
)
def test_an_axis_names_a_seed_once(states, told):
    (picture,) = pictures(growth(states))
    said = [each.text for each in picture.iter("text") if str(each.text).startswith("seed")]
    assert said == told


def test_what_was_never_reached_is_said():
    cover = Cover.of(RunConfig(profile="reference-strict"))
    cover.add(Reached(5, ("sim-S07",), ("next",), ("NONE",), ((1,), (2,))))
    cover.add(Reached(6, (), ("next",), ("NONE",), ((3,),)))
    text = cover_page(cover, "ottla sim coverage --seeds <2>")
    assert "1 of " in text
    assert "&lt;2&gt;" in text
    (row,) = re.findall(r"<tr><th>sim-S07</th>.*?</tr>", text)
    assert "<td class='n'>1</td><td class='n'>50.0%</td><td class='n'>5</td>" in row
    (row,) = re.findall(r"<tr><th>sim-S08</th>.*?</tr>", text)
    assert "never reached" in row
    (picture,) = pictures(text)
    assert picture.get("aria-label")


def test_a_page_names_each_state_that_was_reached():
    cover = Cover.of(RunConfig(profile="reference-strict"))
    seen = (2, 0, 1, 2, 3, 1, 0, "crash")
    cover.add(Reached(5, (), (), (), ((0, 0, 0, 0, 0, 0, 0, "start"),)))
    cover.add(Reached(6, (), (), (), (seen,)))
    (row,) = re.findall(r"<tr><th>2/0/1/2/3/1/0/crash</th>.*?</tr>", cover_page(cover, "ottla"))
    assert "a node goes down: 2 nodes are up, nobody leads" in row
    assert "<td class='n'>1</td><td class='n'>50.0%</td><td class='n'>6</td>" in row
