"""confluent-kafka (librdkafka) as a `clients_kits.Kit`.

Answers come as callbacks and futures that live as long as their client, so each call keeps its
client until it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka import admin
from confluent_kafka.cimpl import NewTopic

from clients_kits import BIG_REQUEST, WAIT, Record, RefusedError, quiet, settings

NAMES = {"codec": "compression.type", "acks": "acks", "idempotent": "enable.idempotence"}


class ConfluentKit:
    """Its consumers need a group id even where they use no group."""

    name = "confluent"

    def codecs(self) -> Sequence[str]:
        """librdkafka's wheels carry them all."""
        return ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Record], **options: Any
    ) -> list[int | None]:
        """See `Kit.produce`."""
        producer = ck.Producer(
            {
                "bootstrap.servers": bootstrap,
                "message.max.bytes": BIG_REQUEST,
                "logger": quiet,
                **settings(options, NAMES),
            }
        )
        answers: list[tuple[Any, Any]] = []
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=options.get("partition", 0),
                headers=list(record.headers),
                timestamp=record.timestamp,
                on_delivery=lambda error, message: answers.append((error, message)),
            )
        assert producer.flush(WAIT) == 0, f"{len(producer)} records without an answer"
        for error, _ in answers:
            if error is not None:
                raise RefusedError(error.code())
        return [message.offset() for _, message in answers]

    def _consumer(self, bootstrap: str, **more: Any) -> Any:
        own = {"bootstrap.servers": bootstrap, "group.id": "unused", "logger": quiet}
        return ck.Consumer({**own, "enable.auto.commit": False, **more})

    def fetch(
        self, bootstrap: str, topic: str, partition: int, start: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch`."""
        consumer = self._consumer(bootstrap)
        consumer.assign([ck.TopicPartition(topic, partition, start)])
        found: list[Record] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), WAIT)
            assert messages, f"{len(found)} of {count} records read"
            for message in messages:
                assert message.error() is None, message.error()
                found.append(
                    Record(
                        message.value(),
                        message.key(),
                        tuple(message.headers() or ()),
                        message.timestamp()[1],
                        message.offset(),
                    )
                )
        consumer.close()
        return found

    def fetch_from_start(
        self, bootstrap: str, topic: str, partition: int, count: int
    ) -> list[Record]:
        """See `Kit.fetch_from_start`."""
        return self.fetch(bootstrap, topic, partition, ck.OFFSET_BEGINNING, count)

    def bounds(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """See `Kit.bounds`."""
        consumer = self._consumer(bootstrap)
        low, high = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), WAIT)
        consumer.close()
        return low, high

    def offset_at(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        """See `Kit.offset_at`."""
        consumer = self._consumer(bootstrap)
        asked = [ck.TopicPartition(topic, partition, timestamp)]
        (found,) = consumer.offsets_for_times(asked, WAIT)
        consumer.close()
        return None if found.offset == ck.OFFSET_END else int(found.offset)

    def _admin(self, bootstrap: str) -> Any:
        own: dict[str, Any] = {"bootstrap.servers": bootstrap, "logger": quiet}
        return admin.AdminClient(own)

    def _ask(self, bootstrap: str, call: str, *arguments: Any) -> None:
        client = self._admin(bootstrap)  # its answers die with it
        for answer in getattr(client, call)(*arguments).values():
            try:
                answer.result(WAIT)
            except ck.KafkaException as error:
                raise RefusedError(error.args[0].code()) from error

    def create(self, bootstrap: str, topic: str, partitions: int, factor: int) -> None:
        """See `Kit.create`."""
        new = NewTopic(topic, partitions, factor)
        self._ask(bootstrap, "create_topics", [new])

    def delete(self, bootstrap: str, topic: str) -> None:
        """See `Kit.delete`."""
        self._ask(bootstrap, "delete_topics", [topic])

    def topics(self, bootstrap: str) -> set[str]:
        """See `Kit.topics`."""
        return set(self._admin(bootstrap).list_topics(timeout=WAIT).topics)

    def nodes(self, bootstrap: str) -> set[int]:
        """See `Kit.nodes`."""
        client = self._admin(bootstrap)
        found = client.describe_cluster(request_timeout=WAIT).result(WAIT)
        return {node.id for node in found.nodes}

    def delete_records(self, bootstrap: str, topic: str, partition: int, before: int) -> None:
        """See `Kit.delete_records`."""
        below = ck.TopicPartition(topic, partition, before)
        self._ask(bootstrap, "delete_records", [below])
