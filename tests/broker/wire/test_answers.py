"""Hand-packed answers and the short cut in decoding, held to kio byte for byte.

Whatever values an answer may have, our bytes are those of kio's writer; whatever bytes a request
may have, the short cut reads what kio reads, or declines.
"""

from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_wire import frame
from fuzz_frames import request
from fuzz_hostile import changed_request, encodings, replaced
from ottla.broker.client import split_batches
from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.images import BrokerImage
from ottla.broker.wire import codec
from ottla.broker.wire.answers import (
    FetchAnswer,
    PartitionFetched,
    PartitionProduced,
    ProduceAnswer,
    TopicFetched,
    TopicProduced,
)
from ottla.broker.wire.api.produce import patience
from ottla.broker.wire.requests import ProduceRequest
from ottla.broker.wire.translation import fetch_answer, produce_answer
from ottla.broker.wire.translation.produce_prefixes import LONGEST_PREFIX, Shortcut
from ottla.broker.wire.translation.reading import translator
from ottla.log.build import build_batch
from ottla.log.inspection import Fault
from ottla.log.types import EpochStart, RecordBatch

I64 = st.integers(-1, 2**63 - 1)
I32 = st.integers(-1, 2**31 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=200)
ERRORS = st.sampled_from(list(ErrorCode))
TIMES = st.integers(-1, 2**41)
BROKERS = [BrokerImage(1, "one", 9001), BrokerImage(2, "zwölf" * 40, 9002)]

produce_parts = st.builds(
    PartitionProduced,
    I32,
    ERRORS,
    I64,
    TIMES,
    I64,
    st.none() | NAMES,
    st.sampled_from([-1, 1, 2, 3]),
    I32,
    st.lists(st.builds(Fault, I32, NAMES), max_size=3),
)


@pytest.mark.slow
@given(
    st.integers(3, 12), st.lists(st.tuples(NAMES, st.lists(produce_parts, max_size=4)), max_size=4)
)
def test_produce_answers_are_kios_bytes(version, topics):
    schema = codec.response_schema(0, version)
    not_here = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leaders = [part.leader for _, parts in topics for part in parts if part.error is not_here]
    entity = schema.build(
        responses=[
            {"name": name, "partition_responses": [kio_part(version, part) for part in parts]}
            for name, parts in topics
        ],
        throttle_time=0,
        node_endpoints=[
            {"node_id": each.node, "host": each.host, "port": each.port, "rack": None}
            for each in BROKERS
            if each.node in leaders
        ],
    )
    assert packed(produce_answer, version, ProduceAnswer(topics, BROKERS)) == schema.write(entity)


def packed(packing, version, answer):
    pieces: list[bytes | memoryview] = []
    for _ in packing.pack_in_steps(version, answer, pieces):
        pass
    return b"".join(pieces)


class _Counted:
    """A batch that counts how often it is looked at."""

    def __init__(self, looks):
        self._looks = looks

    def __len__(self):
        self._looks[-1] += 1
        return 70

    def parts(self):
        self._looks[-1] += 1
        return [bytes(70)]


def test_no_step_of_a_fetch_answer_looks_at_many_batches():
    """The sizes of 20,000 small batches were added up in one step of 2 ms that was counted as one
    unit, and a turn took ten of those."""
    looks = [0]
    batch = cast(RecordBatch, _Counted(looks))
    read = PartitionFetched(0, ErrorCode.NONE, batches=[batch] * 1_000)
    steps = fetch_answer.pack_in_steps(12, FetchAnswer([TopicFetched("t", [read])]), [])
    looks.extend(0 for _ in steps)
    assert sum(looks) == 2_000
    assert max(looks) <= fetch_answer.MEASURED_A_UNIT + fetch_answer.BATCHES_A_UNIT


