"""The page of an experiment: one file that needs nothing else, with every figure and every reason.

Reports here are made of invented figures: what a run measures is tested elsewhere. What is no such
page is not written over.
"""

import re
from html import unescape
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from cli_process import ottla
from ottla.report.experiment.markdown import is_section, markdown
from ottla.report.experiment.page import is_page, page
from ottla.report.page.chart import draw
from ottla.sim.experiments import acks, idempotence, pipelining
from ottla.sim.experiments.model import Chart, Series

FIGURES = {
    "pipelining": {"rate": 5_494.0, "inside_ms": 1.0, "trip_ms": 154.0},
    "idempotence": {"wait": 2.5, "trip": 2.4, "client": 0.1},
    "acks": dict.fromkeys((*acks.TOOK, "handed", "acknowledged", "lost", "too few"), 3.0),
}
EXPERIMENTS = (pipelining.EXPERIMENT, idempotence.EXPERIMENT, acks.EXPERIMENT)


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_everything_of_the_report_is_on_the_page(experiment):
    figures = FIGURES[experiment.name]
    report = experiment.report({each.key: [figures] for each in experiment.variants})
    text = page(experiment, report, "ottla sim experiment")
    assert not re.search(r"(src|href)=|url\((?!#)", text)
    cells = [unescape(each) for each in re.findall(r"<td class=\"[^\"]*\">(.*?)</td>", text)]
    assert cells == [each for line in report.lines for each in (*line.cells, line.reason)]
    assert len(pictures(text)) == len(report.charts)
    for each in (*report.findings, experiment.question):
        assert each.replace("'", "&#x27;") in text


def test_a_figure_and_its_unit_stay_on_one_line():
    """140 ms was broken in two; the last rule for such a cell holds."""
    figures = FIGURES["pipelining"]
    experiment = pipelining.EXPERIMENT
    text = page(experiment, experiment.report({v.key: [figures] for v in experiment.variants}), "")
    assert '<td class="n">140 ms</td>' in text
    spaces = re.findall(r"^\.scroll t[^{]*\{[^}]*white-space: (\w+)", text, re.MULTILINE)
    assert spaces[-1] == "nowrap"


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_as_markdown_it_is_one_table_with_its_reasons_below(experiment):
    figures = FIGURES[experiment.name]
    report = experiment.report({each.key: [figures] for each in experiment.variants})
    text = markdown(experiment, report, "ottla sim experiment")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert {len(row) for row in rows} == {len(report.columns) + 1}
    assert len(rows) == len(report.lines) + 2
    assert max(len(line) for line in text.splitlines() if not line.startswith("| ")) <= 120
    notes = dict(re.findall(r"^(\d+)\. (.*)$", re.sub(r"\n +", " ", text), re.MULTILINE))
    for row, line in zip(rows[2:], report.lines, strict=True):
        assert notes[row[-1].strip(" |")] == line.reason


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_what_an_experiment_wrote_is_known_again(experiment):
    report = experiment.report(
        {each.key: [FIGURES[experiment.name]] for each in experiment.variants}
    )
    written = (experiment, report, f"ottla sim experiment {experiment.name} --seeds 1 --first 0")
    section = markdown(*written)
    assert is_section(section)
    assert is_page(page(*written))
    assert not is_section(f"# Notes\n\n{section}")
    assert not is_section(f"{section}\n{section}")
    assert not is_section("## Notes\n")
    assert not is_page("<!doctype html><title>Notes</title>")


@pytest.mark.parametrize("name", ["notes.md", "notes.html"])
def test_a_file_that_is_no_page_of_an_experiment_is_left_alone(name, tmp_path):
    path = tmp_path / name
    path.write_text("# Notes\n")
    done = ottla("sim", "experiment", "pipelining", "--seeds", "1", "--out", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{path}: is there, and no page of an experiment; name another file" in done.stderr
    assert path.read_text() == "# Notes\n"


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
