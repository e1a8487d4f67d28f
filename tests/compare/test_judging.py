"""Cases that must fail and cases that must pass: what the runner says of an answer is right.

Each is a file, played to the reference profile in this process, so the answers are real ones.
Where two brokers must differ, one field of a real answer is changed.
"""

from dataclasses import replace

import pytest

from compare_kit import every_case, played, written
from ottla.broker.profiles.named import PROFILES
from ottla.compare.case import Outcome
from ottla.compare.errors import CaseError, CompareError
from ottla.compare.explained import Explanation, explanation_of, load_explanations
from ottla.compare.fields import Field
from ottla.compare.judging import contradictions, judge
from ottla.compare.transcript import reply_to

FAILING = {
    "another code": (
        "produce = {}\nexpect = { error_code = 'INVALID_RECORD' }",
        "error_code",
        "NONE",
        "INVALID_RECORD",
    ),
    "another offset": ("produce = {}\nexpect = { base_offset = 1 }", "base_offset", "0", "1"),
    "a value that is null": (
        "produce = {}\nexpect = { error_message = { exists = true } }",
        "error_message",
        "null",
        "a value",
    ),
    "none of these": (
        "produce = {}\nexpect = { base_offset = { any_of = [1, 2] } }",
        "base_offset",
        "0",
        "1 or 2",
    ),
    "less than that": (
        "produce = {}\nexpect = { base_offset = { at_least = 1 } }",
        "base_offset",
        "0",
        "at least 1",
    ),
    "more than that": (
        "produce = { records = 3 }\nexpect = { base_offset = { at_most = -1 } }",
        "base_offset",
        "0",
        "at most -1",
    ),
    "another type": (
        "produce = {}\nexpect = { base_offset = { type = 'text' } }",
        "base_offset",
        "0",
        "of type text",
    ),
    "a number for a truth": (
        "metadata = {}\nexpect = { is_internal = 0 }",
        "is_internal",
        "false",
        "0",
    ),
    "an array of another length": (
        "produce = {}\nexpect = { 'record_errors.length' = 1 }",
        "length",
        "0",
        "1",
    ),
    "answered, not closed": ("produce = {}\nexpect = 'closed'", "outcome", "answered", "closed"),
    "no answer, not closed": (
        "produce = { acks = 0 }\nexpect = 'closed'",
        "outcome",
        "no answer",
        "closed",
    ),
    "closed, not silent": (
        "text = 'GET / HTTP/1.1'\nexpect = 'silence'",
        "outcome",
        "closed",
        "silence",
    ),
    "too slow": ("produce = {}\nexpect = { took = { at_most = 0 } }", "took", "0.5 ms", "at most"),
    "a path of two fields": (
        "metadata = {}\nexpect = { 'topics[0].error_code' = 'NONE', error_code = 'NONE' }",
        "error_code",
        "error_code is the end of",
        "NONE",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_case_must_fail(tmp_path, name):
    text, field, told, expected = FAILING[name]
    case = written(tmp_path, f"[[steps]]\n{text}\n")
    (found,) = contradictions(case, played(case), "reference")
    assert found.field.endswith(field)
    assert found.target.startswith(told)
    assert found.expected.startswith(expected)


PASSING = (
    "produce = {}\nexpect = { error_code = 'NONE', base_offset = { at_least = 0, at_most = 0 } }",
    "produce = {}\nexpect = { base_offset = { any_of = [3, 0] } }",
    "produce = {}\nexpect = { log_start_offset = { type = 'number' } }",
    "produce = {}\nexpect = { error_message = { exists = false }, responses = { exists = true } }",
    "produce = { acks = 0 }\nexpect = 'no answer'",
    "text = 'GET / HTTP/1.1'\nexpect = 'closed'",
    "raw = '000f0000'\nexpect = 'silence'",
    "metadata = {}\nexpect = { is_internal = false, name = 't', 'partitions.length' = 1 }",
    "produce = { version = 3 }\nexpect = { base_offset = 0 }",
)


@pytest.mark.parametrize("text", PASSING)
def test_a_case_must_pass(tmp_path, text):
    case = written(tmp_path, f"[[steps]]\n{text}\n")
    assert contradictions(case, played(case), "reference") == []


def test_what_differs_for_a_profile_is_laid_over_what_is_expected(tmp_path):
    text = """
[[steps]]
produce = {}
expect = { error_code = "INVALID_RECORD", base_offset = 0 }
[steps.differs.reference]
error_code = "NONE"
[steps.differs.redpanda-5157]
base_offset = 9
"""
    case = written(tmp_path, text)
    assert contradictions(case, played(case), "reference") == []
    fields = [each.field for each in contradictions(case, played(case), "redpanda-5157")]
    assert len(fields) == 2


def test_an_earlier_answer_is_referred_to(tmp_path):
    text = """
[[steps]]
name = "first"
produce = { records = 3 }
[[steps]]
name = "end"
list_offsets = {}
[[steps]]
fetch = { offset = "$first.base_offset" }
expect = { high_watermark = "$end.offset", log_start_offset = { same_as = "$first.base_offset" } }
[[steps]]
list_offsets = { timestamp = -2 }
expect = { offset = "$end.offset" }
"""
    case = written(tmp_path, text)
    (found,) = contradictions(case, played(case), "reference")
    assert (found.step, found.target, found.expected) == (4, "0", "the same as $end.offset")


def test_one_of_several_may_be_a_reference(tmp_path):
    """It was compared as the text `$first.base_offset`."""
    case = written(
        tmp_path,
        """
[[steps]]
name = "first"
produce = {}
[[steps]]
produce = {}
expect = { base_offset = { any_of = ["$first.base_offset", 1] } }
[[steps]]
fetch = {}
expect = { log_start_offset = { any_of = ["$first.base_offset", 7] } }
""",
    )
    assert contradictions(case, played(case), "reference") == []


def test_a_reference_to_a_text_where_a_number_goes_says_so(tmp_path):
    """It ended in a traceback."""
    steps = "[[steps]]\nname = 'first'\nmetadata = {}\n"
    sequence = "'$first.topics[0].name'"
    steps += f"[[steps]]\nproduce = {{ producer = 7, sequence = {sequence} }}\n"
    with pytest.raises(CompareError, match="a value does not fit"):
        played(written(tmp_path, steps))


def test_a_reference_to_what_was_not_answered_says_so(tmp_path):
    text = """
[[steps]]
name = "first"
produce = { acks = 0 }
[[steps]]
fetch = { offset = "$first.base_offset" }
"""
    case = written(tmp_path, text)
    with pytest.raises(CompareError, match=r"\$first.base_offset: step 1 was not answered"):
        played(case)


# ---- two brokers


@pytest.fixture
def pair(tmp_path):
    """A case that names nothing, and its transcript."""
    case = written(tmp_path, "[[steps]]\nproduce = { records = 2 }\n")
    return case, played(case)


def answering(reply, fields):
    """A reply with other fields, and with other bytes: equal bytes are not looked into."""
    last = bytes([reply.response[-1] ^ 1])
    return replace(reply, read=lambda: (fields, ""), response=reply.response[:-1] + last)


def changed(transcript, path, value):
    """The transcript, with another value in a field of the first reply."""
    reply = transcript.replies[0]
    (whole,) = [each for each in reply.fields if each.endswith(path)]
    fields = {**reply.fields, whole: reply.fields[whole]._replace(value=value)}
    return replace(transcript, replies=(answering(reply, fields), *transcript.replies[1:]))


@pytest.mark.parametrize(
    ("path", "value"),
    [("base_offset", 7), ("error_code", "NOT_ENOUGH_REPLICAS"), ("log_append_time", 5)],
)
def test_a_field_that_the_case_does_not_name_must_be_the_same(pair, path, value):
    case, transcript = pair
    (found,) = judge(case, changed(transcript, path, value), transcript, "reference")
    assert found.field.endswith(path)
    assert found.target == str(value)
    assert found.expected == ""
    assert 0 < found.start < found.end <= len(transcript.replies[0].response)


@pytest.mark.parametrize(
    ("path", "value", "differs"),
    [("throttle_time", 9, False), ("error_message", "words", True)],
)
def test_of_a_free_field_only_the_kind_counts(pair, path, value, differs):
    case, transcript = pair
    found = judge(case, changed(transcript, path, value), transcript, "reference")
    assert bool(found) is differs


def test_a_field_that_only_one_has_is_one_difference(pair):
    case, transcript = pair
    reply = transcript.replies[0]
    more = {**reply.fields, "more.length": Field(1, 0, 4), "more[0].x": Field(1, 4, 5)}
    other = replace(transcript, replies=(answering(reply, more),))
    (found,) = judge(case, transcript, other, "reference")
    assert (found.field, found.target, found.other) == ("more.length", "not there", "1")


def test_more_brokers_on_one_side_are_no_difference(tmp_path):
    """A cluster of three was told to differ in every Metadata: its further brokers were fields
    that the other side had not."""
    case = written(tmp_path, "[[steps]]\nmetadata = {}\n")
    transcript = played(case)
    reply = transcript.replies[0]
    more = {path.replace("[0]", "[1]"): each for path, each in reply.fields.items()}
    brokers = {path: each for path, each in more.items() if path.startswith("brokers[1]")}
    fields = {**reply.fields, "brokers.length": Field(2, 8, 9), **brokers}
    other = replace(transcript, replies=(answering(reply, fields),))
    assert brokers
    assert judge(case, transcript, other, "reference") == []


def test_another_outcome_is_one_difference(pair):
    case, transcript = pair
    reply = replace(
        transcript.replies[0], outcome=Outcome.CLOSED, response=None, read=lambda: ({}, "")
    )
    closed = replace(transcript, replies=(reply,))
    (found,) = judge(case, closed, transcript, "reference")
    assert (found.field, found.target, found.other) == ("outcome", "closed", "answered")


# ---- explanations


def test_equal_answers_that_nobody_can_read_are_one_difference(pair):
    """They were alike: two profiles share an encoder, and it may be broken."""
    case, transcript = pair
    (reply,) = transcript.replies
    (step,) = case.steps
    cut = reply_to(
        step,
        reply.outcome,
        reply.request,
        reply.response[:-9],
        took=reply.took,
        versions=transcript.versions,
    )
    unread = replace(transcript, replies=(cut,))
    (found,) = judge(case, unread, unread, "reference")
    assert found.field == "answer"
    assert "cut off" in found.target
    assert found.target == found.other


WHY = Explanation("*/rule", "base_offset", None, ("reference",), "because", "K-CODES")


def test_an_explanation_holds_for_its_case_field_step_and_profile(pair):
    case, transcript = pair
    named = replace(case, name="mine/rule")
    (found,) = judge(named, changed(transcript, "base_offset", 7), transcript, "reference")

    def explained(why, profile="reference", *, live=True):
        return explanation_of(found, [why], profile, live=live) is why

    assert explained(WHY)
    assert explained(WHY._replace(step=1))
    assert explained(WHY._replace(field="partition_responses.base_offset"))
    assert not explained(WHY._replace(step=2))
    assert not explained(WHY._replace(field="offset"))
    assert not explained(WHY._replace(case="*/other"))
    assert not explained(WHY, "redpanda-5157")
    assert not explained(WHY, live=False), "two profiles that differ, differ"


@pytest.mark.parametrize(
    ("target", "other", "explains"), [(0, 7, True), (7, 0, False), (7, 7, False)]
)
def test_an_explanation_is_for_the_profile_not_for_a_broker_that_is_wrong(
    tmp_path, target, other, explains
):
    case = written(tmp_path, "[[steps]]\nproduce = {}\nexpect = { base_offset = 0 }\n")
    named, transcript = replace(case, name="mine/rule"), played(case)
    mine, others = (changed(transcript, "base_offset", each) for each in (target, other))
    (found,) = judge(named, mine, others, "reference")
    assert found.wrong is not explains
    assert (explanation_of(found, [WHY], "reference", live=True) is WHY) is explains


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schema = 2\n", "schema is not 1"),
        ("schema = 1\n[[differences]]\ncase = 'x'\n", r"differences\[1\].field is missing; a text"),
        ("schema = 1\nwhy = 3\n", "why is no key here"),
        # An alias is the name of no profile, so the entry was about nothing, without a word.
        (
            "schema = 1\n[[differences]]\nprofiles = ['kafka-4*', 'kafka']\n",
            r"differences\[1\].profiles has kafka, which is none of reference, ",
        ),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path, text, told):
    path = tmp_path / "list.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CaseError, match=told):
        load_explanations(path)


def test_every_entry_of_the_list_is_about_a_case():
    about = [(each.name, profile.name) for each in every_case() for profile in PROFILES]
    listed = load_explanations()
    proved = [each for each in listed if any(each.about(*place) for place in about)]
    for each in listed:
        # One about random requests has the reason of one that a case proves.
        random = each.case == "fuzz/*" and each.other != "*"
        assert each in proved or (random and any(each.reason == e.reason for e in proved)), each
