"""What a hunt leaves behind: cases in a folder, and reports, also if it ends too early.

Files of others, and of earlier hunts, are never overwritten.
"""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from compare_told import PROFILE, SEED, Told, only_fetches, told_apart
from ottla.commands import compare_fuzz
from ottla.commands.compare import reported
from ottla.commands.compare_files import Files, write_case
from ottla.commands.compare_fuzz import Draw
from ottla.commands.usage import UsageError
from ottla.compare.case import Outcome
from ottla.compare.errors import CompareError
from ottla.compare.finding import load_cases
from ottla.compare.running import Comparison


def test_a_file_is_never_overwritten(tmp_path):
    _, (found,) = told_apart(only_fetches)
    first = write_case(tmp_path, found).path
    assert write_case(tmp_path, found).path == first
    second = write_case(tmp_path, found._replace(sketch={**found.sketch, "title": "Another"})).path
    assert first.name == "fetch-outcome-silence-not-closed.toml"
    assert second.name == "fetch-outcome-silence-not-closed-2.toml"
    assert len(load_cases([str(tmp_path)])) == 2


def test_a_file_that_cannot_be_read_is_told_and_ends_no_hunt(tmp_path):
    """It ended the hunt, and the message named the folder."""
    _, (found,) = told_apart(only_fetches)
    (tmp_path / "fetch-outcome-silence-not-closed.toml").mkdir()
    path, (unread,) = write_case(tmp_path, found)
    assert path.name == "fetch-outcome-silence-not-closed-2.toml"
    assert unread.endswith("closed.toml: Is a directory")


def test_a_case_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    """Half a case was left behind by a full disk; it then ended every comparison of the folder."""

    def full(path, data):
        path.open("wb").write(data[:9])
        raise OSError(28, "No space left on device")

    _, (found,) = told_apart(only_fetches)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_case(tmp_path / "out", found)
    assert list((tmp_path / "out").iterdir()) == []


class Stops(Told):
    """A broker that stops after it was asked a few times."""

    def play_all(self, cases, versions, like=()):
        if len(self.asked) > 60:
            raise CompareError("a: Connection refused; is it up?")
        return super().play_all(cases, versions, like)


def test_if_a_broker_stops_reports_have_what_was_found_till_then(tmp_path, capsys):
    """There were none."""
    html, as_json, junit = (tmp_path / each for each in ("page.html", "all.json", "ci.xml"))
    files = Files(html, as_json, junit)
    target, other = Stops("a", only_fetches), Told("b", lambda _: Outcome.CLOSED)
    comparison = Comparison(target, other, PROFILE, live=True)
    with pytest.raises(CompareError, match="is it up"), reported(comparison, files):
        compare_fuzz.hunt(comparison, Draw(10_000, SEED, tmp_path / "out"))
    told = json.loads(as_json.read_text(encoding="utf-8"))
    assert (told["status"], told["ended"]) == (2, "a: Connection refused; is it up?")
    assert told["drawn"]["differing"] >= 1
    assert len(told["cases"]) == 1
    suite = ET.parse(junit).getroot()
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "1")
    assert int(suite.attrib["tests"]) == len(suite)
    assert "Ended too early: a: Connection refused" in html.read_text(encoding="utf-8")
    assert capsys.readouterr().out.rstrip().endswith("; it ended too early")


def test_if_nothing_was_compared_there_is_no_report(tmp_path):
    comparison = Comparison(Told("a", only_fetches), Told("b", only_fetches), PROFILE)
    path = tmp_path / "all.json"
    with pytest.raises(CompareError), reported(comparison, Files(None, path, None)):
        raise CompareError("a: Connection refused; is it up?")
    assert not path.exists()
