"""Charts as pictures: what is published, and figures that stand where they should."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from ottla.report.page.chart import draw
from ottla.sim.studies.charts import Chart, Series


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def test_published_figures_are_rings_that_nothing_joins_and_stand_where_they_should():
    chart = Chart(
        "rates",
        "in flight",
        "records/s",
        (
            Series("here", ((1, 10.0), (2, 20.0), (4, 40.0))),
            Series("there", ((1, 12.0), (4, 36.0)), published=True),
        ),
    )
    (picture,) = pictures(draw(chart))
    dots = [each for each in picture.iter("circle") if each.get("class") == "dot s1"]
    rings = [each for each in picture.iter("circle") if each.get("class") == "ring s1"]
    assert (len(dots), len(rings), len(list(picture.iter("polyline")))) == (3, 2, 1)
    at = [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in dots]
    slopes = {round((y2 - y1) / (x2 - x1), 2) for (x1, y1), (x2, y2) in pairwise(at)}
    assert len(slopes) == 1, "ten more for each one more: a straight line"
    assert rings[0].find("title").text == "there: 12 at 1"


def test_bars_are_as_high_as_what_they_stand_for():
    bars = Series("lost", ((0.0, 50.0), (1.0, 25.0), (2.0, 0.0)))
    (picture,) = pictures(draw(Chart("lost", "acks", "records", (bars,), ("0", "1", "all"))))
    heights = [
        float(each.get("height", ""))
        for each in picture.iter("rect")
        if (each.get("class") or "").startswith("bar")
    ]
    assert len(heights) == 2
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)


def test_the_figure_above_a_bar_stays_below_what_its_axis_is_called():
    """It stood in it where an interval ended at the last mark of the axis."""
    bar = Series("a", ((0, 145.0),), spans=((97.0, 199.0),))
    (root,) = pictures(draw(Chart("t", "x", "what it is", (bar,), names=("one",))))
    places = {each.text: float(each.get("y")) for each in root.iter("text")}
    assert places["145"] - places["what it is"] >= 8