def kio_part(version, part):
    fields = {
        "index": part.partition,
        "error_code": part.error,
        "base_offset": part.base_offset,
        "log_append_time": part.log_append_time,
        "log_start_offset": part.log_start_offset,
        "record_errors": [
            {"batch_index": fault.number, "batch_index_error_message": fault.text}
            for fault in part.faults
        ],
        "error_message": part.message,
    }
    wrong_node = part.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= 10
    if wrong_node and part.leader >= 0:
        leader = {"leader_id": part.leader, "leader_epoch": part.leader_epoch}
        fields["current_leader"] = leader
    return fields


@given(st.integers(3, 12), NAMES, I32, ERRORS, st.tuples(I64, TIMES, I64))
def test_the_answer_for_one_partition_is_the_general_one(version, topic, index, error, numbers):
    head = produce_answer.one_head(topic, version)
    answer = PartitionProduced(index, error, *numbers)
    general = packed(produce_answer, version, ProduceAnswer([TopicProduced(topic, [answer])]))
    assert produce_answer.pack_one(head, version, (index, error, *numbers)) == general
    assert produce_answer.pack_one(head, version, answer) == general


batches = st.builds(
    lambda value, base: stamped(build_batch([value]), base),
    st.binary(max_size=200),
    st.integers(0, 10**12),
)


def stamped(data, base):
    (batch,) = split_batches(data)
    batch.stamp(base, 3)
    return batch


fetch_parts = st.builds(
    PartitionFetched,
    I32,
    ERRORS,
    I64,
    I64,
    st.lists(batches, max_size=3),
    st.booleans(),
    st.none() | st.tuples(batches, st.integers(1, 60)),
    st.none() | st.builds(EpochStart, st.integers(0, 2**31 - 1), I64),
)


def diverging(part):
    epoch, end = part.diverging or (-1, -1)  # the default, which is not written
    return {"epoch": epoch, "end_offset": end}


def records_in(part):
    batch, cut_at = part.cut or (stamped(build_batch([b"v"]), 0), 0)
    return b"".join(each.stamped() for each in part.batches) + batch.stamped()[:cut_at]


@pytest.mark.slow
@given(
    st.integers(4, 12),
    st.lists(st.tuples(NAMES, st.lists(fetch_parts, max_size=3)), max_size=3),
    ERRORS,
)
def test_fetch_answers_are_kios_bytes(version, topics, error):
    schema = codec.response_schema(1, version)
    entity = schema.build(
        throttle_time=0,
        error_code=error,
        session_id=0,
        responses=[
            {
                "topic": name,
                "partitions": [
                    {
                        "partition_index": part.partition,
                        "error_code": part.error,
                        "high_watermark": part.high_watermark,
                        "last_stable_offset": part.high_watermark,
                        "log_start_offset": part.log_start_offset,
                        "aborted_transactions": None if part.aborted_is_null else (),
                        "preferred_read_replica": -1,
                        "records": records_in(part),
                    }
                    | ({"diverging_epoch": diverging(part)} if version >= 12 else {})
                    for part in parts
                ],
            }
            for name, parts in topics
        ],
    )
    assert packed(fetch_answer, version, FetchAnswer(topics, error)) == schema.write(entity)


requests = st.fixed_dictionaries(
    {
        "transactional_id": st.none() | st.sampled_from(["", "txn"]),
        "acks": st.integers(-2, 2),
        "timeout": st.integers(-5, 100_000),
        "topic_data": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["t", "", "longer.name", "ü" * 70]) | NAMES,
                    "partition_data": st.lists(
                        st.fixed_dictionaries(
                            {
                                "index": st.integers(-1, 70_000),
                                "records": st.none() | st.binary(max_size=300),
                            }
                        ),
                        min_size=1,
                        max_size=2,
                    ),
                }
            ),
            min_size=1,
            max_size=2,
        ),
    }
)


