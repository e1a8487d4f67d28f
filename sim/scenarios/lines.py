"""The commands of a scenario, line by line; messages about mistakes name the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_MISTAKES = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""What commands raise for words without a meaning: commands are written for people who know
them."""


class ScenarioError(Exception):
    """The file is no valid scenario; the text is one line that says where and why."""


class Line(NamedTuple):
    """A command, and its line."""

    number: int
    """The line's number, from 1."""
    text: str

    @property
    def words(self) -> list[str]:
        """The words of the command."""
        return self.text.split()


def commands_in(text: str) -> Iterator[Line]:
    """All commands of a scenario."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(">") and line[1:].split():
            yield Line(number, line[1:].strip())


def acts_of(text: str) -> Sequence[list[Line]]:
    """The commands of each act, without those that replay it with a mutant. Raises
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
    """Run one command. Raises `ScenarioError` and `BrokerBug`."""
    try:
        run()
    except _MISTAKES as error:
        told = str(error) or type(error).__name__
        if isinstance(error, TypeError):  # its text names a function of ours
            told = "too few words, or too many"
        raise ScenarioError(
            f"line {line.number}: > {line.text}: {told}; sim/scenarios/script.py lists the commands"
        ) from error
