"""Judges a case: what the case says of a profile, what two brokers did, and where that differs.

* A field (or an outcome, or a time) that the case names must be as the case says, on both brokers.
* Any other field must be the same on both; of those in `ottla.compare.free` only the kind counts.
* If an array has more elements on one side, that is one difference, not one for each field in it.

So nothing of an answer is left unseen, and a case needs to name only what its rule is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.broker.wire.codec import field_names, response_schema
from ottla.compare.case import Case, Expectation, Outcome, Request, Step
from ottla.compare.errors import CompareError
from ottla.compare.fields import RECORDS_FIELDS, Field, Plain
from ottla.compare.free import comparable
from ottla.compare.matching import Matcher, value_told
from ottla.compare.requests import version_of
from ottla.compare.transcript import Reply, Transcript, find, resolver

OUTCOME = "outcome"
TOOK = "took"
NOT_THERE = "not there"
AS_USUAL = Expectation(Outcome.ANSWERED)
"""What a step expects that says nothing."""


class Difference(NamedTuple):
    """One place where the target is not as it should be, or the other broker is not."""

    case: str
    step: int
    field: str
    """The path of the field, `outcome` or `took`."""
    target: str
    other: str
    """What the two brokers did."""
    expected: str
    """What the case says; empty if it says nothing."""
    wrong: bool = False
    """Whether the target is not as the case says; else the other broker is not, or the case says
    nothing."""
    start: int = -1
    """Where the field begins in the target's answer; -1: it is not in it."""
    end: int = -1


def judge(case: Case, target: Transcript, other: Transcript, profile: str) -> list[Difference]:
    """Every difference in a case, in the order of the steps; the case is read for `profile`."""
    found: list[Difference] = []
    for step in case.steps:
        if not step.asks:
            continue
        pair = _Pair(case, step, target, other)
        expected = step.expected_of(profile)
        if pair.equal and expected == AS_USUAL:
            continue
        found += pair.outcomes(expected)
        if pair.both_answered:
            found += pair.fields(expected)
    return found


def contradictions(case: Case, played: Transcript, profile: str) -> list[Difference]:
    """Where a broker does not do what the case says of a profile."""
    return [each for each in judge(case, played, played, profile) if each.expected]