@pytest.mark.slow
@given(st.integers(3, 12), requests, st.binary(max_size=300), st.binary(max_size=5), st.data())
def test_the_short_cut_reads_what_the_codec_reads(version, fields, records, extra, data):
    """Learn one request; another one with the same prefix, or any damage to it, reads the same."""
    shortcut = Shortcut(version)
    learn(shortcut, frame("produce", version, **fields))
    fields["topic_data"][0]["partition_data"][0]["records"] = records
    other = bytearray(frame("produce", version, **fields) + extra)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(14, len(other) - 1))
        other[at] = data.draw(st.integers(0, 255))
    del other[data.draw(st.integers(len(other) // 2, len(other))) :]
    agrees(shortcut, bytes(other))


@pytest.mark.slow
def test_the_short_cut_believes_no_length_that_the_codec_does_not():
    rng = Random(1)
    taken = 0
    for version in sorted([*range(3, 13)] * 15):
        good = request(rng, 0, version)
        for first in (good.data, changed_request(good, rng)):
            shortcut = Shortcut(version)
            try:
                learn(shortcut, first)
            except FrameError:
                continue
            seconds = [changed_request(good, rng)]
            for spot in good.spots:
                others = encodings(spot)
                seconds += (replaced(first, spot, other) for other in rng.sample(others, 12))
            taken += sum(agrees(shortcut, second) for second in seconds)
    assert taken > 50


@pytest.mark.parametrize("version", range(9, 13))
def test_a_size_of_more_than_five_bytes_is_none_for_the_short_cut_either(version):
    """It was taken for a number, though the fifth byte says that a sixth follows."""
    shortcut = Shortcut(version)
    good = one(version)
    learn(shortcut, good)
    at = good.index(b"r" * 70) - 1
    assert good[at] == 71
    for size, fits in ((b"\xc7\0", True), (b"\xc7\x80\x80\x80\x80", False)):
        found = take(shortcut, good[:at] + size + good[at + 1 :])
        assert (found is not None) is fits


def agrees(shortcut, data):
    """Whether the short cut is taken; if so, the codec reads the same."""
    found = take(shortcut, data)
    if found is None:
        return False
    target, got = found
    asked = general(shortcut.version, data)
    (topic,) = asked.topic_data
    (part,) = topic.partition_data
    assert (target.topic, target.partition) == (topic.name, part.partition)
    assert (target.acks, got) == (asked.acks, part.records)
    assert target.timeout == patience(asked.timeout)
    return True


def take(shortcut, data):
    view = memoryview(data)
    length = int.from_bytes(data[12:14], "big", signed=True)
    return shortcut.read(view, 12, length, len(view))


def general(version, data):
    schema = codec.request_schema(0, version)
    header = codec.read_header(data[4:])
    at = codec.skip_tags(data[4:], header.end) if schema.header_tags else header.end
    return translator(ProduceRequest, schema.cls)(schema.read(data[4:], at))


def learn(shortcut, data):
    header = codec.read_header(data[4:])
    asked = general(shortcut.version, data)
    shortcut.learn(memoryview(data), 12, len(data), header.client_id, asked)


def one(version, name="t", records=b"r" * 70):
    part = {"index": 3, "records": records}
    return frame(
        "produce",
        version,
        transactional_id=None,
        acks=1,
        timeout=5,
        topic_data=[{"name": name, "partition_data": [part]}],
    )


def test_the_short_cut_is_taken():
    for version in range(3, 13):
        shortcut = Shortcut(version)
        assert take(shortcut, one(version)) is None
        learn(shortcut, one(version))
        target, records = take(shortcut, one(version, records=b"other" * 50))
        assert (target.client_id, target.partition, target.acks) == ("ottla", 3, 1)
        assert records == b"other" * 50
        assert take(shortcut, one(version, name="u")) is None
        assert take(shortcut, one(version, records=None)) is None


def test_overlong_prefixes_are_not_kept():
    for version in (8, 9):
        shortcut = Shortcut(version)
        data = bytearray(one(version))
        name = b"c" * LONGEST_PREFIX
        data[12 : 14 + 5] = len(name).to_bytes(2, "big") + name
        data[:4] = (len(data) - 4).to_bytes(4, "big")
        learn(shortcut, bytes(data))
        assert take(shortcut, bytes(data)) is None
