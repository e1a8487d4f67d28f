"""No step is longer than 5 s without a word: the one line of progress of all commands.

Clocks are ours. Auditing a thousand records took minutes without a word, for a line that nobody
watched said its state once a minute, and of nothing but what it was told.
"""

import io
from itertools import pairwise

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from awaiting import await_that
from ottla.commands.sim import telling
from ottla.commands.sim.app import app
from ottla.commands.sim.interrupting import interruptible
from ottla.commands.sim.telling import BEAT_S, NOW_AND_THEN_S, Line, busy
from ottla.commands.usage import UsageError


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """As for users (`unhurried` in tests/conftest.py is for all other tests)."""
    monkeypatch.setattr(telling, "NOW_AND_THEN_S", NOW_AND_THEN_S)


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True

    def seen(self):
        """The line as it is now."""
        return self.getvalue().rpartition("\r")[2].rstrip()


def pass_time(line, clock, seconds):
    """The beats of so much time."""
    for _ in range(round(seconds / BEAT_S)):
        clock.now += BEAT_S
        line.beat()


def test_who_watches_no_terminal_waits_less_than_5_seconds_for_a_word():
    clock, said = Clock(), []
    line = Line(lambda text: said.append((clock.now, text)), clock)
    line.doing("starting Spark")
    pass_time(line, clock, 60)
    times = [100.0, *(at for at, _ in said)]
    assert max(b - a for a, b in pairwise(times)) < 5
    assert times[-1] > 155
    assert said[0][1] == f"starting Spark, {NOW_AND_THEN_S} s"


def test_a_step_that_tells_nothing_more_is_said_to_stand_still():
    clock = Clock()
    said: list[str] = []
    line = Line(said.append, clock)
    line.show("3 of 9 seeds")
    pass_time(line, clock, 8)
    assert said == ["3 of 9 seeds; 4 s since then", "3 of 9 seeds; 8 s since then"]


def test_a_terminal_sees_the_seconds_move(monkeypatch):
    clock, screen = Clock(), Screen()
    monkeypatch.setattr("sys.stderr", screen)
    line = Line(clock=clock)
    line.doing("report")
    assert screen.seen() == "report, 0 s"
    pass_time(line, clock, 3)
    assert screen.seen() == "report, 3 s"
    line.show("1 of 2")
    assert screen.seen() == "1 of 2"
    line.clear()
    before = screen.getvalue()
    pass_time(line, clock, 3)
    assert screen.getvalue() == before


def test_what_is_begun_is_no_result(capsys):
    """The last state is said as one; `running the first seeds` would have been, too."""
    line = Line()
    line.doing("running the first seeds")
    line.end()
    assert capsys.readouterr().out == ""
    line.show("2 of 2 seeds")
    line.end()
    assert capsys.readouterr().out == "2 of 2 seeds\n"


@pytest.mark.parametrize("within", [busy, lambda text: interruptible(_doing(text), lambda: "")])
def test_it_beats_by_itself(monkeypatch, capsys, within):
    monkeypatch.setattr(telling, "NOW_AND_THEN_S", 0)
    said = []

    def told():
        said.append(capsys.readouterr().err)
        return "".join(said).count("one long step, ") > 2

    with within("one long step"):
        await_that(told, 10, "nothing is said")


def _doing(text):
    line = Line()
    line.doing(text)
    return line


@pytest.mark.slow
def test_one_run_says_that_it_goes_on(monkeypatch):
    """A run of its own may take minutes; so may a page about it."""
    steps = []

    def doing(_, text):
        steps.append(text)

    monkeypatch.setattr(Line, "doing", doing)
    short = ("--set", "load_ms=200", "--set", "records=2", "--set", "fault_every_ms=0")
    for words in (["run", "--seed", "5"], ["replay", "5"], ["show", "5"], ["diff", "5", "5"]):
        steps.clear()
        CliRunner().invoke(app, [*words, *short])
        assert steps[0] == "running seed 5", words


def test_every_command_is_here_or_is_over_at_once():
    """A new command has to say what goes on while it works; then it is added here."""
    names = set(vars(get_command(app))["commands"])
    assert names == {
        "cover", "coverage", "diff", "experiment", "explain", "export", "meta", "mutants", "play",
        "replay", "run", "show", "shrink", "sweep", "validate", "why",
    }  # fmt: skip


def test_a_line_that_nobody_can_be_shown_ends_no_command(monkeypatch):
    tried = []

    def gone(text):
        tried.append(text)
        raise UsageError("standard output is closed")

    monkeypatch.setattr(telling, "NOW_AND_THEN_S", 0)
    with Line(gone) as line:
        line.tell(lambda _: "goes on")
        await_that(lambda: len(tried) > 1, 10, "it has ended")
