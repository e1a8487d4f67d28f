"""docs/reference/coverage.md is what was measured, and no zero on it is hidden.

To measure anew: run the two commands of `measured.json` with `--json`, and put what they print into
that file. OTTLA_REWRITE=1 writes the page anew.
"""

from __future__ import annotations

import os
import shlex

import pytest

from ottla.commands.sim.asking import config_of
from ottla.sim.coverage.deliveries import DELIVERIES
from ottla.sim.coverage.overlaps import OVERLAPS
from ottla.sim.coverage.steps import MET
from ottla.sim.settings.settings import RunConfig
from pages_coverage import EXCUSED, PAGE, coverage_markdown, measured


def test_the_page_is_what_was_measured():
    written = coverage_markdown(measured())
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


@pytest.mark.parametrize(
    ("which", "wanted"), [("overlaps", OVERLAPS), ("steps", MET), ("messages", DELIVERIES)]
)
def test_what_was_measured_is_what_is_counted(which, wanted):
    rows = {tuple(row["what"]): row for row in measured()["counts"][which]}
    assert set(wanted) <= set(rows)
    assert [what for what in EXCUSED[which] if rows[what]["times"]] == []


def test_the_counts_are_of_a_plain_sweep_of_a_thousand_seeds():
    wanted: dict[str, int] = {"counts": 1_000, "functions": 200}
    for which, least in wanted.items():
        told = measured()[which]
        words = shlex.split(told["command"])
        given = [word for at, word in enumerate(words) if words[at - 1] == "--set"]
        assert config_of(None, given) == RunConfig()
        assert words[:3] == ["ottla", "sim", "coverage"]
        assert int(words[words.index("--seeds") + 1]) == told["seeds"] >= least