class _Pair:
    """Two replies to one step."""

    def __init__(self, case: Case, step: Step, target: Transcript, other: Transcript):
        self._case, self._step = case, step
        self._target, self._other = target, other
        self._replies = (_reply(target, step), _reply(other, step))

    @property
    def equal(self) -> bool:
        """Whether both answered the same bytes, which can be read and mean the same on both: most
        pairs do. Nobody knows what the two do if their bytes cannot be read, such as those of an
        encoder that is broken in both."""
        mine, others = self._replies
        same = mine.response == others.response is not None and self.both_answered
        left, right = self._target, self._other
        alike = same and left.now == right.now and left.names == right.names
        return alike and not mine.unread  # equal bytes: one of the two is enough

    @property
    def both_answered(self) -> bool:
        """Whether there are fields to compare."""
        return all(each.outcome is Outcome.ANSWERED for each in self._replies)

    def _difference(
        self, field: str, told: tuple[str, str], expected: str, place: Field | None = None
    ) -> Difference:
        start, end = (place.start, place.end) if place is not None else (-1, -1)
        case, step = self._case.name, self._step.number
        return Difference(case, step, field, *told, expected, start=start, end=end)

    def outcomes(self, expected: Expectation) -> Iterator[Difference]:
        """Differences in what became of the request, and when."""
        found = [each.outcome for each in self._replies]
        if set(found) != {expected.outcome}:
            told = (found[0].value, found[1].value)
            wrong = found[0] is not expected.outcome
            yield self._difference(OUTCOME, told, expected.outcome.value)._replace(wrong=wrong)
        if expected.took is not None:
            times = [Field(each.took, -1, -1) for each in self._replies]
            holds = [expected.took.holds(each, lambda value: value) for each in times]
            if not all(holds):
                told = (f"{times[0].value:g} ms", f"{times[1].value:g} ms")
                slow = self._difference(TOOK, told, f"{expected.took.told()} ms")
                yield slow._replace(wrong=not holds[0])

    def fields(self, expected: Expectation) -> Iterator[Difference]:
        """Differences in the fields of the answer."""
        unread = [each.unread for each in self._replies]
        if any(unread):
            told = (unread[0] or "readable", unread[1] or "readable")
            yield self._difference("answer", told, "")
            return
        named: list[str] = []
        for path, matcher in expected.fields.items():
            try:
                whole, differing = self._named(path, matcher)
            except CompareError as error:
                yield self._difference(path, (str(error), str(error)), matcher.told())
                continue
            named.append(whole)
            if differing is not None:
                yield differing
        yield from self._rest(named)

    def _named(self, path: str, matcher: Matcher) -> tuple[str, Difference | None]:
        whole, places, holds = path, [], []
        for reply, transcript in zip(self._replies, (self._target, self._other), strict=True):
            name, place = find(reply.fields, path)
            whole = name if place is not None else whole
            resolve = resolver(self._case, {each.step: each for each in transcript.replies})
            places.append(place)
            back = {real: called for called, real in transcript.names.items()}
            holds.append(matcher.holds(_called(place, back), resolve))
        if all(holds) or (places == [None, None] and not self._in_schema(path)):
            return whole, None
        told = (_told(places[0]), _told(places[1]))
        found = self._difference(whole, told, matcher.told(), places[0])
        return whole, found._replace(wrong=not holds[0])

    def _in_schema(self, path: str) -> bool:
        """Whether the version that was asked has such a field."""
        ask = self._step.ask
        assert isinstance(ask, Request)
        version = version_of(ask, self._target.versions)
        version = version if ask.answered_in is None else ask.answered_in
        name = path.rpartition(".")[2].partition("[")[0]
        names = field_names(response_schema(ask.key, version).cls)
        return name in names or name in RECORDS_FIELDS or name == "length"

    def _rest(self, named: list[str]) -> Iterator[Difference]:
        ask = self._step.ask
        api = ask.api if isinstance(ask, Request) else ""
        left, right = (
            comparable(api, transcript.called(reply), transcript.names, transcript.now)
            for reply, transcript in zip(self._replies, (self._target, self._other), strict=True)
        )
        uneven: list[str] = []
        for path in dict.fromkeys((*left, *right)):
            if _covered(path, named) or _below(path, uneven):
                continue
            if path.endswith(".length") and self._of_two_lengths(path):
                uneven.append(path.removesuffix(".length"))
            if path not in left or path not in right or not _equal(left[path], right[path]):
                places = [each.fields.get(path) for each in self._replies]
                yield self._difference(path, (_told(places[0]), _told(places[1])), "", places[0])

    def _of_two_lengths(self, path: str) -> bool:
        """Whether the array of this length has another one, or none, on the other side. Then its
        elements are not compared, also if the length is free."""
        mine, others = (each.fields.get(path) for each in self._replies)
        return mine is None or others is None or mine.value != others.value


def _reply(transcript: Transcript, step: Step) -> Reply:
    found = transcript.reply(step.number)
    if found is None:
        raise CompareError(
            f"{transcript.case}: {transcript.broker} has no reply to step {step.number}"
        )
    return found


def _equal(left: Plain, right: Plain) -> bool:
    return type(left) is type(right) and left == right


def _called(place: Field | None, names: dict[str, str]) -> Field | None:
    """A field with the topics as the case calls them."""
    if place is None or not isinstance(place.value, str):
        return place
    return place._replace(value=names.get(place.value, place.value))


def _told(place: Field | None) -> str:
    return NOT_THERE if place is None else value_told(place.value)


def _covered(path: str, named: list[str]) -> bool:
    """Whether the case names a field, or the array that it is in."""
    arrays = [each.removesuffix(".length") for each in named]
    return path in named or _below(path, arrays)


def _below(path: str, arrays: list[str]) -> bool:
    return any(path.startswith((f"{each}[", f"{each}.")) or path == each for each in arrays)
