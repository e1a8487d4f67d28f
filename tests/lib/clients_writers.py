"""Producers that write until they are told to stop, one per client library, each in a thread.

A value is `name:partition:number`; the number rises by one per partition. So a reader knows which
writer wrote it, and in which order. A writer keeps what it sent and which answers it got;
`clients_audit` judges them. It never retries, because the test is about what the client does.

Writers start with one record per partition, which must be acknowledged before the faults of a test
begin (`begun`). This is necessary: a leader accepts an unknown producer at any sequence (KIP-360),
so nothing protects a producer whose very first batch is still on its way.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import confluent_kafka as ck
from aiokafka import AIOKafkaProducer
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from clients_kits import quiet
from clients_patience import move, until

TICK = 0.002
"""Seconds between two rounds of one record per partition."""
TURN = 0.5
"""Seconds after which a writer that waits for answers looks whether it still should."""
UNKNOWN = -1
"""Offset of a record whose place the client was not told: stored, says a later answer."""


class Ack(NamedTuple):
    """A record acknowledged to the application."""

    value: bytes
    offset: int


class Writer(threading.Thread):
    """See the module's text. `strict`: its settings promise that nothing is doubled or moved."""

    def __init__(
        self, name: str, bootstrap: str, topic: str, partitions: int, *, strict: bool, **own: Any
    ):
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.strict = strict
        self.own = own
        self.sent: dict[int, list[bytes]] = {each: [] for each in range(partitions)}
        self.acked: dict[int, list[Ack]] = {each: [] for each in range(partitions)}
        self.failed: list[tuple[bytes, str]] = []
        self.problems: list[str] = []
        self.answered = dict.fromkeys(range(partitions), 0)
        """Records of each partition of which the client said how they ended."""
        self.enough = threading.Event()
        """Write no more, wait for the answers that are open."""
        self.abandoned = threading.Event()
        """Do not wait either."""

    @property
    def acks(self) -> int:
        """Records acknowledged so far."""
        return sum(len(each) for each in self.acked.values())

    def begun(self) -> bool:
        """Whether every partition has acknowledged something."""
        return all(self.acked.values())

    def next_value(self, partition: int) -> bytes:
        """The next value of a partition; it counts as sent."""
        sent = self.sent[partition]
        sent.append(f"{self.name}:{partition}:{len(sent)}".encode())
        return sent[-1]

    def told(self, partition: int, value: bytes, offset: int | None, error: str | None) -> None:
        """What the client said of a record."""
        if error is None:
            place = offset if offset is not None and offset >= 0 else UNKNOWN
            self.acked[partition].append(Ack(value, place))
        else:
            self.failed.append((value, error))
        self.answered[partition] += 1

    def run(self) -> None:
        """Write until it is enough, then wait for the answers."""
        try:
            self.write()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must say so
            self.problems.append(repr(error))

    def write(self) -> None:
        """What a library's writer does."""
        raise AssertionError("each library has its own")


class ConfluentWriter(Writer):
    """librdkafka: batches of a few records, 5 requests in flight when idempotent."""

    def write(self) -> None:
        """One record per partition and tick."""
        producer = ck.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": self.strict,
                "linger.ms": 1,
                "retry.backoff.max.ms": 200,
                "reconnect.backoff.max.ms": 200,
                "logger": quiet,
                "error_cb": self.fatal,
                **self.own,
            }
        )
        while not self.enough.is_set():
            for partition in range(self.partitions):
                value = self.next_value(partition)
                producer.produce(self.topic, value, partition=partition, on_delivery=self.delivered)
            producer.poll(TICK)
        while producer.flush(TURN) and not self.abandoned.is_set():
            pass

    def delivered(self, error: Any, message: Any) -> None:
        """librdkafka's delivery report."""
        told = None if error is None else error.name()
        self.told(message.partition(), message.value(), message.offset(), told)

    def fatal(self, error: Any) -> None:
        """librdkafka gives up for good."""
        if error.fatal():
            self.problems.append(str(error))


