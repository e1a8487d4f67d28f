"""Brokers that only say what became of each request, for hunts whose differences are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.compare.brokers import ProfileBroker
from ottla.compare.case import Case, Outcome, Step
from ottla.compare.explained import Explanation
from ottla.compare.fuzz.hunt import Found, Hunt
from ottla.compare.requests import Versions
from ottla.compare.running import Comparison
from ottla.compare.transcript import Transcript, reply_to

PROFILE = "kafka-4.3"
SEED = 1


class Told(ProfileBroker):
    """A broker that answers from a script: by the number of a step, what becomes of it."""

    def __init__(self, name: str, outcomes: Callable[[Step], Outcome]):
        super().__init__(PROFILE)
        self.name = name
        self.outcomes = outcomes
        self.asked: list[tuple[Step, ...]] = []

    def versions(self) -> Versions:
        """Produce and Fetch."""
        return {0: (3, 9), 1: (4, 11)}

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """What the script says."""
        self.asked += [case.steps for case in cases]
        return [self.transcript(case, versions) for case in cases]

    def transcript(self, case: Case, versions: Versions) -> Transcript:
        """What becomes of one case."""
        replies = tuple(
            reply_to(step, self.outcomes(step), b"", None, took=0.0, versions=versions)
            for step in case.steps
        )
        return Transcript(case.name, self.name, 0, {}, versions, replies)


def told_apart(
    outcomes: Callable[[Step], Outcome],
    steps: int = 400,
    explanations: Sequence[Explanation] = (),
) -> tuple[Any, list[Found]]:
    """A hunt to its end, and what it found: the other broker closes every connection."""
    target = Told("a", outcomes)
    other = Told("b", lambda _: Outcome.CLOSED)
    comparison = Comparison(target, other, PROFILE, explanations, live=True)
    hunt = Hunt(comparison, SEED, steps)
    return hunt, [each for each in hunt.run() if isinstance(each, Found)]


def only_fetches(step: Step) -> Outcome:
    """Silence to a fetch."""
    return Outcome.SILENT if getattr(step.ask, "api", "") == "fetch" else Outcome.CLOSED
