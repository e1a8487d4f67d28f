"""The three Python clients behind one small face, so that a test is written once for all of them.

A kit is a client library with its settings; nothing here changes a client or works around it. Each
call opens a client, does one thing and closes it, except where a test needs more than that and uses
the library itself. Answers are plain values:

* `produce` returns one offset per record, None where the client does not know it,
* `RefusedError` carries the broker's code, whatever class the library raises for it,
* offsets and timestamps are ints, timestamps in milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

WAIT = 20.0
"""Seconds after which a client that does not answer has failed its test."""
BIG_REQUEST = 8 << 20
"""Above the broker's limit for a batch: the broker refuses, not the client."""

for chatty in ("aiokafka", "kafka"):
    logging.getLogger(chatty).setLevel(logging.CRITICAL)
quiet = logging.getLogger("clients.quiet")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False
quiet.setLevel(logging.CRITICAL)


class Record(NamedTuple):
    """What is produced, or was read (then with an offset)."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 1_700_000_000_000
    offset: int = -1


class RefusedError(Exception):
    """The broker refused; `code` is Kafka's number."""

    def __init__(self, code: int):
        super().__init__(f"error {code}")
        self.code = code


class Kit(Protocol):
    """A client library, as the tests use it."""

    name: str

    def codecs(self) -> Sequence[str]:
        """What it can compress with where it is installed here, `none` included."""

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Record], **options: Any
    ) -> list[int | None]:
        """Produce in order to `partition` (0). Options: `partition`, `codec`, `acks`,
        `idempotent`; what is not given stays the client's default. Raises `RefusedError`."""

    def fetch(
        self, bootstrap: str, topic: str, partition: int, start: int, count: int
    ) -> list[Record]:
        """Assign, seek to `start`, read `count` records."""

    def fetch_from_start(
        self, bootstrap: str, topic: str, partition: int, count: int
    ) -> list[Record]:
        """Assign, start where the client finds the beginning to be, read `count` records."""

    def bounds(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """Beginning and end, by the client's own calls."""

    def offset_at(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        """`offsets_for_times` of one partition; None: no record that late."""

    def create(self, bootstrap: str, topic: str, partitions: int, factor: int) -> None:
        """Create by the admin client. Raises `RefusedError`."""

    def delete(self, bootstrap: str, topic: str) -> None:
        """Delete by the admin client. Raises `RefusedError`."""

    def topics(self, bootstrap: str) -> set[str]:
        """Names by the admin client."""

    def nodes(self, bootstrap: str) -> set[int]:
        """Ids of the brokers by the admin client."""

    def delete_records(self, bootstrap: str, topic: str, partition: int, before: int) -> None:
        """Delete what lies below `before` by the admin client."""


def settings(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The options that are given, under a client's own names."""
    return {names[key]: value for key, value in options.items() if key in names}
