"""A raw Kafka client: for tests, benches and demos that must say exactly what goes on the wire.

It does nothing on its own: no retries, no metadata refresh, no sequence numbers unless told.

Responses carry no type (promise-P1): `Exchange`, the sans-IO half, remembers the API and version of
each request by its correlation id, and expects no answer to a Produce with acks=0. `Client` puts it
on an asyncio connection: requests are written at once, answers come as futures, so any number can
be under way.

    client = await Client.connect("127.0.0.1", 9092)
    answer = await client.produce("t", 0, [b"value"], acks=-1)
    answer.error, answer.base_offset
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple, cast

from ottla.broker.arguments.arguments import encoded, is_a, items, text, whole
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import ConfigError, ErrorCode, FrameError
from ottla.broker.wire.client_requests import API_KEYS, api_key, check_fields, chosen_version, unfit
from ottla.broker.wire.codec import request_schema, response_schema, skip_tags
from ottla.broker.wire.guard import Entity
from ottla.log.build import NewRecord, build_batch
from ottla.log.record_batch import BatchDefect, read_batch
from ottla.log.types import Offset, ProducerEpoch, ProducerId, RecordBatch
from ottla.log.types import Sequence as SequenceNumber

_FRAME = Struct(">ihhih")
_SIZE = Struct(">i")
_BATCH_LENGTH = Struct(">i")

LONGEST_CLIENT_ID = 32_767
"""Bytes of a client id: its length is an int16."""
LONGEST_HOST = 255
"""Bytes of a host name (RFC 1035)."""
MAX_ANSWER_BYTES = 1 << 28
"""The largest frame that the client accepts, 256 MiB: other peers may announce any length."""


class NoAnswerError(FrameError):
    """The broker sent bytes that are no answer. `behind` has the valid answers that came before
    them, with the correlation id of each."""

    def __init__(self, why: FrameError, behind: list[tuple[int, Entity]]) -> None:
        super().__init__(str(why))
        self.why = why
        self.behind = behind


class Exchange:
    """One connection's requests and answers, without I/O."""

    def __init__(self, client_id: str | None = "ottla"):
        self._client_id = (
            None if client_id is None else encoded("client_id", client_id, LONGEST_CLIENT_ID)
        )
        self._next = 0
        self._expected: dict[int, tuple[int, int]] = {}
        self._received = bytearray()

    def __len__(self) -> int:
        """Answers still expected."""
        return len(self._expected)

    def request(self, key: int, version: int, fields: Mapping[str, object]) -> tuple[int, bytes]:
        """Encode a request: its correlation id and its frame; see `expects` for the answer."""
        schema = request_schema(key, version)
        body = schema.write(schema.build(**fields))
        correlation_id = self._next
        self._next = (self._next + 1) & 0x7FFFFFFF
        if key != 0 or fields.get("acks") != 0:
            self._expected[correlation_id] = (key, version)
        name = self._client_id
        length = -1 if name is None else len(name)
        tail = (name or b"") + (b"\0" if schema.header_tags else b"") + body
        size = _FRAME.size - 4 + len(tail)
        return correlation_id, _FRAME.pack(size, key, version, correlation_id, length) + tail

    def expects(self, correlation_id: int) -> bool:
        """Whether an answer to this request will come."""
        return correlation_id in self._expected

    def received(self, data: bytes) -> list[tuple[int, Entity]]:
        """Take in bytes: correlation id and response entity of every answer they complete.

        Raises `NoAnswerError` on an answer nobody asked for, or that is none, which has the good
        ones before it; then this is of no use any more.
        """
        self._received += data
        answers: list[tuple[int, Entity]] = []
        try:
            answers.extend(self._answer(frame) for frame in self._frames())  # one by one
        except FrameError as error:
            raise NoAnswerError(error, answers) from error
        return answers

    def _frames(self) -> Iterator[bytes]:
        buffer, start = self._received, 0
        while len(buffer) - start >= 4:
            (size,) = _SIZE.unpack_from(buffer, start)
            if not 4 <= size <= MAX_ANSWER_BYTES:
                raise FrameError(f"a frame of {size} bytes, limit {MAX_ANSWER_BYTES}")
            if len(buffer) - start - 4 < size:
                break
            yield bytes(buffer[start + 4 : start + 4 + size])
            start += 4 + size
        del buffer[:start]

    def _answer(self, frame: bytes) -> tuple[int, Entity]:
        (correlation_id,) = _SIZE.unpack_from(frame)
        asked = self._expected.pop(correlation_id, None)
        if asked is None:
            raise FrameError(f"an answer to request {correlation_id}, which expects none")
        schema = response_schema(*asked)
        if asked[0] == API_KEYS["api_versions"] and frame[4:6] == b"\0\x23":
            schema = response_schema(asked[0], 0)  # a version the broker does not know
        at = skip_tags(frame, 4) if schema.header_tags else 4
        return correlation_id, schema.read(frame, at)


