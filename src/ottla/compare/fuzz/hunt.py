"""A hunt: sequence after sequence to two brokers, until enough steps are asked.

Of a sequence only the first step that differs counts: what comes after it may differ for the same
reason. The first difference of each kind is shrunk to a case that shows it alone; of the others
only the number is kept. A sequence that does not differ leaves nothing behind. One whose topics a
broker refuses is left out, as is each later one with such topics, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

from ottla.broker.wire.codec import API_NAMES
from ottla.compare.brokers import Broker
from ottla.compare.case import Case, Topic
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.fuzz.drawing import draw_sequence
from ottla.compare.fuzz.drawn import judge_drawn, with_expectations
from ottla.compare.fuzz.kinds import Kind, first_of, kind_of
from ottla.compare.fuzz.shrinking import Shrinker
from ottla.compare.fuzz.sketch import Sketch, case_of, without_defaults
from ottla.compare.judging import Difference
from ottla.compare.requests import Versions
from ottla.compare.running import Comparison, Drawn, Result
from ottla.compare.transcript import Transcript

AT_ONCE = 8
"""Sequences that a broker plays before the other one does."""
MOST_REPLAYS = 400
"""Of one difference, while it is shrunk."""
MOST_SECONDS = 60.0
"""Of one difference, while it is shrunk: a replay with a broker that is silent takes long."""
FOLDER = "fuzz"
"""The folder in the name of a drawn case."""


class Found(NamedTuple):
    """The first difference of a kind."""

    kind: Kind
    sequence: int
    step: int
    """In the sequence, from 1."""
    asked: int
    """How many steps the hunt had asked when it found this. A hunt of so many steps with the same
    seed finds it again."""
    sketch: Sketch
    """The case that shows it, as small as it became."""
    result: Result
    again: bool
    """Whether it showed again in the end, when it was played alone; else the sketch is the smallest
    that showed it, or the whole sequence up to that step if none did."""


@dataclass
class Hunt:
    """See the module's docstring. `comparison` gets a result for each kind."""

    comparison: Comparison
    seed: int
    most: int
    """Steps to ask."""
    steps: int = 0
    """Steps that are drawn so far; all are asked but those of sequences that are left out."""
    sequences: int = 0
    left_out: int = 0
    """Sequences that one of the two cannot play."""
    explained: int = 0
    """Differences that have their reason in the list."""
    differing: Counter[Kind] = field(default_factory=Counter)
    """How many sequences differ first so."""
    replays: int = 0
    """Of the difference that is being shrunk."""
    smallest: int = 0
    """Steps that it has by now."""
    clock: Callable[[], float] = monotonic
    """Seconds."""
    _refused: list[tuple[Sequence[Topic], str]] = field(default_factory=list)
    """Topics that a broker refuses, and why."""

    @cached_property
    def _versions(self) -> Versions:
        """Asked once: a profile starts a node to answer."""
        return self.comparison.target.versions()

    def run(self) -> Iterator[Kind | Found | None]:
        """Ask: a kind before it is shrunk, then what was found; None whenever some sequences are
        done. Raises `CompareError` if a broker cannot be asked."""
        served = shared(self._versions, self.comparison.other.versions())
        while self.steps < self.most:
            sketches = self._draw(served)
            cases = [
                case_of(each, f"{FOLDER}/seed-{self.seed}-sequence-{number}")
                for number, each in sketches.items()
            ]
            for number, result in zip(sketches, self._play(cases), strict=True):
                self.sequences += 1
                self.left_out += bool(result.left_out)
                self.explained += len(result.explained)
                first = first_of(result.differences)
                if first is not None:
                    kind = kind_of(result.case, first)
                    self.differing[kind] += 1
                    if self.differing[kind] == 1:
                        yield kind
                        found = self._found(number, sketches[number], result, first)
                        self._tell()
                        yield found
                self.steps += len(result.case.steps)
                self._tell()
            yield None

    def _draw(self, served: Mapping[str, tuple[int, int]]) -> dict[int, Sketch]:
        """The next sequences by their numbers, the last one cut to the steps that are left."""
        found: dict[int, Sketch] = {}
        left = self.most - self.steps
        while left > 0 and len(found) < AT_ONCE:
            number = self.sequences + len(found) + 1
            sketch = draw_sequence(self.seed, number, served)
            sketch["steps"] = sketch["steps"][:left]
            left -= len(sketch["steps"])
            found[number] = sketch
        return found

    def _play(self, cases: Sequence[Case]) -> list[Result]:
        """The results of cases; one whose topics a broker refuses is left out."""
        playable = [each for each in cases if not self._why_not(each)]
        try:
            played = iter(self._judge(playable))
        except UnplayableError as error:
            if len(playable) > 1:  # nobody knows which of them it was
                return [result for each in cases for result in self._play([each])]
            self._refused.append((playable[0].topics, str(error)))
            return self._play(cases)
        left_out = [self._why_not(each) for each in cases]
        return [
            Result(each, left_out=why) if why else next(played)
            for each, why in zip(cases, left_out, strict=True)
        ]

    def _why_not(self, case: Case) -> str:
        """Why a case is not played; empty if it is."""
        return next((why for topics, why in self._refused if topics == case.topics), "")

    def _judge(self, cases: Sequence[Case]) -> list[Result]:
        if not cases:
            return []
        mine = _played(self.comparison.target, cases, self._versions)
        others = _played(self.comparison.other, cases, self._versions, mine)
        return [
            judge_drawn(self.comparison, *each) for each in zip(cases, mine, others, strict=True)
        ]

    def _tell(self) -> None:
        """Keep the figures where reports look for them."""
        self.comparison.drawn = Drawn(
            seed=self.seed,
            steps=self.steps,
            sequences=self.sequences,
            differing=self.differing.total(),
            explained=self.explained,
            left_out=self.left_out,
            why=self._refused[0][1] if self._refused else "",
        )

    # ---- what was found

    def _found(self, number: int, sketch: Sketch, result: Result, first: Difference) -> Found:
        """Shrink a difference, and keep it."""
        kind = kind_of(result.case, first)
        name = f"{FOLDER}/{kind.slug()}"
        best, kept = _cut(sketch, first.step), _until(result, first.step)
        self.replays, self.smallest = 0, first.step

        def shows(candidate: Sketch) -> Sketch | None:
            nonlocal best, kept
            self.replays += 1
            played = self._again(candidate, name, kind)
            if played is None:
                return None
            # What flickers may show at an earlier step than before: the two go together.
            best, kept = _cut(candidate, len(played.case.steps)), played
            self.smallest = len(best["steps"])
            return best

        again = shows(best) is not None
        if again:
            end = self.clock() + MOST_SECONDS
            Shrinker(best, shows, MOST_REPLAYS, lambda: self.clock() >= end).run()
            # What depends on the moment may show under one name of its topics, not under another.
            # Each is below the folder, where a list may explain it.
            other = self._again(best, f"{name}-again", kind)
            again = other is not None and shows(best) is not None
        title = f"{kind.told()} (seed {self.seed}, sequence {number}, step {first.step})"
        kept = replace(kept, case=replace(kept.case, name=name, title=title))
        self.comparison.results.append(kept)
        whole = without_defaults(with_expectations({**best, "title": title}, kept))
        return Found(kind, number, first.step, self.steps + first.step, whole, kept, again)

    def _again(self, candidate: Sketch, name: str, kind: Kind) -> Result | None:
        """A sketch played anew, up to the step that differs; None if none does in this way."""
        if _races(candidate):
            return None
        try:
            case = case_of(candidate, name, build=True)
            (played,) = self._play([case])
        except CompareError:  # no case, or a step refers to what was not answered
            return None
        found = first_of(played.differences)
        if found is None or kind_of(case, found) != kind:
            return None
        return _until(played, found.step)


