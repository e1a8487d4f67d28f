"""A hunt finds planted faults of a profile, shrinks each to a few steps, and tells it once.

Faults are planted in the program while the target plays, and taken out before the other broker
does. What is counted and told is tested with brokers that only say what became of each request.
"""

import itertools
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from compare_told import PROFILE, SEED, Told, only_fetches, told_apart
from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.answers import PartitionListed
from ottla.broker.wire.api import list_offsets
from ottla.commands import compare_fuzz
from ottla.commands.compare_fuzz import Draw
from ottla.commands.sim.telling import Line
from ottla.compare.brokers import ProfileBroker
from ottla.compare.case import Outcome
from ottla.compare.errors import UnplayableError
from ottla.compare.explained import Explanation
from ottla.compare.finding import load_cases
from ottla.compare.formats import in_json, in_junit
from ottla.compare.fuzz import drawing
from ottla.compare.fuzz import hunt as hunting
from ottla.compare.fuzz.hunt import Found, Hunt, shared
from ottla.compare.fuzz.kinds import Kind
from ottla.compare.fuzz.sketch import text_of
from ottla.compare.running import Comparison
from ottla.compare.telling import closing_lines
from ottla.idempotency import producer
from ottla.idempotency.decisions import compile_outcomes
from ottla.idempotency.rules import Action, RejectReason, Verdict
from ottla.report.compare.page import page


class Broken(ProfileBroker):
    """The profile with a fault: `plant` changes the program while this broker plays."""

    def __init__(self, plant):
        super().__init__(PROFILE)
        self.name = "broken"
        self._plant = plant

    def play_all(self, cases, versions, like=()):
        with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
            self._plant(patch, stack)
            return super().play_all(cases, versions, like)


def change(stack, of, name, value):
    """Another value in a frozen object, until the end."""
    stack.callback(object.__setattr__, of, name, getattr(of, name))
    object.__setattr__(of, name, value)


def a_window_of_three(_, stack):
    change(stack, profile_named(PROFILE).rulebook, "window", 3)


def no_rule_against_a_newer_epoch_that_begins_midway(_, stack):
    rulebook = profile_named(PROFILE).rulebook
    rules = tuple(
        replace(row, decision=Verdict.ACCEPT, action=Action.START)
        if row.decision is RejectReason.EPOCH_START
        else row
        for row in rulebook.rules
    )
    assert rules != rulebook.rules
    outcomes = compile_outcomes(rules, rulebook.gap_after_barrier)
    change(stack, rulebook, "outcomes", outcomes)


def sequences_that_do_not_wrap(patch, _):
    patch.setattr(producer, "is_successor", lambda first, tail: first == tail + 1)


def an_offset_that_is_off_by_one(patch, _):
    def listed(*args):
        found = PartitionListed(*args)
        return found._replace(offset=found.offset + 1)

    patch.setattr(list_offsets, "PartitionListed", listed)


def a_partition_twice_that_is_refused(_, stack):
    change(stack, profile_named(PROFILE), "last_twin_counts", False)


PLANTED = {
    no_rule_against_a_newer_epoch_that_begins_midway: (1, "produce", "error_code"),
    sequences_that_do_not_wrap: (3, "produce", "error_code"),
    an_offset_that_is_off_by_one: (3, "list_offsets", "offset"),
    a_partition_twice_that_is_refused: (2, "produce", "error_code"),
    a_window_of_three: (2, "produce", "outcome"),
}
"""By fault: a seed whose first sequences show it, and where it shows."""
LONG = {a_window_of_three: [pytest.mark.nightly]}
"""Which take more than two seconds of CPU: only long sequences have enough batches."""
MOST_STEPS = 5
"""Steps that may be left of a fault: a window of three needs four batches, and a copy."""


def first_found(target, seed):
    """The first difference of a target from the sound profile."""
    comparison = Comparison(target, ProfileBroker(PROFILE), PROFILE)
    return next(each for each in Hunt(comparison, seed, 2000).run() if isinstance(each, Found))


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [pytest.param(each, marks=LONG.get(each, ()), id=each.__name__) for each in PLANTED],
)
def test_a_planted_fault_is_found_and_shrunk(plant, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "LENGTHS", (80,))
    monkeypatch.setattr(hunting, "AT_ONCE", 1)
    seed, api, field = PLANTED[plant]
    found = first_found(Broken(plant), seed)
    assert found.kind.api == api
    assert found.kind.field.endswith(field)
    assert len(found.sketch["steps"]) <= MOST_STEPS
    assert found.again
    # Its file shows the fault again, and without the fault nothing differs.
    path = tmp_path / "found.toml"
    path.write_text(text_of(found.sketch), encoding="utf-8")
    cases = load_cases([str(path)])
    (result,) = Comparison(Broken(plant), ProfileBroker(PROFILE), PROFILE).run(cases)
    assert {each.step for each in result.differences} == {len(found.sketch["steps"])}
    assert all(each.wrong for each in result.differences if each.expected)
    sound = Comparison(ProfileBroker(PROFILE), ProfileBroker(PROFILE), PROFILE)
    assert [each.word for each in sound.run(cases)] == ["alike"]


