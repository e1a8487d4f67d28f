"""What is drawn: the same for the same seed, all of it cases, and near the borders of the rules.

That a border is met is counted over thirty sequences, with bounds far below what was seen: another
draw must not fail, a table that has lost a row must.
"""

import tomllib
from collections import Counter

import pytest

from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import API_NAMES
from ottla.compare.case import Request
from ottla.compare.fuzz.drawing import STEPS, draw_sequence
from ottla.compare.fuzz.sketch import case_of, text_of

SERVED = {API_NAMES[each.key]: each.served for each in TABLE}
SEQUENCES = range(1, 31)


@pytest.fixture(scope="module")
def sketches():
    return [draw_sequence(7, number, SERVED) for number in SEQUENCES]


def test_the_same_seed_draws_the_same(sketches):
    assert [draw_sequence(7, number, SERVED) for number in SEQUENCES] == sketches


def test_another_seed_and_another_number_draw_something_else(sketches):
    assert draw_sequence(8, 1, SERVED)["steps"] != sketches[0]["steps"]
    texts = {text_of({**each, "title": ""}) for each in sketches}
    assert len(texts) == len(sketches)


def test_whatever_is_drawn_is_a_case_whose_requests_can_be_built(sketches):
    for each in sketches[:2]:
        assert len(case_of(each, "drawn", build=True).steps) == len(each["steps"])


def test_a_file_of_it_is_read_as_the_same(sketches):
    for each in sketches:
        assert tomllib.loads(text_of(each)) == each


def test_every_api_of_the_table_is_drawn(sketches):
    drawn = {
        step.ask.api
        for each in sketches
        for step in case_of(each, "drawn").steps
        if isinstance(step.ask, Request)
    }
    assert {api for _, api, _ in STEPS} <= drawn


def test_an_api_that_is_not_served_is_not_drawn():
    served = {api: SERVED[api] for api in ("produce", "fetch")}
    for number in SEQUENCES:
        steps = draw_sequence(7, number, served)["steps"]
        assert {word for step in steps for word in step} <= {
            *("produce", "fetch", "pipelined", "connection")
        }


def test_versions_are_those_that_both_serve():
    served = {**SERVED, "fetch": (5, 6), "produce": (4, 4)}
    found = Counter(
        (word, step[word]["version"])
        for number in SEQUENCES
        for step in draw_sequence(7, number, served)["steps"]
        for word in ("fetch", "produce")
        if "version" in step.get(word, {})
    )
    assert set(found) == {("fetch", 5), ("fetch", 6), ("produce", 4)}


def batches(sketches):
    """Every batch that is drawn, with the keys of its partition."""
    for sketch in sketches:
        for step in sketch["steps"]:
            keys = step.get("produce", {})
            yield from keys.get("to", [keys] if keys else [])


def test_batches_wrap_and_fence_and_are_broken(sketches):
    """The borders that rules are about are met often, not by luck."""
    every = list(batches(sketches))
    assert sum(each.get("sequence", 0) > 2**31 - 4 for each in every) > 20
    assert sum(each.get("epoch") == -1 for each in every) > 5
    assert sum(each.get("epoch") == 2**15 - 1 for each in every) > 5
    assert {name for each in every for name in each.get("wrong", {})} >= {
        *("crc", "magic", "batch_length", "record_count", "attributes", "base_sequence"),
        *("last_offset_delta", "base_offset", "producer_epoch"),
    }
    assert {each.get("codec", "none") for each in every} == {
        *("none", "gzip", "snappy", "lz4", "zstd")
    }


def test_writes_are_pipelined_and_acks_are_of_every_kind(sketches):
    steps = [step for each in sketches for step in each["steps"]]
    assert sum(step.get("pipelined", False) for step in steps) > len(steps) / 5
    acks = {step["produce"].get("acks", -1) for step in steps if "produce" in step}
    assert acks == {-1, 0, 1, 2, -2, 7}