class Producer(NamedTuple):
    """Who writes a batch, and with which sequence number it starts."""

    id: ProducerId = -1
    epoch: ProducerEpoch = -1
    sequence: SequenceNumber = -1


PLAIN = Producer()


class Produced(NamedTuple):
    """The answer for the one partition of a `produce`."""

    error: ErrorCode
    base_offset: Offset
    log_start_offset: Offset


class Fetched(NamedTuple):
    """The answer for the one partition of a `fetch`."""

    error: ErrorCode
    high_watermark: Offset
    batches: list[RecordBatch]


class Client(asyncio.Protocol):
    """A connection to one broker. All methods belong to the loop it was made in."""

    def __init__(self, client_id: str | None = "ottla"):
        self._exchange = Exchange(client_id)
        self._waiting: dict[int, asyncio.Future[Entity]] = {}
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._error: Exception = ConnectionResetError("connection closed by the broker")
        """The error for requests that still wait when the connection ends."""
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection has ended, whoever ended it."""

    @classmethod
    async def connect(cls, host: str, port: int, client_id: str | None = "ottla") -> Client:
        """Connect. Raises `OSError` when nobody listens, `ConfigError` for no host or port, or for
        a client id that no request can have."""
        encoded("host", host, LONGEST_HOST)
        whole("port", port, 0, 65_535)
        loop = asyncio.get_running_loop()
        made = cls(client_id)
        _, client = await loop.create_connection(lambda: made, host, port)
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected."""
        # uvloop has a class of its own for it.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came. Bytes that are no answer end the connection, after the valid
        answers."""
        try:
            answers = self._exchange.received(data)
        except NoAnswerError as error:
            answers = error.behind
            self._error = error.why
            if self._transport is not None:
                self._transport.abort()
        for correlation_id, answer in answers:
            future = self._waiting.pop(correlation_id)
            if not future.done():
                future.set_result(answer)

    def connection_lost(self, _exc: Exception | None) -> None:
        """asyncio: the connection ended; every request that still waits fails."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(self._error)
                future.exception()  # not everyone looks at every answer
        if not self.closed.done():
            self.closed.set_result(None)
        self._transport = None

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        if self._transport is None:
            raise ConnectionResetError("connection closed")
        self._transport.write(data)

    def send(
        self, api: str, version: int | None = None, **fields: object
    ) -> asyncio.Future[Entity]:
        """Write a request now; the future brings the response entity.

        `api` is a name as Kafka has it (`CreateTopics`, or `create_topics`); without `version` the
        highest served one is used. With acks=0 the future is done at once and brings None. Fields
        are those of `codec.build`. Raises `ConfigError` for what no request can be made of. The
        future raises `ConnectionResetError` when the connection ends first, `FrameError` when the
        broker sends what is no answer.
        """
        key = api_key(api)
        chosen = chosen_version(key, version)
        check_fields(key, chosen, fields)
        try:
            correlation_id, frame = self._exchange.request(key, chosen, fields)
        except Exception as error:  # whatever kio and its writers make of a value
            raise unfit(key, chosen, error) from error
        self.write(frame)
        future: asyncio.Future[Entity] = self._loop.create_future()
        if self._exchange.expects(correlation_id):
            self._waiting[correlation_id] = future
        else:
            future.set_result(None)
        return future

    async def call(self, api: str, version: int | None = None, **fields: object) -> Entity:
        """Send a request and wait for its response entity."""
        return await self.send(api, version, **fields)

    # -- what tests and demos need most ------------------------------------------------------

    def send_batch(
        self,
        topic: str,
        partition: int,
        batch: bytes | None,
        *,
        acks: int = -1,
        timeout_ms: int = 30_000,
        version: int | None = None,
    ) -> asyncio.Future[Entity]:
        """Produce one encoded batch, whatever it holds; see `send`."""
        text("topic", topic)
        data = [{"index": partition, "records": batch}]
        return self.send(
            "produce",
            version,
            transactional_id=None,
            acks=acks,
            timeout=timeout_ms,
            topic_data=[{"name": topic, "partition_data": data}],
        )

    async def produce(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | NewRecord],
        *,
        producer: Producer = PLAIN,
        acks: int = -1,
        timeout_ms: int = 30_000,
    ) -> Produced | None:
        """Produce `values` as one batch and wait for the answer; None with acks=0."""
        records = items("values", values, "bytes or NewRecord", ordered=True)
        if not is_a(producer, Producer):
            raise ConfigError(f"producer is {shown(producer)}; a Producer is wanted")
        try:
            batch = build_batch(
                records,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=producer.sequence,
            )
        except Exception as error:  # a value is no bytes, an id no number, ...
            raise ConfigError(
                f"values is {shown(values)}; no batch can be made: {error}"
            ) from error
        return produced(
            await self.send_batch(topic, partition, batch, acks=acks, timeout_ms=timeout_ms)
        )

    async def metadata(
        self, topics: Collection[str] | None = None, *, create: bool = False
    ) -> Entity:
        """The Metadata response for these topics, or for all; with `create`, make unknown ones."""
        names = None if topics is None else items("topics", topics, "names")
        named = names and [
            {"topic_id": bytes(16), "name": text(f"topics[{place}]", each)}
            for place, each in enumerate(names)
        ]
        return await self.call(
            "metadata",
            topics=named,
            allow_auto_topic_creation=create,
            include_topic_authorized_operations=False,
        )

    async def init_producer_id(self) -> Producer:
        """A fresh producer identity, to start at sequence 0. Raises `FrameError` on an error."""
        answer = await self.call(
            "init_producer_id",
            transactional_id=None,
            transaction_timeout=0,
            producer_id=-1,
            producer_epoch=-1,
        )
        if answer.error_code != 0:
            raise FrameError(f"InitProducerId: {ErrorCode(answer.error_code).name}")
        return Producer(answer.producer_id, answer.producer_epoch, 0)

    async def list_offset(self, topic: str, partition: int, timestamp: int = -1) -> Offset:
        """The offset for a time; -1 the high watermark, -2 the log start; -1 when none or error."""
        answer = await self.call(
            "list_offsets",
            replica_id=-1,
            isolation_level=0,
            topics=[
                {
                    "name": topic,
                    "partitions": [{"partition_index": partition, "timestamp": timestamp}],
                }
            ],
        )
        return int(answer.topics[0].partitions[0].offset)

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: Offset,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        version: int | None = None,
    ) -> Fetched:
        """Batches from `offset` on; the first may begin before it."""
        wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}
        answer = await self.call(
            "fetch",
            version,
            max_wait=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            topics=[{"topic": topic, "partitions": [wanted]}],
            forgotten_topics_data=[],
        )
        found = answer.responses[0].partitions[0]
        error = ErrorCode(found.error_code)
        return Fetched(error, found.high_watermark, split_batches(found.records or b""))


def produced(answer: Entity) -> Produced | None:
    """The outcome for the first partition of a Produce response."""
    if answer is None:
        return None
    found = answer.responses[0].partition_responses[0]
    start = getattr(found, "log_start_offset", -1)
    return Produced(ErrorCode(found.error_code), found.base_offset, start)


class DamagedBatchError(FrameError):
    """Fetched bytes are no batch; `behind` has the valid batches before them."""

    def __init__(self, defect: BatchDefect, behind: list[RecordBatch]) -> None:
        super().__init__(f"a fetched batch: {defect.value}")
        self.defect = defect
        self.behind = behind


def split_batches(records: bytes) -> list[RecordBatch]:
    """The whole batches at the front of a fetched byte string; a cut one at its end is left.
    Raises `DamagedBatchError`; CRCs are not looked at."""
    batches: list[RecordBatch] = []
    at = 0
    while len(records) - at >= 12:
        end = at + 12 + _BATCH_LENGTH.unpack_from(records, at + 8)[0]
        if end > len(records):
            break
        batch = read_batch(records[at:end])
        if isinstance(batch, BatchDefect):
            raise DamagedBatchError(batch, batches)
        batches.append(batch)
        at = end
    return batches