def test_a_profile_does_not_differ_from_itself():
    comparison = Comparison(ProfileBroker("reference"), ProfileBroker("reference"), "reference")
    hunt = Hunt(comparison, SEED, 40)
    assert set(hunt.run()) == {None}
    assert hunt.steps == 40
    assert comparison.status == 0
    assert list(closing_lines(comparison)) == [
        "reference against reference: 40 steps of seed 1 in 1 sequence, no difference"
    ]


def test_of_a_kind_only_the_first_difference_is_told_and_the_others_are_counted():
    hunt, (found,) = told_apart(only_fetches)
    assert found.kind == Kind("fetch", "outcome", "silence", "closed")
    assert hunt.differing[found.kind] > 3
    assert hunt.comparison.status == 1
    assert len(hunt.comparison.results) == 1
    assert found.sketch["steps"] == [{"fetch": {}, "expect": "closed"}]
    assert {"topics", "absent"}.isdisjoint(found.sketch)


def test_the_number_of_steps_that_is_told_finds_it_again():
    _, (found,) = told_apart(only_fetches)
    hunt, (again,) = told_apart(only_fetches, steps=found.asked)
    assert hunt.steps == found.asked
    assert again.sketch == found.sketch
    assert told_apart(only_fetches, steps=found.asked - 1)[1] == []


def test_what_does_not_show_again_is_told_whole():
    seen = []

    def once(step):
        seen.append(step)
        return Outcome.SILENT if len(seen) == 30 else Outcome.CLOSED

    hunt, (found,) = told_apart(once)
    assert not found.again
    assert len(found.sketch["steps"]) == found.step
    assert len(hunt.comparison.results) == 1


class Flickers(Told):
    """A broker that is silent at a second fetch, and from the last look on at any fetch."""

    def __init__(self, name):
        super().__init__(name, only_fetches)
        self.names = set()

    def transcript(self, case, versions):
        if "sequence" not in case.name:
            self.names.add(case.name)
        fetches = [each for each in case.steps if getattr(each.ask, "api", "") == "fetch"]
        silent = fetches[0 if len(self.names) > 1 else 1 :]
        self.outcomes = lambda step: Outcome.SILENT if step in silent else Outcome.CLOSED
        return super().transcript(case, versions)


def test_a_difference_that_flickers_is_kept_as_it_showed_last():
    """Its case had more steps than its result, and the hunt ended in a traceback."""
    comparison = Comparison(Flickers("a"), Told("b", closed), PROFILE, live=True)
    found = next(each for each in Hunt(comparison, SEED, 60).run() if isinstance(each, Found))
    assert found.sketch["steps"] == [{"fetch": {}, "expect": "closed"}]
    assert len(found.result.case.steps) == 1


def test_an_entry_for_random_requests_is_about_every_replay():
    """The last look had no folder in its name, so what the list explains was a difference."""
    names: list[str] = []

    class Seen(Told):
        def play_all(self, cases, versions, like=()):
            names.extend(each.name for each in cases)
            return super().play_all(cases, versions, like)

    hunt = Hunt(Comparison(Seen("a", only_fetches), Told("b", closed), PROFILE), SEED, 60)
    assert any(isinstance(each, Found) and each.again for each in hunt.run())
    assert len(set(names)) > 2
    assert [each for each in names if not each.startswith("fuzz/")] == []


def late_fetches(step):
    return only_fetches(step) if step.number > 3 else Outcome.CLOSED


def test_shrinking_ends_after_a_minute_with_the_best_so_far():
    """Of a broker that falls silent, 400 replays took most of an hour."""
    seconds = itertools.count(0, 20)
    comparison = Comparison(Told("a", late_fetches), Told("b", closed), PROFILE)
    hunt = Hunt(comparison, SEED, 400, clock=lambda: next(seconds))
    found = next(each for each in hunt.run() if isinstance(each, Found))
    assert found.again
    assert hunt.replays < 6
    assert 4 <= len(found.sketch["steps"]) == hunt.smallest < found.step