class AiokafkaWriter(Writer):
    """aiokafka: one request in flight per partition."""

    def write(self) -> None:
        """An event loop for this thread."""
        asyncio.run(self.main())

    async def main(self) -> None:
        """One record per partition and tick."""
        own = {"enable_idempotence": self.strict, "linger_ms": 1, "retry_backoff_ms": 20}
        open_: set[Any] = set()
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, **own, **self.own)
        await producer.start()
        while not self.enough.is_set():
            for partition in range(self.partitions):
                value = self.next_value(partition)
                answer = await producer.send(self.topic, value, partition=partition)
                open_.add(answer)
                answer.add_done_callback(open_.discard)
                answer.add_done_callback(self.callback(partition, value))
            await asyncio.sleep(TICK)
        while open_ and not self.abandoned.is_set():
            await asyncio.wait(open_, timeout=TURN)
        if not open_:  # else it would wait for them
            await producer.stop()

    def callback(self, partition: int, value: bytes) -> Callable[[Any], None]:
        """What is done with an answer."""

        def done(answer: Any) -> None:
            error = answer.exception()
            if error is None:
                self.told(partition, value, answer.result().offset, None)
            else:
                self.told(partition, value, None, repr(error))

        return done


class KafkaPythonWriter(Writer):
    """kafka-python: 5 requests in flight, idempotent unless it is told not to be."""

    def write(self) -> None:
        """One record per partition and tick."""
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=self.strict,
            linger_ms=1,
            retry_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            **self.own,
        )
        while not self.enough.is_set():
            for partition in range(self.partitions):
                value = self.next_value(partition)
                answer = producer.send(self.topic, value, partition=partition)
                answer.add_callback(self.stored, partition, value)
                answer.add_errback(self.refused, partition, value)
            time.sleep(TICK)
        while not self.abandoned.is_set():
            with suppress(KafkaTimeoutError):
                producer.flush(TURN)
                break
        producer.close(timeout=0 if self.abandoned.is_set() else None)

    def stored(self, partition: int, value: bytes, metadata: Any) -> None:
        """kafka-python's answer."""
        self.told(partition, value, metadata.offset, None)

    def refused(self, partition: int, value: bytes, error: Exception) -> None:
        """kafka-python's refusal."""
        self.told(partition, value, None, repr(error))


WRITERS: dict[str, type[Writer]] = {
    "confluent": ConfluentWriter,
    "aiokafka": AiokafkaWriter,
    "kafka-python": KafkaPythonWriter,
}
"""By the name of the library."""


def progress(writers: Sequence[Writer], records: int = 10) -> None:
    """Wait until every writer has so many more acknowledged, in every partition."""
    targets = {
        (writer, partition): len(acked) + records
        for writer in writers
        for partition, acked in writer.acked.items()
    }

    def missing() -> Mapping[str, int]:
        return {
            f"{writer.name}:{partition}": len(writer.acked[partition])
            for (writer, partition), target in targets.items()
            if len(writer.acked[partition]) < target
        }

    move("progress", missing)


def finish(writers: Sequence[Writer]) -> None:
    """Stop writing; returns when every record has its answer."""
    for writer in writers:
        writer.enough.set()

    def open_() -> Mapping[str, int]:
        return {
            f"{writer.name}:{partition}": writer.answered[partition]
            for writer in writers
            for partition, sent in writer.sent.items()
            if writer.answered[partition] < len(sent) and writer.is_alive()
        }

    move("answers", open_)
    until("end of the writers", lambda: not any(writer.is_alive() for writer in writers))


@contextmanager
def writing(*writers: Writer) -> Iterator[None]:
    """Writers that write, each with answers from every partition, and end with the block.

    A block that raises abandons them.
    """
    for writer in writers:
        writer.start()
    try:
        for writer in writers:
            until(f"first answers of {writer.name}", writer.begun)
        yield
        finish(writers)
    except BaseException:
        for writer in writers:
            writer.abandoned.set()
            writer.enough.set()
        raise
