"""Compares two brokers over cases: one result for each case, as soon as it is there.

A case that needs what one of the two does not serve (a version, a config of its topic, several
nodes, a fault) is left out, with the reason, and so is one that says nothing of a profile. Whatever
else keeps a case from being played ends the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.broker.wire.client_requests import API_KEYS
from ottla.compare.brokers import Broker
from ottla.compare.case import Case
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.explained import Explanation, explanation_of
from ottla.compare.judging import Difference, judge
from ottla.compare.requests import Versions
from ottla.compare.transcript import Transcript


@dataclass(frozen=True)
class Result:
    """What came of one case."""

    case: Case
    target: Transcript | None = None
    other: Transcript | None = None
    """None if the case was left out; the target may have played it all the same."""
    differences: Sequence[Difference] = ()
    """Those that nothing explains."""
    explained: Sequence[tuple[Difference, Explanation]] = ()
    left_out: str = ""
    """Why the case was not played."""

    @property
    def word(self) -> str:
        """The result in one word."""
        if self.left_out:
            return "left out"
        if self.differences:
            return "differs"
        return "explained" if self.explained else "alike"


class Drawn(NamedTuple):
    """What was drawn, if no written cases were played: then the results are the differences that
    were found, one of each kind."""

    seed: int
    steps: int
    sequences: int
    differing: int
    """Sequences that differ."""
    explained: int
    """Differences that have their reason in the list."""
    left_out: int
    """Sequences that were not played, because a broker refuses their topics."""
    why: str
    """Why the first of these was not."""


@dataclass
class Comparison:
    """Two brokers, and what the results so far come to."""

    target: Broker
    other: Broker
    profile: str
    """The profile that cases are read for, which `other` plays."""
    explanations: Sequence[Explanation] = ()
    live: bool = False
    """Whether the target is a broker of its own, not another profile."""
    results: list[Result] = field(default_factory=list)
    drawn: Drawn | None = None
    ended: str = ""
    """What ended it before all was compared; empty: nothing did."""

    def run(self, cases: Iterable[Case]) -> Iterator[Result]:
        """Play each case to both brokers. Raises `CompareError` if one cannot be played."""
        versions, others = self.target.versions(), self.other.versions()
        for case in cases:
            result = self._run(case, versions, others)
            self.results.append(result)
            yield result

    def _run(self, case: Case, versions: Versions, others: Versions) -> Result:
        why = unsaid(case, self.profile, self.target.profile)
        why = why or unoffered(case, self.target, versions)
        if why:
            return Result(case, left_out=why)
        target = None
        try:
            target = self._play(self.target, case, versions)
            why = unoffered(case, self.other, others)
            if why:
                return Result(case, target, left_out=why)
            other = self._play(self.other, case, versions)
        except UnplayableError as error:
            return Result(case, target, left_out=str(error))
        return self.explain(case, target, other, judge(case, target, other, self.profile))

    def explain(
        self, case: Case, target: Transcript, other: Transcript, found: Iterable[Difference]
    ) -> Result:
        """The result of a case with these differences, of which the list may explain some."""
        differences, explained = [], []
        for each in found:
            why = explanation_of(each, self.explanations, self.profile, live=self.live)
            if why is None:
                differences.append(each)
            else:
                explained.append((each, why))
        return Result(case, target, other, differences, explained)

    @staticmethod
    def _play(broker: Broker, case: Case, versions: Versions) -> Transcript:
        try:
            return broker.play(case, versions)
        except UnplayableError as error:
            raise UnplayableError(f"{broker.name}: {error}") from None
        except CompareError as error:
            told = str(error)
            raise CompareError(told if case.name in told else f"{case.name}: {told}") from error

    def stale(self) -> list[Explanation]:
        """Entries of the list whose cases were played, and that are about no difference. What was
        drawn says nothing of them: it need not have met all."""
        if self.drawn is not None:
            return []
        played = [each for each in self.results if not each.left_out]
        found = [
            difference
            for result in played
            for difference in (*result.differences, *(each for each, _ in result.explained))
        ]
        return [
            each
            for each in self.explanations
            if self.live
            and any(each.about(result.case.name, self.profile) for result in played)
            and not any(each.explains(difference, self.profile) for difference in found)
        ]

    def counts(self) -> Mapping[str, int]:
        """How many results of each kind there are."""
        words = ("alike", "explained", "differs", "left out")
        return {word: sum(each.word == word for each in self.results) for word in words}

    @property
    def compared(self) -> bool:
        """Whether anything was compared: not all was left out."""
        if self.drawn is not None:
            return self.drawn.left_out < self.drawn.sequences
        return not all(each.left_out for each in self.results)

    @property
    def status(self) -> int:
        """The exit status: 0 if nothing differs that is not explained, else 1; 2 if it ended too
        early."""
        if self.ended:
            return 2
        return 1 if self.counts()["differs"] or self.stale() else 0


def unsaid(case: Case, *profiles: str) -> str:
    """Why a case is not played where these profiles are compared; empty if it is."""
    told = ((each, case.left_out.get(each)) for each in profiles)
    return next((f"{profile}: {why}" for profile, why in told if why is not None), "")


def unoffered(case: Case, broker: Broker, versions: Versions) -> str:
    """Why a broker that serves these versions cannot play a case; empty if it can."""
    if case.faults and not broker.does_faults:
        told = ", ".join(case.faults)
        return f"{broker.name}: nobody there does what the case does to nodes ({told})"
    if case.settings and not broker.does_faults:
        return f"{broker.name}: nobody there sets {', '.join(case.settings)}"
    if case.nodes > broker.nodes:
        there = "1 node" if broker.nodes == 1 else f"{broker.nodes} nodes"
        return f"{broker.name} has {there}, and the case needs {case.nodes}"
    return unserved(case.needs, broker.name, versions)


def unserved(needs: Mapping[str, int | None], name: str, versions: Versions) -> str:
    """Why a broker cannot play a case with these needs; empty if it can."""
    for api, version in needs.items():
        served = versions.get(API_KEYS[api])
        if served is None:
            return f"{name} does not serve {api}"
        if version is not None and not served[0] <= version <= served[1]:
            return f"{name} serves {api} {served[0]} to {served[1]}, not {version}"
    return ""
