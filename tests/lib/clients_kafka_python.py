"""kafka-python as a `clients_kits.Kit`.

Its clients are closed after each call: they hold threads. Errors of the broker carry the code as
`errno`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, codec
from kafka.admin import NewTopic
from kafka.errors import BrokerResponseError

from clients_kits import BIG_REQUEST, WAIT, Record, RefusedError, settings

NAMES = {"codec": "compression_type", "acks": "acks", "idempotent": "enable_idempotence"}


class KafkaPythonKit:
    """Idempotent by default since 3.0."""

    name = "kafka-python"

    def codecs(self) -> Sequence[str]:
        """gzip, and what further packages bring."""
        more = ("gzip", "snappy", "lz4", "zstd")
        return ("none", *(each for each in more if getattr(codec, f"has_{each}")()))

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Record], **options: Any
    ) -> list[int | None]:
        """See `Kit.produce`."""
        if options.get("codec") == "none":
            del options["codec"]
        own = settings(options, NAMES)
        with closing(
            KafkaProducer(bootstrap_servers=bootstrap, max_request_size=BIG_REQUEST, **own)
        ) as producer:
            answers = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    list(record.headers),
                    partition=options.get("partition", 0),
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            try:
                told = [answer.get(WAIT).offset for answer in answers]
            except BrokerResponseError as error:
                raise RefusedError(error.errno) from error
        return [offset if offset >= 0 else None for offset in told]

    def _read(self, consumer: Any, count: int) -> list[Record]:
        found: list[Record] = []
        while len(found) < count:
            batches = consumer.poll(WAIT * 1000, max_records=count - len(found))
            assert batches, f"{len(found)} of {count} records read"
            for batch in batches.values():
                found.extend(
                    Record(each.value, each.key, tuple(each.headers), each.timestamp, each.offset)
                    for each in batch
                )
        return found

    def fetch(
        self, bootstrap: str, topic: str, partition: int, start: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch`."""
        with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
            at = TopicPartition(topic, partition)
            consumer.assign([at])
            consumer.seek(at, start)
            return self._read(consumer, count)

    def fetch_from_start(
        self, bootstrap: str, topic: str, partition: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch_from_start`."""
        with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
            consumer.assign([TopicPartition(topic, partition)])
            consumer.seek_to_beginning()
            return self._read(consumer, count)

    def bounds(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """See `Kit.bounds`."""
        at = TopicPartition(topic, partition)
        with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
            return consumer.beginning_offsets([at])[at], consumer.end_offsets([at])[at]

    def offset_at(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        """See `Kit.offset_at`."""
        at = TopicPartition(topic, partition)
        with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
            found = consumer.offsets_for_times({at: timestamp})[at]
            return None if found is None else int(found.offset)

    def _ask(self, bootstrap: str, call: str, *arguments: Any) -> Any:
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
            try:
                return getattr(client, call)(*arguments)
            except BrokerResponseError as error:
                raise RefusedError(error.errno) from error

    def create(self, bootstrap: str, topic: str, partitions: int, factor: int) -> None:
        """See `Kit.create`."""
        self._ask(bootstrap, "create_topics", [NewTopic(topic, partitions, factor)])

    def delete(self, bootstrap: str, topic: str) -> None:
        """See `Kit.delete`."""
        self._ask(bootstrap, "delete_topics", [topic])

    def topics(self, bootstrap: str) -> set[str]:
        """See `Kit.topics`."""
        return set(self._ask(bootstrap, "list_topics"))

    def nodes(self, bootstrap: str) -> set[int]:
        """See `Kit.nodes`."""
        found = self._ask(bootstrap, "describe_cluster")
        return {broker["broker_id"] for broker in found["brokers"]}

    def delete_records(self, bootstrap: str, topic: str, partition: int, before: int) -> None:
        """See `Kit.delete_records`."""
        self._ask(bootstrap, "delete_records", {TopicPartition(topic, partition): before})
