"""The study on docs/how-to/add-a-study.md is run as it stands there."""

import re
import shlex
from pathlib import Path

import pytest

from cli_process import ottla
from ottla.broker.errors import ConfigError
from ottla.sim.nemesis.failures import FAILURES
from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.study import parse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-study.md"


@pytest.mark.slow
def test_the_study_on_the_page_runs_as_the_page_says(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^\$ (ottla study run .*)$", page, re.MULTILINE)
    assert text.count("\n") <= 10
    _, *words, name, option, out = shlex.split(command)
    (tmp_path / name).write_text(text, encoding="utf-8")
    asked = (*words, tmp_path / name, option, tmp_path / out, "--engine", "duckdb")
    done = ottla(*asked)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^The median is \d+\.\d ms at best, \d+\.\d ms at worst\.$", done.stdout, re.MULTILINE
    )
    report = (tmp_path / out / "report.html").read_text(encoding="utf-8")
    assert "What a promise costs" in report
    assert "40 runs" in report


def test_what_goes_wrong_may_be_asked_of_the_study_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (asked,) = re.findall(r"`(failure = \[.*?\])`", page)
    varied = parse(text.replace("grid = { ", f"grid = {{ {asked}, "))
    assert len(varied.variants) == 2 * len(parse(text).variants)


def test_the_reference_lists_what_may_go_wrong_and_the_least_load_of_each():
    reference = PAGE.parents[1] / "reference" / "studies.md"
    found = re.findall(
        r"^\| `(.+?)` \| .* \| (7,\d00) \|$", reference.read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {name: int(least.replace(",", "")) for name, least in found}
    assert list(listed) == [each.name for each in FAILURES]
    for each in FAILURES:
        each.check(RunConfig(load_ms=listed[each.name]))
        with pytest.raises(ConfigError):
            each.check(RunConfig(load_ms=listed[each.name] - 1))
