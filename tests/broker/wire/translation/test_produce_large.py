"""Of a large Produce request the records are taken out before the codec has it.

Nothing else may come of it than what the codec alone would have read. They are judged where they
lie in the frame, and copied in steps.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.errors import FrameError
from ottla.broker.wire import buffers, copying
from ottla.broker.wire.codec import request_schema
from ottla.broker.wire.copying import copied
from ottla.broker.wire.requests import ProduceRequest
from ottla.broker.wire.translation import produce_large
from ottla.broker.wire.translation.produce_large import reader
from ottla.broker.wire.translation.reading import translator
from ottla.log.build import build_batch
from ottla.log.record_batch import BatchDefect, first_codec, read_batch

VERSIONS = range(3, 13)
TAKEN = 20


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(produce_large, "LARGE_BYTES", 60)
    monkeypatch.setattr(produce_large, "TAKEN_BYTES", TAKEN)
    monkeypatch.setattr(copying, "STEP_BYTES", 7)


def body(version, topics, transactional_id=None):
    """A request: names, and the records of their partitions."""
    schema = request_schema(0, version)
    data = [
        {
            "name": name,
            "partition_data": [{"index": n, "records": each} for n, each in enumerate(parts)],
        }
        for name, parts in topics
    ]
    fields = {"transactional_id": transactional_id, "acks": -1, "timeout": 1500}
    return schema.write(schema.build(**fields, topic_data=data))


def read(version, frame, at=0):
    """What a handler finds in it."""
    return told(reader(version, request_schema(0, version))(frame, at))


def told(request):
    """All of it, as values."""
    found = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = None if part.records is None else bytes(part.records)
            found.append((topic.name, part.partition, records))
    return request.acks, request.timeout, found


def plain(version, frame, at=0):
    """The same, as the codec alone reads it."""
    schema = request_schema(0, version)
    return told(translator(ProduceRequest, schema.cls)(schema.read(frame, at)))


def taken(request):
    """Which records are views of the frame."""
    return [
        isinstance(part.records, memoryview)
        for topic in request.topic_data
        for part in topic.partition_data
    ]


RECORDS = st.none() | st.binary(max_size=2 * TAKEN) | st.integers(0, 400).map(bytes)
TOPICS = st.lists(st.tuples(st.text(max_size=9), st.lists(RECORDS, max_size=5)), max_size=5)


@pytest.mark.slow
@given(
    st.sampled_from(VERSIONS),
    TOPICS,
    st.none() | st.text(max_size=5),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
def test_the_same_is_read_as_by_the_codec_alone(version, topics, transactional_id, before, after):
    frame = before + body(version, topics, transactional_id) + after
    expected = plain(version, frame, len(before))
    assert read(version, frame, len(before)) == expected


@pytest.mark.slow
@given(st.sampled_from(VERSIONS), TOPICS, st.data())
def test_what_is_damaged_is_read_or_refused_as_by_the_codec_alone(version, topics, data):
    frame = bytearray(body(version, topics))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(1, len(frame)))])
    try:
        expected = plain(version, cut)
    except FrameError:
        with pytest.raises(FrameError):
            read(version, cut)
    else:
        assert read(version, cut) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_large_records_are_views_of_the_frame(version):
    frame = body(version, [("t", [bytes(100), b"small", None]), ("u", [b"x" * 100])])
    found = reader(version, request_schema(0, version))(frame, 0)
    assert taken(found) == [True, False, False, True]
    records = next(iter(next(iter(found.topic_data)).partition_data)).records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def with_tags(version, topics, tags):
    """The same with tagged fields that nobody knows, in the one place where there are some."""
    return body(version, topics)[:-1] + tags


@pytest.mark.parametrize("version", range(9, 13))
def test_records_are_taken_out_whatever_follows_them(version):
    """Or else 90 MB were copied at once for one odd byte."""
    topics = [("t", [bytes(100), b"x" * 100])]
    frame = with_tags(version, topics, b"\2\5\3abc\7\0") + b"more"
    found = reader(version, request_schema(0, version))(frame, 0)
    assert taken(found) == [True, True]
    assert told(found) == read(version, body(version, topics))


def test_tagged_fields_without_number_are_the_guards_to_refuse(monkeypatch):
    monkeypatch.setattr(produce_large, "MOST_ELEMENTS", 5)
    frame = with_tags(9, [("t", [bytes(100)])], b"\6" + b"\1\0" * 6)
    assert taken(reader(9, request_schema(0, 9))(frame, 0)) == [False]


def test_a_frame_that_has_views_is_in_no_buffer_that_is_used_again(monkeypatch):
    monkeypatch.undo()
    assert produce_large.LARGE_BYTES >= buffers.SPARE_BYTES > buffers.SCRATCH_BYTES


SIZES = st.sampled_from([0, 1, 2]) | st.integers(0, 100)


@pytest.mark.slow
@given(st.integers(0, 2), st.binary(max_size=80), SIZES, st.data())
def test_a_view_is_judged_as_the_bytes_are(count, stray, cut, data):
    whole = bytearray(build_batch([b"v" * 10]) * count + stray)
    for _ in range(data.draw(st.integers(0, 2))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    records = bytes(whole[: max(0, len(whole) - cut)])

    def judged(given_as):
        read = read_batch(given_as)
        if isinstance(read, BatchDefect):
            return read, first_codec(given_as)
        fields = (read.base_offset, read.batch_length, read.attributes, read.record_count)
        return bytes(read.data), fields, first_codec(given_as)

    assert judged(memoryview(records)) == judged(records)


@given(st.binary(max_size=100))
def test_what_is_copied_in_steps_is_the_same(data):
    found = []

    def copy():
        found.append((yield from copied(memoryview(data))))

    assert len(list(copy())) == -(-len(data) // 7)
    assert found == [data]
    assert isinstance(found[0], bytes)
