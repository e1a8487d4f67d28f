"""Options and ranges of the data source: what is asked, and how it is cut.

Pure functions on hand-made bounds. The property at the end is what everything rests on: however
offsets are cut, each is read exactly once.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sim.studies.topics.asked import SourceError, asked
from ottla.sim.studies.topics.offsets import (
    Bounds,
    Range,
    advanced,
    between,
    forward,
    not_below,
    placed,
    shorter,
)

KNOWN = {"t": {0: Bounds(5, 20), 1: Bounds(0, 7)}}
GOOD = {"topic": "t", "bootstrap": "h:1"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "t"}, "say where: either bootstrap=HOST:PORT, or path=FOLDER"),
        (GOOD | {"path": "x"}, "say where"),
        ({"bootstrap": "h:1"}, "say what: topic=NAME"),
        (GOOD | {"bootstrap": "h"}, "'h' is not an address; write HOST:PORT"),
        (GOOD | {"bootstrap": "h:70000"}, "is not an address"),
        (GOOD | {"node": "2"}, "node is for path=FOLDER: it says whose log is read"),
        ({"topic": "t", "path": "x", "node": "0"}, "node=0: write a number from 1 on"),
        (GOOD | {"rows": "lines"}, "rows=lines: one of records, batches"),
        (GOOD | {"failOnDataLoss": "maybe"}, "failOnDataLoss=maybe: one of true, false"),
        (GOOD | {"startingOffsets": "now"}, "startingOffsets=now: write earliest, latest or JSON"),
        (GOOD | {"startingOffsets": '{"t": {"0": "x"}}'}, "write earliest, latest or JSON"),
        (GOOD | {"startingOffsets": '{"t": {"0": -3}}'}, "write earliest, latest or JSON"),
        (GOOD | {"startingOffsets": '{"u": {"0": 1}}'}, "names u, which is not read"),
        (GOOD | {"endingOffsets": "earliest"}, "nothing ends there"),
        (GOOD | {"startingOffset": "latest"}, "there is no option startingoffset; there are topic"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(options, said):
    with pytest.raises(SourceError) as refused:
        asked(options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["latest", '{"t": {"0": 3}}'])
def test_a_stream_has_no_end_to_ask_for(text):
    options = GOOD | {"EndingOffsets": text}
    assert asked(options).topics == ("t",)
    with pytest.raises(
        SourceError, match="endingOffsets is for batches: a stream has no end"
    ) as refused:
        asked(options, stream=True)
    assert "\n" not in str(refused.value)
    assert asked(GOOD, stream=True) == asked(GOOD)


def test_a_batch_has_no_micro_batches_to_bound():
    options = GOOD | {"MaxRecordsPerBatch": "5"}
    assert asked(options, stream=True).per_batch == asked(options).per_batch == 5
    with pytest.raises(SourceError, match="maxRecordsPerBatch is for streams: it") as refused:
        asked(options, stream=False)
    assert "\n" not in str(refused.value)
    assert asked(GOOD, stream=False) == asked(GOOD)


def test_options_know_no_case_and_have_defaults():
    found = asked({"TOPIC": "a, b", "Bootstrap": "h:1,[::1]:2", "includeheaders": "TRUE"})
    assert found.topics == ("a", "b")
    assert found.bootstrap == (("h", 1), ("::1", 2))
    assert found.headers
    assert found.strict
    assert (found.starting, found.ending, found.rows) == ("earliest", "latest", "records")


def test_words_and_numbers_mean_places():
    assert placed("earliest", KNOWN) == {"t": {"0": 5, "1": 0}}
    assert placed("latest", KNOWN) == {"t": {"0": 20, "1": 7}}
    assert placed({"t": {"0": 9, "1": 7}}, KNOWN) == {"t": {"0": 9, "1": 7}}
    assert placed({"t": {"0": -1, "1": -2}}, KNOWN) == {"t": {"0": 20, "1": 0}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"t": {"0": 9, "1": 0, "2": 0}}, "there is no partition 2 of topic t"),
        (
            {"t": {"0": 9}},
            "offsets leave out partition 1 of topic t: name every partition",
        ),
        ({}, "offsets leave out partitions 0, 1 of topic t"),
        ({"t": {"0": 21, "1": 7}}, "t-0: offset 21 is out of range, the log goes from 5 to 20"),
    ],
)
def test_offsets_that_are_no_places_of_the_topic_are_refused_in_one_line(given, said):
    with pytest.raises(SourceError) as refused:
        placed(given, KNOWN)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_ranges_are_cut_into_tasks():
    start, end = {"t": {"0": 5, "1": 7}}, {"t": {"0": 12, "1": 7, "2": 2}}
    assert between(start, end, 4) == [
        Range("t", 0, 5, 9),
        Range("t", 0, 9, 12),
        Range("t", 2, 0, 2),  # a partition that came into being later
    ]
    assert between(end, start, 4) == []
    assert between(start, end, 9, {"t": "id"})[0] == Range("t", 0, 5, 12, "id")


def test_a_start_past_its_end_is_refused_in_one_line():
    start, end = {"t": {"0": 5, "1": 12}}, {"t": {"0": 5, "1": 9}}
    forward(end, start, {})
    forward(start, start, {})
    for gone in ({}, {"t": {"0": 5, "1": 11}}):
        with pytest.raises(SourceError) as refused:
            forward(start, end, gone)
        assert str(refused.value) == (
            "t-1: startingOffsets say 12 and endingOffsets say 9, which comes before it"
        )
    forward(start, end, {"t": {"0": 0, "1": 12}})  # what was to be read is gone, and passed over


def test_a_micro_batch_is_dealt_out_evenly():
    start, end = {"t": {"0": 0, "1": 0, "2": 0}}, {"t": {"0": 100, "1": 2, "2": 100}}
    assert advanced(start, end, 42) == {"t": {"0": 20, "1": 2, "2": 20}}
    assert advanced(start, end, 1000) == end
    assert advanced(start, end, 1) == {"t": {"0": 1, "1": 1, "2": 1}}


def test_nothing_goes_back():
    assert not_below({"t": {"0": 4, "1": 9}}, {"t": {"0": 6, "1": 6}}) == {"t": {"0": 6, "1": 9}}
    assert not_below({"t": {"0": 4}}, {"t": {"0": 4, "1": 6}}) == {"t": {"0": 4, "1": 6}}


def test_a_log_that_ends_before_what_was_read_is_shorter():
    assert shorter(KNOWN, {"t": {"0": 20, "1": 7}}) is None
    assert shorter(KNOWN, {}) is None
    for reached, said in (
        ({"0": 20, "1": 8}, "t-1 ends at 7, though it was read to 8"),
        ({"2": 1}, "t-2 is not there, though it was read to 1"),
    ):
        assert (shorter(KNOWN, {"t": reached}) or "").startswith(said)


OFFSETS = st.dictionaries(st.sampled_from("0123"), st.integers(0, 60), min_size=1)


@pytest.mark.slow
@given(OFFSETS, st.integers(1, 30), st.integers(1, 20))
def test_every_offset_is_read_once_however_it_is_cut(ends, most, per_task):
    """Property: micro-batches and tasks together read each offset below the end exactly once."""
    end, at = {"t": ends}, {"t": dict.fromkeys(ends, 0)}
    read: dict[str, list[int]] = {partition: [] for partition in ends}
    while at != end:
        following = advanced(at, end, most)
        ranges = between(at, following, per_task)
        assert sum(each.end - each.start for each in ranges) <= max(most, len(ends))
        for each in ranges:
            read[str(each.partition)] += range(each.start, each.end)
        assert following != at
        at = following
    assert read == {partition: list(range(last)) for partition, last in ends.items()}
