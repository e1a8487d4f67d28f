"""What `ottla sim why` says can be read off the table that it prints."""

import re

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.sim.sweeps.why import Curve, Point

FAILING = ["0", "--set", "mutants=M06", "--set", "load_ms=1000", "--set", "records=20"]
ROW = re.compile(r" *[\d.]+ s +(\d+) +(\d+%) +(\d+%) +\d+% to \d+%  ", re.MULTILINE)
RISE = re.compile(r"rises most, from (\d+%) to (\d+%), between event (\d+) .* and event (\d+) \(")


@pytest.fixture
def why(monkeypatch):
    """The command's output for a curve whose shares go down before they rise."""

    def made_up(outcome, *_):
        hits = {0: 1, 10: 0, 20: 0, 30: 4}
        points = [Point(eid, outcome.rows[eid].t_us, each, 4) for eid, each in hits.items()]
        return Curve("sim-I09", tuple(points))

    monkeypatch.setattr("ottla.sim.sweeps.why.why", made_up)
    told = CliRunner().invoke(app, ["why", *FAILING])
    assert told.exit_code == 0, told.output
    return told.stdout


def test_the_rise_is_between_two_figures_of_the_table(why):
    """It said 8 %, which the table had nowhere: the figures are those of the fit."""
    (before, after, left, right) = RISE.findall(why)[0]
    fit = {eid: fitted for eid, _, fitted in ROW.findall(why)}
    assert fit == {"0": "8%", "10": "8%", "20": "8%", "30": "100%"}
    assert (fit[left], fit[right]) == (before, after)


def test_the_fit_is_named_before_anything_is_said_by_it(why):
    lines = why.splitlines()
    (head,) = (place for place, line in enumerate(lines) if line.split()[:1] == ["at"])
    assert lines[head].split()[:4] == ["at", "event", "share", "fit"]
    assert lines[head + 5].startswith("fit: the best one that never falls")
    assert lines[head + 6].startswith("the share rises most, from 8%")
