"""Comparisons: of each profile with itself, of Kafka as it was recorded, and what comes of them.

The recording lies beside this file, so that nobody needs a JVM. `make kafka` starts a broker to
record it anew.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from compare_kit import (
    RECORDED,
    every_case,
    kafka,
    plain_cases,
    played,
    played_once,
    recorded_cases,
    written,
)
from ottla.broker.profiles.named import PROFILES, profile_named
from ottla.commands.compare import AGAINST
from ottla.compare.brokers import ProfileBroker
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.explained import load_explanations
from ottla.compare.finding import load_cases
from ottla.compare.formats import in_json, in_junit
from ottla.compare.judging import contradictions
from ottla.compare.live import WireBroker
from ottla.compare.recordings import RecordedBroker, record, record_broker
from ottla.compare.running import Comparison, unsaid, unserved
from ottla.compare.telling import closing_lines, dump, result_lines, verdict
from ottla.report.compare.page import page
from tidy.source import repository

NAMES = [each.name for each in recorded_cases()]
PROFILE = "reference"
NEWEST = profile_named(AGAINST).name
"""What `ottla compare` takes if no profile is named."""

ALL = [each.name for each in PROFILES]
OLDER = [each for each in ALL if each.startswith("kafka-") and each != NEWEST]
BY_NIGHT = ("redpanda-24.3", "redpanda-25.3", *OLDER)
"""Over TCP they cost 15 s each, and have no code of their own there but for what in process runs,
too."""


def compared(target, profile, cases, **options):
    comparison = Comparison(target, played_once(profile), profile, **options)
    return comparison, list(comparison.run(cases))


@pytest.mark.parametrize("case", recorded_cases(), ids=NAMES)
def test_kafka_as_recorded_is_as_the_case_says_and_as_the_profile_answers(case):
    """Every difference between Kafka 4.3.1 and Ottla has its reason in the list."""
    _, (result,) = compared(kafka(), NEWEST, [case], explanations=load_explanations(), live=True)
    assert [*result_lines(result)] == [*result_lines(replace(result, differences=()))]


def test_no_reason_is_given_for_what_does_not_differ():
    explanations = load_explanations()
    for profile in {NEWEST, PROFILE}:
        cases = [
            case
            for case in recorded_cases()
            if any(each.about(case.name, profile) for each in explanations)
        ]
        comparison, _ = compared(kafka(), profile, cases, explanations=explanations, live=True)
        assert [each.told() for each in comparison.stale()] == []


def test_a_listed_difference_that_disappears_is_told_and_fails():
    listed = load_explanations()[0]
    stale = listed._replace(case="idempotence/a-gap-is-refused")
    cases = load_cases(["a-gap-is-refused"])
    comparison, _ = compared(kafka(), PROFILE, cases, explanations=[stale], live=True)
    assert comparison.status == 1
    assert "no longer differs" in "\n".join(closing_lines(comparison))


@pytest.mark.slow(seconds=5)
@pytest.mark.parametrize("profile", [each.name for each in PROFILES])
def test_a_profile_does_what_the_cases_say_of_it(profile):
    """Or the list of explained differences says why not."""
    broker, explanations, found = played_once(profile), load_explanations(), []
    versions = broker.versions()
    for case in every_case():
        if unserved(case.needs, profile, versions) or unsaid(case, profile):
            continue
        try:
            transcript = broker.play(case, versions)
        except UnplayableError:
            continue
        found += [
            each
            for each in contradictions(case, transcript, profile)
            if not any(why.explains(each, profile) for why in explanations)
        ]
    assert found == []


def test_cases_name_profiles_that_there_are():
    known = {each.name for each in PROFILES}
    named = {name for each in every_case() for step in each.steps for name in step.differs}
    assert len(named) >= 3
    assert named <= known


@pytest.mark.slow
@pytest.mark.parametrize(
    "profile",
    [pytest.param(each, marks=pytest.mark.nightly) if each in BY_NIGHT else each for each in ALL],
)
def test_over_tcp_a_profile_answers_as_in_process(profile):
    """But for the clock and what is drawn: judged field by field, over all cases of one node."""
    answers_alike(profile, plain_cases())


def answers_alike(profile, cases):
    """Over TCP as in process."""
    with WireBroker(profile) as wire:
        comparison, results = compared(wire, profile, cases)
    in_process, _ = compared(played_once(profile), profile, cases)
    told = {each.case.name: each.differences for each in results}
    assert len(told) == len(cases)
    assert comparison.counts()["left out"] == in_process.counts()["left out"]
    for each in in_process.results:
        fields = [(d.step, d.field, d.expected) for d in each.differences]
        assert [(d.step, d.field, d.expected) for d in told[each.case.name]] == fields


QUICK = ("fetch/*", "offsets/*", "acks/*leader*")
"""Cases with their own cluster that cost a second and a half over TCP; all of them 30 s."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "globs"),
    [
        (NEWEST, QUICK),
        *(pytest.param(each, ["*"], marks=pytest.mark.nightly) for each in ALL),
    ],
)
def test_over_tcp_several_nodes_answer_as_in_process(profile, globs):
    """Faults included: real time in the place of virtual time, and an election of its own."""
    answers_alike(profile, [each for each in load_cases(globs) if each.own_cluster])


