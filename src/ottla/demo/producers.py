"""The two real producers of the demo, each in a thread of its own, each with its ledger.

| producer | with acks=all | with acks=1 or 0 |
|---|---|---|
| `confluent` | confluent-kafka: idempotent, 5 requests in flight | plain |
| `aiokafka` | aiokafka: idempotent, one request per partition in flight | plain |

Settings differ from the clients' defaults only in the time before a retry, so that a run of seconds
sees many failovers. This module retries nothing: the demo shows what the clients themselves do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from functools import partial
from typing import Any, Protocol

from ottla.demo.ledger import Ack, Failure, Ledger
from ottla.demo.pace import Pace
from ottla.demo.settings import PARTITIONS, TOPIC, DemoSettings

TICK = 0.005
ANSWER_SECONDS = 30.0
RETRY_MS = 20
LAST_LINES = 5


class LastWords(logging.Handler):
    """Keeps the last lines that a client logged. They are shown only if the client is stuck."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LAST_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.lines.append(record.getMessage())

    def logger(self) -> logging.Logger:
        """The client's logger, which prints nothing; this handler replaces earlier ones."""
        logger = logging.getLogger("ottla.demo.clients")
        logger.handlers, logger.propagate = [self], False
        return logger


def unanswered(ledger: Ledger, left: int) -> str:
    """A message about records without an answer, with their partitions."""
    where = ", ".join(map(str, ledger.open_counts))
    return (
        f"{left} records without an answer after {ANSWER_SECONDS:g} s "
        f"(not acknowledged, by partition: {where})"
    )


class Writer(Protocol):
    """A producer that writes in a thread of its own."""

    ledger: Ledger
    pace: Pace

    def start(self) -> None:
        """Begin to write."""

    def is_alive(self) -> bool:
        """Whether it still writes, or waits for answers."""


class ConfluentWriter(threading.Thread):
    """confluent-kafka's producer (librdkafka runs in threads of its own)."""

    def __init__(self, settings: DemoSettings, bootstrap: str, records: int):
        super().__init__(name="demo-confluent", daemon=True)
        self.ledger = Ledger("confluent", PARTITIONS)
        self.pace = Pace(records, settings.seconds)
        self._last_words = LastWords()
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": "demo-confluent",
            "enable.idempotence": settings.idempotent,
            "acks": settings.wire_acks,
            "max.in.flight.requests.per.connection": 5,
            "linger.ms": 5,
            "retry.backoff.ms": RETRY_MS,
            "retry.backoff.max.ms": 10 * RETRY_MS,
            "reconnect.backoff.ms": RETRY_MS,
            "reconnect.backoff.max.ms": 10 * RETRY_MS,
            "topic.metadata.refresh.fast.interval.ms": 5 * RETRY_MS,
            "error_cb": self._error,
            "logger": self._last_words.logger(),
        }

    def run(self) -> None:
        """Write until the pace says that it is enough."""
        from confluent_kafka import Producer

        producer = Producer(self._config)
        ledger, pace = self.ledger, self.pace
        pace.start()
        while not pace.finished(sent := ledger.sent_count):
            if pace.held:
                self._hold(producer)
            else:
                self._write(producer, min(pace.due() - sent, 1000))
            producer.poll(TICK)
        left = producer.flush(ANSWER_SECONDS)
        if left:
            said = "; ".join(self._last_words.lines) or "nothing"
            ledger.problems.append(f"{unanswered(ledger, left)}; librdkafka's last lines: {said}")

    def _write(self, producer: Any, count: int) -> None:
        ledger, delivered = self.ledger, self._delivered
        for number in range(ledger.sent_count, ledger.sent_count + count):
            partition = number % PARTITIONS
            value = ledger.next_value(partition)
            while True:
                try:
                    producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(TICK)
            if number % 100 == 0:
                producer.poll(0)

    def _hold(self, producer: Any) -> None:
        if not self.pace.idle.is_set() and producer.flush(TICK) == 0:
            self.pace.idle.set()

    def _delivered(self, error: Any, message: Any) -> None:
        value = message.value()
        if error is not None:
            self.ledger.failed.append(Failure(value, str(error)))
        else:
            offset = message.offset()
            ack = Ack(value, offset if offset is not None and offset >= 0 else None)
            self.ledger.acked[message.partition()].append(ack)

    def _error(self, error: Any) -> None:
        if error.fatal():
            self.ledger.problems.append(f"librdkafka's fatal error: {error}")


class AiokafkaWriter(threading.Thread):
    """aiokafka's producer, on an event loop of its own."""

    def __init__(self, settings: DemoSettings, bootstrap: str, records: int):
        super().__init__(name="demo-aiokafka", daemon=True)
        self.ledger = Ledger("aiokafka", PARTITIONS)
        self.pace = Pace(records, settings.seconds)
        self._waiting = 0
        self._config: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "client_id": "demo-aiokafka",
            "enable_idempotence": settings.idempotent,
            "acks": "all" if settings.acks == "all" else settings.wire_acks,
            "linger_ms": 5,
            "retry_backoff_ms": 2 * RETRY_MS,
        }

    def run(self) -> None:
        """Write until the pace says that it is enough."""
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        try:
            asyncio.run(self._main())
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must say so
            self.ledger.problems.append(f"aiokafka failed: {error!r}")

    async def _main(self) -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(**self._config) as producer:
            self.pace.start()
            lanes = [self._lane(producer, partition) for partition in range(PARTITIONS)]
            await asyncio.gather(*lanes)
            for _ in range(round(ANSWER_SECONDS / TICK)):
                if not self._waiting:
                    break
                await asyncio.sleep(TICK)
            if self._waiting:
                self.ledger.problems.append(unanswered(self.ledger, self._waiting))

    async def _lane(self, producer: Any, partition: int) -> None:
        """Send one partition's records; `send` waits while that partition's batch is full."""
        sent, pace = self.ledger.sent[partition], self.pace
        while not pace.finished(PARTITIONS * len(sent)):
            due = min(pace.due() // PARTITIONS + 1 - len(sent), 500)
            if pace.held:
                if not self._waiting:
                    pace.idle.set()
            else:
                for _ in range(due):
                    value = self.ledger.next_value(partition)
                    self._waiting += 1
                    answer = await producer.send(TOPIC, value, partition=partition)
                    answer.add_done_callback(partial(self._done, partition, value))
            await asyncio.sleep(TICK)

    def _done(self, partition: int, value: bytes, done: Any) -> None:
        self._waiting -= 1
        error = done.exception()
        if error is not None:
            self.ledger.failed.append(Failure(value, repr(error)))
        else:
            told = done.result()  # None with acks=0
            offset = told.offset if told is not None else None
            self.ledger.acked[partition].append(Ack(value, offset))