def test_the_line_of_progress_counts_replays(tmp_path, monkeypatch):
    """It stood still, but for its seconds."""
    texts: list[Callable[[float], str]] = []
    told: list[str] = []

    class Kept(Line):
        def tell(self, of):
            texts.append(of)
            super().tell(of)

    class Looks(Told):
        def play_all(self, cases, versions, like=()):
            told.append(texts[-1](3.0))
            return super().play_all(cases, versions, like)

    monkeypatch.setattr(compare_fuzz, "Line", Kept)
    comparison = Comparison(Looks("a", late_fetches), Told("b", closed), PROFILE)
    compare_fuzz.hunt(comparison, Draw(60, SEED, tmp_path))
    shrinking = [each for each in told if each.startswith("shrinking a difference: fetch outcome")]
    assert shrinking[0].endswith("; replay 1, steps left: 9, 3 s")
    assert re.search(r"; replay \d\d, steps left: 4, 3 s$", shrinking[-1])
    assert len(set(shrinking)) > 3


def test_what_the_target_serves_is_asked_once():
    """It was asked in every replay, for which a profile starts a node."""
    asked = []

    class Serves(Told):
        def versions(self):
            asked.append(1)
            return super().versions()

    hunt = Hunt(Comparison(Serves("a", only_fetches), Told("b", closed), PROFILE), SEED, 60)
    assert any(isinstance(each, Found) for each in hunt.run())
    assert len(asked) == 1


def test_both_are_asked_the_same_whatever_they_answer():
    hunt, _ = told_apart(only_fetches)
    calm, _ = told_apart(lambda _: Outcome.CLOSED)
    drawn = calm.comparison.target.asked
    assert drawn == calm.comparison.other.asked
    assert [each for each in hunt.comparison.other.asked if each in drawn] == drawn


def test_an_explained_difference_is_counted_and_no_difference():
    why = Explanation("fuzz/*", "outcome", None, ("*",), "so it is", "K-X", target="silence")
    hunt, found = told_apart(only_fetches, explanations=[why])
    assert found == []
    assert hunt.comparison.status == 0
    assert hunt.comparison.drawn.explained > 10
    other = why._replace(target="no answer")
    assert len(told_apart(only_fetches, explanations=[other])[1]) == 1


class Refuses(Told):
    """A broker that does not know a config of topics."""

    def play_all(self, cases, versions, like=()):
        for each in cases:
            if any("message.timestamp.before.max.ms" in topic.configs for topic in each.topics):
                raise UnplayableError(f"{each.name}: its topic cannot be made: INVALID_CONFIG")
        return super().play_all(cases, versions, like)


def closed(_):
    return Outcome.CLOSED


@pytest.mark.parametrize(
    "two",
    [
        pytest.param((Refuses("a", only_fetches), Told("b", closed)), id="the target"),
        pytest.param((Told("b", only_fetches), Refuses("a", closed)), id="the other broker"),
    ],
)
def test_a_sequence_whose_topics_are_refused_is_left_out_and_counted(two):
    """It ended the hunt, and no report was written."""
    target, other = two
    hunt = Hunt(Comparison(target, other, PROFILE, live=True), SEED, 1000)
    (found,) = (each for each in hunt.run() if isinstance(each, Found))
    assert found.again
    assert hunt.steps == 1000
    assert 1 < hunt.left_out < hunt.sequences / 2
    (line,) = closing_lines(hunt.comparison)
    left_out = f"; {hunt.left_out} sequences left out: a: fuzz/seed-1-sequence-"
    assert left_out in line
    assert line.endswith("its topic cannot be made: INVALID_CONFIG")
    assert f", {hunt.left_out} of {hunt.sequences} sequences left out" in in_junit(hunt.comparison)
    assert json.loads(in_json(hunt.comparison))["drawn"]["left_out"] == hunt.left_out


def test_if_every_sequence_is_left_out_nothing_was_compared(monkeypatch):
    refused = {"message.timestamp.before.max.ms": "1"}
    for others in (0, 1):
        monkeypatch.setattr(drawing, "CONFIGS", (refused, *({} for _ in range(others))))
        hunt = Hunt(Comparison(Refuses("a", closed), Told("b", closed), PROFILE), SEED, 400)
        assert set(hunt.run()) == {None}
        assert hunt.comparison.compared == (others > 0)


def test_an_api_that_only_one_serves_is_not_asked():
    assert shared({0: (3, 9), 1: (4, 4)}, {0: (0, 5), 1: (5, 9), 99: (0, 1)}) == {"produce": (3, 5)}


# ---- what is told


def test_json_and_junit_say_what_was_drawn():
    hunt, (found,) = told_apart(only_fetches)
    told = json.loads(in_json(hunt.comparison))
    assert told["drawn"]["steps"] == hunt.steps
    assert [each["case"] for each in told["cases"]] == [f"fuzz/{found.kind.slug()}"]
    suite = ET.fromstring(in_junit(hunt.comparison))
    assert suite.attrib["tests"] == "2"
    assert suite.attrib["failures"] == "1"
    assert [each.attrib["name"] for each in suite] == [found.kind.slug(), "seed 1, 400 steps"]
    assert "400 steps of seed 1" in page(hunt.comparison)