@pytest.mark.slow
def test_two_profiles_that_differ_are_told_apart():
    comparison, _ = compared(played_once("redpanda-5157"), PROFILE, plain_cases())
    assert comparison.status == 1
    names = [each.case.name for each in comparison.results if each.differences]
    assert "idempotence/an-older-epoch-is-fenced" in names


def test_explained_differences_of_what_is_not_recorded_are_there():
    """No recording would notice that such an entry is stale: it is about Redpanda, or settings."""
    found = []
    for each in load_explanations():
        cases = [case for case in every_case() if case.own_cluster and case.name == each.case]
        found += [
            (each, case, profile)
            for case in cases
            for profile in each.profiles
            if "*" not in profile
            if case.settings or profile_named(profile).name != NEWEST
        ]
    assert found
    for why, case, profile in found:
        broker = played_once(profile)
        differing = contradictions(case, broker.play(case, broker.versions()), profile)
        assert any(why.explains(each, profile) for each in differing), why.told()


def test_every_source_of_a_case_is_on_the_page_of_sources():
    page_text = (repository() / "docs/sources.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"^\| ([^|]+?) \|", page_text, re.MULTILINE))
    named = {source for each in every_case() for source in each.sources}
    assert sorted(named - keys) == []


# ---- recordings


def test_every_recording_has_its_case():
    found = [path.relative_to(RECORDED) for path in RECORDED.rglob("*.json*")]
    recorded = {path.as_posix().partition(".")[0] for path in found} - {"broker"}
    assert recorded == set(NAMES)


def test_what_is_recorded_is_answered_again(tmp_path):
    (case,) = load_cases(["the-state-belongs-to-the-partition-not-to-the-connection"])
    broker = ProfileBroker(PROFILE)
    transcript = played(case)
    record_broker(tmp_path, "mine", broker.versions())
    record(tmp_path, transcript)
    again = RecordedBroker(tmp_path)
    assert again.versions() == broker.versions()
    found = again.play(case, again.versions())
    assert found.replies == transcript.replies


def test_a_recording_of_a_case_that_has_changed_is_refused(tmp_path):
    case = written(tmp_path, "[[steps]]\nproduce = { records = 1 }\n")
    record_broker(tmp_path, "mine", {0: (0, 12)})
    record(tmp_path, played(case))
    changed = written(tmp_path, "[[steps]]\nproduce = { records = 2 }\n")
    with pytest.raises(CompareError, match="has changed since it was recorded: record it anew"):
        RecordedBroker(tmp_path).play(changed, {0: (0, 12)})


NO_RECORDINGS = ("", "[]", "{}", '{"now": 1, "names": {}, "replies": [{}]}', "[" * 100_000)


@pytest.mark.parametrize("text", NO_RECORDINGS, ids=range(len(NO_RECORDINGS)))
def test_a_file_that_is_no_recording_is_refused_in_one_line(tmp_path, text):
    case = written(tmp_path, "[[steps]]\nproduce = { records = 1 }\n")
    record_broker(tmp_path, "mine", {0: (0, 12)})
    (tmp_path / "rule.json").write_text(text, encoding="utf-8")
    with pytest.raises(CompareError, match="is no recording"):
        RecordedBroker(tmp_path).play(case, {0: (0, 12)})


def test_what_was_never_recorded_is_told(tmp_path):
    with pytest.raises(CompareError, match="there is no such recording; make it with --record"):
        RecordedBroker(tmp_path)


# ---- what is told


@pytest.fixture
def comparison(tmp_path):
    """Three results: alike, differing, left out."""
    wrong = """
[[steps]]
produce = { producer = 7, sequence = 0 }
[[steps]]
produce = { producer = 7, sequence = 5 }
expect = { error_code = "NONE" }
"""
    cases = [
        replace(written(tmp_path, "[[steps]]\nproduce = {}\n"), name="mine/alike"),
        replace(written(tmp_path, wrong), name="mine/wrong"),
        replace(written(tmp_path, "[[steps]]\nproduce = { version = 13 }\n"), name="mine/new"),
    ]
    found, _ = compared(ProfileBroker(PROFILE), PROFILE, cases)
    return found


def test_a_difference_is_told_with_its_bytes(comparison):
    lines = list(result_lines(comparison.results[1]))
    assert lines[0] == "DIFFERS   mine/wrong: A rule"
    text = "\n".join(lines)
    assert "step 2, produce 9" in text
    field = "responses[0].partition_responses[0].error_code"
    (at,) = re.findall(rf"{re.escape(field)} at byte (\d+): OUT_OF_ORDER", text)
    marked = next(line for line in lines if "^^" in line)
    above = lines[lines.index(marked) - 1]
    assert marked.endswith(field)
    column = marked.index("^^")
    assert above[column : column + 5] == "00 2d"
    assert int(above.split()[0], 16) <= int(at) < int(above.split()[0], 16) + 16


def test_what_is_alike_is_told_with_its_answers(comparison):
    assert list(result_lines(comparison.results[0])) == ["alike     mine/alike: NONE"]
    assert next(result_lines(comparison.results[2])).startswith("left out  mine/new: reference")
    assert list(closing_lines(comparison)) == [
        "reference against reference: 3 cases, 1 alike, 1 differs, 1 left out"
    ]


def test_a_long_dump_shows_the_place_in_question():
    lines = list(dump(bytes(4096)))
    assert len(lines) == 33
    assert lines[-1] == "... 3584 more"


def test_json_has_every_answer(comparison):
    told = json.loads(in_json(comparison))
    assert told["status"] == 1
    assert told["counts"] == {"alike": 1, "explained": 0, "differs": 1, "left out": 1}
    (wrong,) = [each for each in told["cases"] if each["case"] == "mine/wrong"]
    assert wrong["differences"][0]["target"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    answer = wrong["target"][1]
    assert bytes.fromhex(answer["answer"])[4:8] == bytes.fromhex(answer["request"])[8:12]
    assert answer["fields"]["throttle_time"] == 0


def test_junit_has_a_test_for_each_case(comparison):
    suite = ET.fromstring(in_junit(comparison))
    assert suite.attrib["tests"] == "3"
    assert suite.attrib["failures"] == "1"
    names = {(each.attrib["classname"], each.attrib["name"]) for each in suite}
    assert names == {("mine", "alike"), ("mine", "wrong"), ("mine", "new")}
    (failure,) = suite.iter("failure")
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in (failure.text or "")
    (skipped,) = suite.iter("skipped")
    assert skipped.attrib["message"] == "reference serves produce 0 to 12, not 13"


def test_junit_is_xml_whatever_a_title_has_in_it(comparison):
    """Control characters, which no XML may have, made a report that no CI can read."""
    wrong = comparison.results[1]
    comparison.results[1] = replace(wrong, case=replace(wrong.case, title="a\x01b"))
    (failure,) = ET.fromstring(in_junit(comparison)).iter("failure")
    assert failure.attrib["message"] == "a?b"


def test_the_page_says_the_result_in_one_sentence(comparison):
    wrong = "reference answers otherwise than reference in 1 of 2 cases; 1 more left out."
    assert f'<p class="lead">{wrong}</p>' in page(comparison)
    del comparison.results[1]
    right = "reference answers as reference does in 1 of 1 case; 1 more left out."
    assert f'<p class="lead">{right}</p>' in page(comparison)


def test_the_sentence_counts_what_is_listed():
    cases = load_cases(["a-session-is-made*", "a-gap-is-refused"])
    found, _ = compared(kafka(), PROFILE, cases, explanations=load_explanations(), live=True)
    assert verdict(found).endswith(
        f" answers as {PROFILE} does in 1 of 2 cases; in 1 it differs only as listed, with the "
        "reason."
    )


def test_cases_of_one_folder_stand_together_on_the_page(comparison):
    """The heading of a case that lies in no folder was empty, and stood between others."""
    comparison.results[2] = replace(
        comparison.results[2], case=replace(comparison.results[2].case, name="n-alone")
    )
    first = comparison.results[0]
    comparison.results.append(replace(first, case=replace(first.case, name="z/last")))
    heads = re.findall("<h2>(.*?)</h2>", page(comparison))
    assert heads == ["In figures", "What differs", "In no folder", "mine", "z"]


def test_the_page_shows_what_differs_first(comparison, tmp_path):
    text = page(comparison)
    assert text.index("mine/wrong") < text.index("mine/alike")
    assert "1 case differs" in text
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in text
    assert "http" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)
    Path(tmp_path / "page.html").write_text(text, encoding="utf-8")
