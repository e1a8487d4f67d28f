"""aiokafka as a `clients_kits.Kit`.

Every call runs an event loop of its own, in which one client is started, used and stopped, so that
tests need not be coroutines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, codec
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.errors import BrokerResponseError, for_code

from clients_kits import BIG_REQUEST, WAIT, Record, RefusedError, settings

NAMES = {"codec": "compression_type", "acks": "acks", "idempotent": "enable_idempotence"}
Result = TypeVar("Result")


def run(work: Callable[[Any], Awaitable[Result]], client: Callable[[], Any]) -> Result:
    """Start a client, let `work` use it, stop it."""

    async def main() -> Result:
        started = client()
        await started.start()
        try:
            return await work(started)
        except BrokerResponseError as error:
            raise RefusedError(error.errno) from error
        finally:
            await (started.close if hasattr(started, "close") else started.stop)()

    return asyncio.run(main())


class AiokafkaKit:
    """acks=1 by default."""

    name = "aiokafka"

    def codecs(self) -> Sequence[str]:
        """gzip, and what cramjam brings."""
        more = ("gzip", "snappy", "lz4", "zstd")
        return ("none", *(each for each in more if getattr(codec, f"has_{each}")()))

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Record], **options: Any
    ) -> list[int | None]:
        """See `Kit.produce`."""
        if options.get("codec") == "none":
            del options["codec"]
        own = settings(options, NAMES)

        async def work(producer: Any) -> list[int | None]:
            answers = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=options.get("partition", 0),
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            told = await asyncio.wait_for(asyncio.gather(*answers), WAIT)
            if own.get("acks") == 0:
                await producer.flush()
            return [each.offset if each is not None and each.offset >= 0 else None for each in told]

        return run(
            work,
            lambda: AIOKafkaProducer(
                bootstrap_servers=bootstrap, max_request_size=BIG_REQUEST, **own
            ),
        )

    async def _read(self, consumer: Any, count: int) -> list[Record]:
        found: list[Record] = []
        while len(found) < count:
            each = await asyncio.wait_for(consumer.getone(), WAIT)
            found.append(
                Record(each.value, each.key, tuple(each.headers), each.timestamp, each.offset)
            )
        return found

    def fetch(
        self, bootstrap: str, topic: str, partition: int, start: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch`."""
        at = TopicPartition(topic, partition)

        async def work(consumer: Any) -> list[Record]:
            consumer.assign([at])
            consumer.seek(at, start)
            return await self._read(consumer, count)

        return run(work, lambda: AIOKafkaConsumer(bootstrap_servers=bootstrap))

    def fetch_from_start(
        self, bootstrap: str, topic: str, partition: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch_from_start`."""
        at = TopicPartition(topic, partition)

        async def work(consumer: Any) -> list[Record]:
            consumer.assign([at])
            await consumer.seek_to_beginning(at)
            return await self._read(consumer, count)

        return run(work, lambda: AIOKafkaConsumer(bootstrap_servers=bootstrap))

    def bounds(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """See `Kit.bounds`."""
        at = TopicPartition(topic, partition)

        async def work(consumer: Any) -> tuple[int, int]:
            low, high = await consumer.beginning_offsets([at]), await consumer.end_offsets([at])
            return low[at], high[at]

        return run(work, lambda: AIOKafkaConsumer(bootstrap_servers=bootstrap))

    def offset_at(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        """See `Kit.offset_at`."""
        at = TopicPartition(topic, partition)

        async def work(consumer: Any) -> int | None:
            found = (await consumer.offsets_for_times({at: timestamp}))[at]
            return None if found is None else int(found.offset)

        return run(work, lambda: AIOKafkaConsumer(bootstrap_servers=bootstrap))

    def _ask(self, bootstrap: str, call: str, *arguments: Any) -> Any:
        return run(
            lambda client: getattr(client, call)(*arguments),
            lambda: AIOKafkaAdminClient(bootstrap_servers=bootstrap),
        )

    def create(self, bootstrap: str, topic: str, partitions: int, factor: int) -> None:
        """See `Kit.create`; aiokafka hands the codes on without raising."""
        answer = self._ask(bootstrap, "create_topics", [NewTopic(topic, partitions, factor)])
        _check(answer.topic_errors)

    def delete(self, bootstrap: str, topic: str) -> None:
        """See `Kit.delete`."""
        _check(self._ask(bootstrap, "delete_topics", [topic]).topic_error_codes)

    def topics(self, bootstrap: str) -> set[str]:
        """See `Kit.topics`."""
        return set(self._ask(bootstrap, "list_topics"))

    def nodes(self, bootstrap: str) -> set[int]:
        """See `Kit.nodes`."""
        found = self._ask(bootstrap, "describe_cluster")
        return {broker["node_id"] for broker in found["brokers"]}

    def delete_records(self, bootstrap: str, topic: str, partition: int, before: int) -> None:
        """See `Kit.delete_records`."""
        below = RecordsToDelete(before_offset=before)
        self._ask(bootstrap, "delete_records", {TopicPartition(topic, partition): below})


def _check(errors: Sequence[tuple[Any, ...]]) -> None:
    for _, code, *_ in errors:
        if for_code(code).errno:
            raise RefusedError(code)
