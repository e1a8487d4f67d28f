"""Scenarios that anybody wrote, from a file: a mistake in one is told by its line.

Those that come with Ottla open with an id and say what is legal (`files.py`). Others need no such
opening: their name is the file's, and what they say of themselves is their first comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ottla.sim.scenarios.files import Opening, opening_of
from ottla.sim.scenarios.script import Script
from ottla.sim.scenarios.telling import found
from ottla.sim.world.world import BrokerBug

SUFFIX = ".txt"
_MISTAKES = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""What commands raise whose words have no meaning: they are written for people who know them."""


class ScenarioError(Exception):
    """A scenario is none; the text is one line that says where and why."""


class Line(NamedTuple):
    """A command, and where it stands."""

    number: int
    """From 1."""
    text: str

    @property
    def words(self) -> list[str]:
        """What it says."""
        return self.text.split()


def commands_in(text: str) -> Iterator[Line]:
    """Every command of a scenario."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(">") and line[1:].split():
            yield Line(number, line[1:].strip())


def acts_of(text: str) -> Sequence[list[Line]]:
    """The commands of each act; what is played again without a mechanism is not among them. Raises
    `ScenarioError`."""
    acts: list[list[Line]] = []
    for line in commands_in(text):
        if line.words[0] == "nodes":
            acts.append([])
        elif not acts:
            raise ScenarioError(f"line {line.number}: no nodes yet; the first command is > nodes 3")
        if line.words[0] != "mutant":
            acts[-1].append(line)
    if not acts:
        raise ScenarioError("has no command; one is a line such as > nodes 3")
    return acts


def run_line(run: Callable[[], None], line: Line) -> None:
    """Run one command. Raises `ScenarioError`, and `BrokerBug`."""
    try:
        run()
    except _MISTAKES as error:
        told = str(error) or type(error).__name__
        if isinstance(error, TypeError):  # Python's words are about a function of ours
            told = "too few words, or too many"
        raise ScenarioError(
            f"line {line.number}: > {line.text}: {told}; sim/scenarios/script.py lists the commands"
        ) from error


def said_of(path: Path, text: str) -> Opening:
    """What a scenario says of itself, or what is known of one that does not say it."""
    try:
        return opening_of(text)
    except ValueError:
        comments = takewhile(lambda line: line.startswith("#"), text.splitlines())
        said = " ".join(line.removeprefix("#").strip() for line in comments)
        return Opening(path.stem, "", said, "", "", ())


def play(text: str) -> tuple[str, Sequence[str]]:
    """The scenario with what happens below each of its commands, and what was found that none of
    its lines expects. Raises `ScenarioError`."""
    acts_of(text)
    script = Script()
    at = {line.number: line for line in commands_in(text)}
    try:
        for number, line in enumerate(text.splitlines(), 1):
            if not line.startswith("  "):
                script.out.append(line)
            if number in at:
                run_line(partial(script.command, at[number].text), at[number])
    except BrokerBug as bug:
        script.ended_by(bug)
        script.unexpected.extend(map(found, script.found))
    return "\n".join(script.out) + "\n", script.unexpected
