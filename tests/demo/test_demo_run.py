"""The main job itself, run as a user runs it: small in the quick suite, whole in the slow one."""

import re

import pytest

from cli_process import ottla

pytestmark = pytest.mark.clients


WITHIN = 300
"""Seconds that a hanging demo is given: half a minute where nothing else runs, much more where a
machine has other work."""


def demo(folder, *arguments):
    """Run it and return the process with its report."""
    done = ottla("demo", "--out", folder, *arguments, within=WITHIN)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "FAIL" not in done.stdout
    return done.stdout, (folder / "demo.html").read_text(encoding="utf-8")


def column(told, name):
    """The number beside a name in the table."""
    (number,) = re.findall(rf"^ *{name} +([\d,]+)", told, re.MULTILINE)
    return int(number.replace(",", ""))


@pytest.mark.slow
def test_a_small_run_earns_every_column(tmp_path):
    told, report = demo(tmp_path, "--records", 3000, "--seconds", 1)
    assert column(told, "records") >= 3000
    assert column(told, "failovers") >= 6
    for name in ("retries", "duplicates answered", "duplicates parked", "gaps refused"):
        assert column(told, name) > 0
    assert "in this run nothing was lost, stored twice or out of order." in told
    assert "all checks passed" in report
    assert f"report: {tmp_path / 'demo.html'}" in told


MOVES = re.compile("\x1b\\[[0-9?;]*[A-HJKSTfhl]")
"""The cursor is moved, hidden or shown, a line erased; colours end in m."""


@pytest.mark.slow
def test_who_asks_for_colours_gets_them_and_still_no_line_that_is_written_over(
    tmp_path, monkeypatch
):
    """FORCE_COLOR makes a pipe a terminal for rich: the log of a CI run was full of bars."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    told, _ = demo(tmp_path, "--records", 500, "--seconds", 0.5)
    assert "\x1b[1mottla demo\x1b[0m" in told
    assert not MOVES.search(told)


@pytest.mark.slow(seconds=20)
def test_the_whole_run(tmp_path):
    told, _ = demo(tmp_path)
    assert column(told, "records") >= 100_000
    assert column(told, "failovers") >= 6


@pytest.mark.slow
@pytest.mark.parametrize("acks", [1, 0])
def test_weaker_acks_lose_records_and_every_loss_is_explained(tmp_path, acks):
    told, report = demo(tmp_path, "--acks", acks, "--records", 10_000, "--seconds", 4)
    lost = column(told, "acknowledged and lost")
    assert lost > 0
    assert column(told, "losses explained") == lost
    assert column(told, "records acknowledged") - column(told, "records in the log") == lost
    assert "What was lost" in report
    assert "not explained" not in report
