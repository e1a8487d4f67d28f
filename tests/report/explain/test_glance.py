"""The run at a glance: what is drawn of many partitions stands in one picture and stays readable.

Scenes of partitions lie over each other in time; their ground must not. The runs are made up.
"""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from explain_big_run import Big
from ottla.report.explain.glance import Glance
from ottla.report.explain.report import STYLE, page
from ottla.report.explain.scenes import Moment, Scene

END = 1_000_000
PIXEL = END / 1_000
"""About as long as one is wide."""


def glance():
    """Of a run that takes a second."""
    recording = Big().recording()
    recording.rows[-1] = recording.rows[-1]._replace(t_us=END)
    return Glance(recording)


def scene(start, end):
    return Scene([Moment(None, round(at), [], "") for at in (start, end)])


def ground(picture):
    """Where what is drawn below begins and ends, from the left to the right."""
    boxes = [each.attrib for each in ET.fromstring(picture) if each.get("class") == "scene"]
    return sorted((float(each["x"]), float(each["x"]) + float(each["width"])) for each in boxes)


def lie_apart(stretches):
    return all(left[1] < right[0] for left, right in pairwise(stretches))


def test_what_is_drawn_of_several_partitions_at_a_time_is_shaded_once():
    """With 40 partitions the shades added up, and half of the picture was dark blue."""
    drawn = glance()
    scenes = [scene(500_000 + n, 900_000 - n) for n in range(20)]
    scenes += [scene(100_000, 200_000), scene(880_000, 950_000), scene(150_000, 250_000)]
    found = ground(drawn.draw(scenes, None))
    wanted = [(drawn.x(100_000), drawn.x(250_000)), (drawn.x(500_000), drawn.x(950_000))]
    assert found == [pytest.approx(each, abs=0.2) for each in wanted]


@pytest.mark.parametrize("apart", [0.1, 0.7, 1.9, 2.04, 2.6, 3.3])
def test_short_scenes_that_lie_close_together_are_not_laid_over_each_other(apart):
    """Each is drawn wider than it is, to be seen at all."""
    drawn = glance()
    scenes = [scene(n * apart * PIXEL, n * apart * PIXEL) for n in range(100)]
    found = ground(drawn.draw(scenes, None))
    assert lie_apart(found)
    assert all(end - start > 1.9 for start, end in found)
    shaded = [any(a <= drawn.x(each.moments[0].at) + 1 <= b for a, b in found) for each in scenes]
    assert all(shaded)


def test_a_scene_without_moments_has_no_ground():
    assert ground(glance().draw([Scene([], "left out")], None)) == []


@pytest.mark.parametrize("invariant", ["sim-I03", "sim-I31"])
def test_a_page_marks_the_first_bad_event_once_at_a_glance(invariant):
    """That which is in no partition too, which is told in each."""
    text = page(Big(partitions=20, turns=6, failed=True, invariant=invariant).recording())
    (picture,) = re.findall(r'<svg class="glance".*?</svg>', text, re.DOTALL)
    assert picture.count('class="badline"') == picture.count(">first bad event<") == 1
    assert ground(picture)
    assert lie_apart(ground(picture))


def test_the_time_of_an_item_stays_on_its_line():
    """`108.1540 s`, in bold, was told in two."""
    style = STYLE.read_text(encoding="utf-8")
    (rules,) = re.findall(r"^\.story time \{([^}]*)\}", style, re.MULTILINE)
    assert "white-space: nowrap" in rules