def shared(versions: Versions, others: Versions) -> dict[str, tuple[int, int]]:
    """The versions that both serve, by API; an API of which there are none is not there."""
    found = {}
    for key in versions.keys() & others.keys() & API_NAMES.keys():
        (low, high), (least, most) = versions[key], others[key]
        if max(low, least) <= min(high, most):
            found[API_NAMES[key]] = max(low, least), min(high, most)
    return found


def _played(
    broker: Broker, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
) -> list[Transcript]:
    try:
        return broker.play_all(cases, versions, like)
    except UnplayableError as error:
        raise UnplayableError(f"{broker.name}: {error}") from None


def _races(sketch: Sketch) -> bool:
    """Whether something is written at once over two connections, so that nobody knows which request
    is first."""
    return any(
        step.get("pipelined") and step.get("connection") != before.get("connection")
        for before, step in pairwise(sketch["steps"])
    )


def _cut(sketch: Sketch, steps: int) -> Sketch:
    return {**sketch, "steps": sketch["steps"][:steps]}


def _until(result: Result, step: int) -> Result:
    """A result up to a step."""
    assert result.target is not None
    assert result.other is not None

    def cut(played: Transcript) -> Transcript:
        return replace(played, replies=tuple(e for e in played.replies if e.step <= step))

    return replace(
        result,
        case=replace(result.case, steps=result.case.steps[:step]),
        target=cut(result.target),
        other=cut(result.other),
        differences=[each for each in result.differences if each.step == step],
        explained=[each for each in result.explained if each[0].step <= step],
    )
