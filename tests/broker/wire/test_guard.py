"""The guard in front of the codec: believes no length, and takes what Kafka takes.

What the codec makes of a body behind the guard is compared with `fuzz_java`, Kafka's own reading
written down a second time: for valid bodies of every schema served, for each of their lengths
replaced by hostile numbers, and for any window of bytes replaced.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_frames import SERVED, answer, request
from fuzz_hostile import change, encodings, replaced
from fuzz_java import Java, RefusedError, java_text, plain
from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.wire.codec import (
    MAX_HEADER_TAGS,
    Schema,
    read_header,
    request_schema,
    response_schema,
    skip_tags,
)
from ottla.broker.wire.translation.packing import varint
from ottla.broker.wire.walk import LONGEST_TEXT, REQUEST_LIMITS, decode_text
from work import instructions_of


def java_reads(schema: Schema, data: bytes) -> object:
    try:
        return Java(data).entity(schema.cls)
    except RefusedError:
        return RefusedError


def ottla_reads(schema: Schema, data: bytes) -> object:
    try:
        return plain(schema.read(memoryview(bytearray(data)).toreadonly(), 0))
    except FrameError:
        return RefusedError


def body_of(data: bytes, schema: Schema) -> bytes:
    header = read_header(data[4:])
    return data[4 + header.end + schema.header_tags :]


def agree_on_requests(key: int, version: int, frames: int, numbers: int, windows: int) -> None:
    """`frames` valid requests, each with `numbers` hostile ones at every length, and `windows`."""
    rng = Random(f"{key} {version}")
    schema = request_schema(key, version)
    for _ in range(frames):
        body = body_of(request(rng, key, version).data, schema)
        reader = Java(body)
        reader.entity(schema.cls)
        changed = [body]
        for spot in reader.spots:
            others = encodings(spot)
            changed += (
                replaced(body, spot, other)
                for other in rng.sample(others, min(numbers, len(others)))
            )
        changed += (change(body, (), rng) for _ in range(windows))
        for data in changed:
            assert ottla_reads(schema, data) == java_reads(schema, data), data.hex()


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_requests_with_hostile_lengths_are_read_as_kafka_reads_them(key, version):
    """Here a count of 9 * 2**30 once ended the process: the codec reserved room for as many."""
    agree_on_requests(key, version, 1, 6, 10)


@pytest.mark.parametrize(
    "frames",
    [pytest.param(3, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize(("key", "version"), SERVED)
def test_requests_with_every_hostile_number_at_every_length(key, version, frames):
    agree_on_requests(key, version, frames, 100, 200)


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_answers_are_read_as_javas_client_does_or_refused(key, version):
    """A hostile broker must not end the process of a client either."""
    rng = Random(f"{key} {version}")
    for _ in range(15):
        schema, body, spots = answer(rng, key, version)
        assert ottla_reads(schema, body) == java_reads(schema, body) != RefusedError
        data = change(body, spots, rng)
        # What is refused beside: codes and times that have no name in Python.
        assert ottla_reads(schema, data) in (java_reads(schema, data), RefusedError), data.hex()


METADATA = request_schema(3, 1)
TAGGED = request_schema(3, 9)
FETCH = request_schema(1, 12)


def names(count: int, name: bytes = b"\0\1t") -> bytes:
    """Metadata 1 with so many topics."""
    return count.to_bytes(4, "big") + name * count


def test_a_request_may_have_20000_elements_and_no_more():
    most = REQUEST_LIMITS.elements
    assert most == 20_000
    schema, head = request_schema(9, 1), b"\0\1g" + b"\0\0\0\1" + b"\0\1t"

    def partitions(count: int) -> bytes:
        return head + count.to_bytes(4, "big") + bytes(4) * count

    room = most - 3  # a topic has a name and an array
    assert len(schema.read(partitions(room), 0).topics[0].partition_indexes) == room
    with pytest.raises(FrameError, match="more than 20000 elements"):
        schema.read(partitions(room + 1), 0)


def test_a_text_counts_as_two_elements():
    """19,999 names of 200 bytes beyond ASCII took one turn up to 68 ms."""
    most = REQUEST_LIMITS.elements // 2
    assert len(METADATA.read(names(most), 0).topics) == most
    with pytest.raises(FrameError, match="more than 20000 elements"):
        METADATA.read(names(most + 1), 0)


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [(request_schema(3, 12), b"", b"\0\0"), (request_schema(20, 6), b"\0", b"\0")],
    ids=["Metadata", "DeleteTopics"],
)
def test_a_topic_id_counts_as_two_elements(schema, before, after):
    """20,000 topics by id took the codec 60 ms in one turn: a UUID costs so much."""

    def topics(count: int, topic_id: bytes) -> bytes:
        one: bytes = before + topic_id + after
        return varint(count + 1) + one * count + bytes(8)

    most = REQUEST_LIMITS.elements
    assert len(schema.read(topics(most // 4, b"\1" * 16), 0).topics) == most // 4
    assert len(schema.read(topics(most // 2, bytes(16)), 0).topics) == most // 2
    with pytest.raises(FrameError, match="more than 20000 elements"):
        schema.read(topics(most // 4 + 1, b"\1" * 16), 0)


HEAVY = [
    (request_schema(0, 9), 3, b"\0" + bytes(6), b"\2t\1\0", b"\0"),
    (request_schema(1, 12), 3, bytes(25), b"\2t\1\0", b"\1\1\0"),
    (request_schema(19, 7), 4, b"", b"\2t" + bytes(6) + b"\1\1\0", bytes(6)),
]


@pytest.mark.parametrize(
    ("schema", "weight", "before", "one", "after"), HEAVY, ids=["Produce", "Fetch", "CreateTopics"]
)
def test_an_element_weighs_what_its_texts_and_arrays_do(schema, weight, before, one, after):
    """19,900 topics without partitions in one Produce took the loop 44 to 90 ms."""

    def topics(count: int) -> bytes:
        counted: bytes = varint(count + 1) + one * count
        body: bytes = before + counted + after
        return body

    most = REQUEST_LIMITS.elements // weight
    schema.read(topics(most), 0)
    with pytest.raises(FrameError, match="more than 20000 elements"):
        schema.read(topics(most + 1), 0)


def test_records_weigh_two_elements_even_null():
    """19,900 partitions with null records: 42 to 85 ms in one turn."""
    schema, one = request_schema(0, 9), bytes(4) + b"\0\0"

    def partitions(count: int) -> bytes:
        counted: bytes = varint(count + 1) + one * count
        return b"\0" + bytes(6) + b"\2\2t" + counted + bytes(2)

    most = (REQUEST_LIMITS.elements - 3) // 2
    assert len(schema.read(partitions(most), 0).topic_data[0].partition_data) == most
    with pytest.raises(FrameError, match="more than 20000 elements"):
        schema.read(partitions(most + 1), 0)


def test_a_request_may_have_3_mib_beside_its_records_and_no_more():
    """Texts beyond ASCII take the codec 4 ns a byte: 430 ms for the 90 MB that a frame may have."""
    most = REQUEST_LIMITS.body_bytes
    assert most == 3 << 20
    names = ["x" * 32_763] * (most // 32_765)
    room = most - 4 - len(names) * 32_765 - 2

    def of_size(more: int) -> bytes:
        topics = [{"name": name} for name in (*names, "y" * (room + more))]
        return METADATA.write(METADATA.build(topics=topics))

    fits, too_large = of_size(0), of_size(1)
    assert len(fits) == most
    assert len(METADATA.read(fits, 0).topics) == len(names) + 1
    with pytest.raises(FrameError, match="3145729 bytes beside the records, limit 3145728"):
        METADATA.read(too_large, 0)


@pytest.mark.parametrize("version", [3, 12])
def test_records_are_not_counted(version):
    produce = request_schema(0, version)
    parts = [{"index": 0, "records": bytes(5 << 20)}]
    topics = [{"name": "t", "partition_data": parts}]
    fields = {"transactional_id": None, "acks": 1, "timeout": 1}
    data = produce.write(produce.build(**fields, topic_data=topics))
    assert len(produce.read(data, 0).topic_data[0].partition_data[0].records) == 5 << 20


@pytest.mark.slow
def test_elements_of_all_arrays_count():
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic": "t", "partitions": [wanted] * 150}] * 131
    fields = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1, "forgotten_topics_data": []}
    data = FETCH.write(FETCH.build(topics=topics, **fields))
    with pytest.raises(FrameError, match="more than 20000 elements"):
        FETCH.read(data, 0)
    assert len(FETCH.read(FETCH.write(FETCH.build(topics=topics[1:], **fields)), 0).topics) == 130


@pytest.mark.slow
def test_an_answer_may_have_more():
    schema = response_schema(3, 1)
    topic = {"error_code": ErrorCode.NONE, "is_internal": False, "partitions": ()}
    topics = [topic | {"name": f"t{number}"} for number in range(30_000)]
    data = schema.write(schema.build(brokers=(), controller_id=1, topics=topics))
    assert len(schema.read(data, 0).topics) == 30_000


ODD_FLAG = b"\1\2\0\0"
"""Behind the topics of Metadata 9: a boolean of 2 for the third."""


def test_a_large_request_that_must_be_mended_is_refused():
    """It would be read and written several times in one turn."""
    most = REQUEST_LIMITS.mended
    topic = b"\2t\0"
    for count, fits in ((most // 2, True), (most // 2 + 1, False)):
        size = bytes([(count + 1) & 0x7F | 0x80, (count + 1) >> 7])
        if fits:
            assert len(TAGGED.read(size + topic * count + ODD_FLAG, 0).topics) == count
            continue
        with pytest.raises(FrameError, match="more than 2000 elements, not all in a usual"):
            TAGGED.read(size + topic * count + ODD_FLAG, 0)
    for name in (b"\0\1\xff", b"\0\2a\xfc"):
        with pytest.raises(FrameError, match="more than 2000 elements, not all in a usual"):
            METADATA.read(names(most // 2 + 1, name), 0)


@pytest.mark.parametrize("byte", [0, 1, 2, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("version", range(3))
def test_any_boolean_but_0_is_true(version, byte):
    """Kafka answers DescribeCluster with a boolean of 2; the codec refuses it."""
    schema = request_schema(60, version)
    good = schema.write(
        schema.build(include_cluster_authorized_operations=False, include_fenced_brokers=False)
    )
    read = schema.read(bytes([byte]) + good[1:], 0)
    assert read.include_cluster_authorized_operations is (byte != 0)


@pytest.mark.parametrize(
    ("section", "cluster_id"),
    [
        (b"\0", None),
        (b"\1\0\3\3ab", "ab"),
        (b"\1\0\1\0", None),
        (b"\1\x63\0", None),
        (b"\2\x63\2xy\0\3\3ab", "ab"),
        (b"\2\0\3\3ab\0\3\3cd", "cd"),
        (b"\1\0\x70\3ab", "ab"),
        (b"\1\0\3\3\xffb", "\ufffdb"),
        (b"\1\x80\0\3\3ab", "ab"),
        (b"\xff\xff\xff\xff\x0f", None),
    ],
    ids=[
        "none",
        "known",
        "known, null",
        "unknown",
        "unknown before known",
        "twice",
        "of a wrong size",
        "not UTF-8",
        "number in two bytes",
        "a negative number of them",
    ],
)
def test_tagged_fields_are_read_as_kafka_reads_them(section, cluster_id):
    fields = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1}
    good = FETCH.write(FETCH.build(topics=(), forgotten_topics_data=(), **fields))
    assert good[-1] == 0
    assert FETCH.read(good[:-1] + section, 0).cluster_id == cluster_id


@pytest.mark.slow
@given(
    st.binary(max_size=8)
    | st.lists(st.sampled_from(b"a\x80\x8f\x90\x9f\xa0\xbf\xc2\xe0\xed\xf0\xf4"), max_size=9)
)
def test_text_that_is_not_utf_8_is_what_java_makes_of_it(data):
    assert decode_text(bytes(data)) == java_text(bytes(data))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff", "\ufffd"),
        (b"a\xc3", "a\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xed\xa0\x80z", "\ufffdz"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
def test_javas_own_results(data, text):
    """As `new String(data, UTF_8)` gives them."""
    assert decode_text(data) == text


def test_a_text_that_grows_beyond_its_length_field_is_refused():
    """No answer could hold it either."""
    size = LONGEST_TEXT // 3
    assert METADATA.read(names(1, size.to_bytes(2, "big") + b"\xff" * size), 0)
    size += 1
    with pytest.raises(FrameError, match="too long to be mended"):
        METADATA.read(names(1, size.to_bytes(2, "big") + b"\xff" * size), 0)


def test_of_texts_beyond_ascii_256_kib_are_looked_into():
    """20 MB of them took a second, in one turn of the loop."""
    assert REQUEST_LIMITS.text_bytes == 1 << 18
    for size, fits in ((8 << 10, True), ((8 << 10) + 1, False)):
        topics = size.to_bytes(2, "big") + b"\xff" + b"x" * (size - 1)
        if fits:
            assert len(METADATA.read(names(32, topics), 0).topics) == 32
            continue
        with pytest.raises(FrameError, match="more than 262144 bytes of text, not all UTF-8"):
            METADATA.read(names(32, topics), 0)
    long = (1 << 14).to_bytes(2, "big") + "ü".encode() * (1 << 13)
    assert len(METADATA.read(names(100, long), 0).topics) == 100, "good ones are never too many"


def test_a_compact_text_may_be_as_long_as_any_other():
    for size, head in ((0x7FFF, b"\x80\x80\2"), (0x8000, b"\x81\x80\2")):
        data = b"\2" + head + b"x" * size + b"\0\1\0\0\0"
        if size == LONGEST_TEXT:
            assert TAGGED.read(data, 0).topics[0].name == "x" * size
            continue
        with pytest.raises(FrameError, match="a string of 32768 bytes"):
            TAGGED.read(data, 0)


def test_tags_of_a_header_are_few_and_lie_in_the_frame():
    """Each tag costs a look: 50 million fit into a frame."""
    section = bytes([MAX_HEADER_TAGS & 0x7F | 0x80, MAX_HEADER_TAGS >> 7])
    assert skip_tags(section + b"\0\0" * MAX_HEADER_TAGS, 0) == 2 + 2 * MAX_HEADER_TAGS
    with pytest.raises(FrameError, match="1001 tagged fields"):
        skip_tags(bytes([0xE9, 7]) + b"\0\0" * (MAX_HEADER_TAGS + 1), 0)
    with pytest.raises(FrameError, match="of -1 bytes"):
        skip_tags(b"\1\0\xff\xff\xff\xff\x0f", 0)
    assert skip_tags(b"\xff\xff\xff\xff\x0f", 0) == 5  # a negative number of them is none


def test_the_cost_of_the_longest_arrays_is_bounded():
    """Where elements are all of one size, they are not looked at one by one."""
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    fields = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1, "forgotten_topics_data": []}

    def fetch_of(count: int) -> bytes:
        return FETCH.write(
            FETCH.build(topics=[{"topic": "t", "partitions": [wanted] * count}], **fields)
        )

    few, many = (fetch_of(count) for count in (100, 10_000))
    cost, at_the_least = (
        instructions_of(lambda: FETCH.read(many, 0)),
        instructions_of(lambda: FETCH.read(few, 0)),
    )
    assert cost < at_the_least + 300, "the count itself takes a byte more"
    per_name = instructions_of(lambda: METADATA.read(names(10_000), 0)) / 10_000
    assert per_name < 40
