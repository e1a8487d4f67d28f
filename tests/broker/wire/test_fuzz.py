"""Whatever bytes come: the protocol raises nothing, and at most that connection closes.

The protocol is driven as an event loop would drive it, without sockets, so that thousands of
examples take seconds. A second connection of the same server must stay well each time.
"""

import asyncio
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_fake_host import FakeHost
from broker_wire import api_versions, default_host, frame, produce_frame
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.connection import Connection
from ottla.broker.wire.server import Server
from ottla.log.build import build_batch

I4 = struct.Struct(">i")
LONG = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "forgotten_topics_data": []}


def fetch_frame(version):
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": "t", "partitions": [wanted]}]
    return frame("fetch", version, topics=topics, **LONG)


def metadata_frame(version):
    return frame(
        "metadata",
        version,
        topics=[{"name": "t", "topic_id": bytes(16)}, {"name": "new", "topic_id": bytes(16)}],
        allow_auto_topic_creation=True,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


GOOD = [
    *(produce_frame(version) for version in range(3, 13)),
    *(produce_frame(version, acks=0) for version in (7, 9)),
    *(fetch_frame(version) for version in range(4, 13)),
    *(metadata_frame(version) for version in range(13)),
    *(api_versions(version) for version in range(5)),
]


TURNS = 20
"""Of the loop, in which everything is done: a large body, or many topics created, use up some."""


class Pipe(asyncio.Transport):
    """A transport without a socket: keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data):
        self.written += data

    def writelines(self, data):
        self.written += b"".join(data)

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close

    def pause_reading(self):
        assert self.reading
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True


def connect(server) -> tuple[Connection, Pipe]:
    connection, pipe = server.accept(), Pipe()
    connection.connection_made(pipe)
    return connection, pipe


async def feed(connection: Connection, pipe: Pipe, data: bytes, pieces: Callable[[], int]):
    """Let `data` arrive in pieces, while it is read; a turn that is used up is waited for."""
    turns = 0
    while data and not pipe.closed and turns < TURNS:
        if not pipe.reading:
            turns += 1
            await asyncio.sleep(0)
            continue
        buffer = connection.get_buffer(-1)
        size = min(len(buffer), len(data), pieces())
        assert size > 0
        buffer[:size] = data[:size]
        data = data[size:]
        connection.buffer_updated(size)


def deliver(data: bytes, pieces: Callable[[], int], **settings_) -> tuple[Pipe, FakeHost]:
    """What a connection makes of `data`; a second one on the same server must stay well."""

    async def main() -> tuple[Pipe, FakeHost]:
        host = default_host(**settings_)
        server = Server(host)
        failures = []
        server.loop.set_exception_handler(lambda _, context: failures.append(context))
        other, other_pipe = connect(server)
        connection, pipe = connect(server)
        await feed(connection, pipe, data, pieces)
        await asyncio.sleep(0)
        await feed(other, other_pipe, api_versions(), lambda: 1 << 20)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert len(other_pipe.written) > 20
        assert not other_pipe.closed
        connection.connection_lost(None)
        assert not failures, failures[0]["exception"]
        return pipe, host

    return asyncio.run(main())


@pytest.mark.slow
@given(st.binary(max_size=400), st.integers(1, 50))
def test_random_bytes(data, pieces):
    deliver(data, lambda: pieces)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3, 18]), st.integers(-1, 14)), max_size=5), st.data()
)
def test_random_bodies_behind_good_headers(heads, data):
    sent = b""
    for key, version in heads:
        body = data.draw(st.binary(max_size=120))
        head = (
            key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\1\xff\xff"
        )
        sent += (len(head) + len(body)).to_bytes(4, "big") + head + body
    deliver(sent, lambda: 1 << 20)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=4), st.data())
def test_good_frames_with_a_few_bytes_changed(frames, data):
    sent = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(sent) - 1))
        sent[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    deliver(bytes(sent), lambda: 1 << 20)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=12), st.data())
def test_any_cut_into_pieces_gives_the_same_answers(frames, data):
    sent = b"".join(frames)
    whole, _ = deliver(sent, lambda: 1 << 20)
    cut, _ = deliver(sent, lambda: data.draw(st.integers(1, 90)))
    assert bytes(cut.written) == bytes(whole.written)
    assert not whole.closed
    assert not cut.closed


@pytest.mark.parametrize("version", range(3, 13))
def test_every_single_cut_of_a_frame_waits_and_closes_nothing(version):
    good = produce_frame(version, records=build_batch([b"v"]))
    for end in range(len(good)):
        pipe, host = deliver(good[:end], lambda: 1 << 20)
        assert (pipe.closed, bytes(pipe.written)) == (False, b"")
        assert host.submitted == 0


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0"])
@pytest.mark.parametrize("version", [4, 8])
def test_absurd_array_lengths_cost_nothing(version, count):
    good = metadata_frame(version)
    at = good.index((2).to_bytes(4, "big") + b"\0\1t")
    sent = good[:at] + count + good[at + 4 :]
    pipe, host = deliver(sent * 3, lambda: 1 << 20)
    assert host.submitted == 0
    assert pipe.closed is (count[0] == 0x7F), "a negative number means null: all topics"


NULLS = {
    "produce 8": (8, b"\0\0\0\1\0\1t", b"\xff\xff\xff\xff\0\1t"),
    "produce 9": (9, b"\2\2t", b"\0\2t"),
    "produce 9, partitions": (9, b"\2t\2", b"\2t\0"),
}


@pytest.mark.parametrize(("version", "good", "null"), NULLS.values(), ids=NULLS)
def test_null_where_the_schema_allows_none_closes(version, good, null):
    sent = produce_frame(version)
    assert sent.count(good) == 1
    pipe, host = deliver(sent.replace(good, null), lambda: 1 << 20)
    assert (pipe.closed, host.submitted) == (True, 0)


def test_tagged_fields_that_the_schema_does_not_know_are_skipped():
    good = produce_frame(9)
    sent = (len(good) - 2).to_bytes(4, "big") + good[4:-1] + b"\x01\x63\x00"
    pipe, host = deliver(sent + good, lambda: 1 << 20)
    assert (pipe.closed, host.submitted) == (False, 2)


@pytest.mark.parametrize(
    ("body", "closes"),
    [
        (b"\x80\x80\x80\x80\x24", True),
        (b"\xff\xff\xff\xff\x7f", True),
        (b"\x80\x80\x80\x80\x20\1\0\0\0", False),
    ],
    ids=["9 * 2**30", "2**35 - 1, no more", "2**33, which is 0 in 32 bits: null"],
)
def test_a_compact_array_of_billions_ends_nothing_but_its_connection(body, closes):
    """The codec reserved 8 bytes for each element, and the process aborted, with all nodes."""
    head = b"\0\3\0\x09\0\0\0\1\xff\xff\0"
    pipe, _ = deliver(I4.pack(len(head + body)) + head + body, lambda: 1 << 20)
    assert pipe.closed is closes


def test_a_request_of_more_elements_than_20000_closes_its_connection():
    count = 10_001  # a text counts as two
    body = I4.pack(count) + b"\0\1t" * count
    head = b"\0\3\0\1\0\0\0\1\xff\xff"
    pipe, _ = deliver(I4.pack(len(head + body)) + head + body, lambda: 1 << 20)
    assert (pipe.closed, bytes(pipe.written)) == (True, b"")


def test_the_fuzz_reaches_handlers():
    pipe, host = deliver(b"".join(GOOD), lambda: 1 << 20)
    assert host.submitted >= 21
    assert not pipe.closed
    assert ErrorCode.NONE.to_bytes(2, "big") in bytes(pipe.written)
