"""Topics of a live cluster, read over Kafka's protocol, also while leaders die.

**Theory.** Everything that is asked here can be asked again, because reading changes nothing. So
every question is a loop (`_insist`): look up the leader, then ask it. Any error (nobody listens,
the leader resigned, a new one does not know its high watermark yet) is a reason to look up again,
until `timeout` seconds have passed without an answer. What has been read is not read again: a range
goes on after the last batch that came.

Four errors do not go away by waiting. A topic with another id than the one asked for is another
topic. A batch whose header, offsets or CRC are wrong is fetched once more, because it may have been
damaged on the way, and then reported as damaged. Records below the log start are gone: that is
`DataLossError`, or with `strict` off the range goes on at the log start. A log that ends before
what was read of it has lost what consumers had seen. That is an error only if waiting did not help,
because on Kafka a new leader's high watermark may be behind for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.wire.requests import ZERO_ID
from ottla.log.record_batch import crc_matches
from ottla.log.types import Offset
from ottla.sim.studies.topics.asked import (
    FROM_EARLIEST,
    FROM_LATEST,
    PASSED_OVER,
    DataLossError,
    SourceError,
)
from ottla.sim.studies.topics.connection import Connection, UnfitError
from ottla.sim.studies.topics.fetched import Fetched, split
from ottla.sim.studies.topics.identity import check_same
from ottla.sim.studies.topics.offsets import Bounds, Placed, Range

UNKNOWN_FOR = 5.0
"""Seconds for which a topic may be unknown: a node that has just started may not know it yet."""
FETCH_BYTES = 4 * 1024 * 1024
FETCH_WAIT_MS = 500
_NOTHING_MADE = {
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}
_FEW = 10
"""How many names of topics fit in a line."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_ANSWER_WITHIN = 10.0
"""Seconds after which a broker that does not answer counts as dead."""

Address = tuple[str, int]
_T = TypeVar("_T")


class _NotYetError(Exception):
    """No answer this time, but maybe later. The text says why; `within`: after how many seconds at
    most."""

    def __init__(self, text: str, within: float = float("inf")) -> None:
        super().__init__(text)
        self.within = within


class _NoLeaderError(_NotYetError):
    """A partition has no leader, according to other nodes. The text names the partition; the time
    is added to it."""

    def __init__(self, partition: str) -> None:
        super().__init__(f"{partition} has had no leader")


class _NoTopicError(_NotYetError):
    """A broker says that there is no topic of that name."""


class WireTopics:
    """See the module's docstring. For one thread; `close` it at the end."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        timeout: float = 30.0,
        strict: bool = True,
        met: Iterable[str] = (),
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._timeout = timeout
        self._strict = strict
        self._connections: dict[Address, Connection] = {}
        self._brokers: list[Address] = []
        """All brokers that metadata named: the bootstrap addresses may be dead by now."""
        self._leaders: dict[str, dict[int, Address | None]] = {}
        self._ids: dict[str, str | None] = {}
        """Ids of topics from the metadata that named their leaders; None: it has none."""
        self._met = set(met)
        """Topics that existed before: a broker that does not know one may just not know it yet."""

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """Log start and high watermark of every partition. Raises `SourceError`."""
        return self._insist(f"offsets of {topic}", lambda: self._bounds(topic))

    def led(self, topic: str) -> tuple[dict[int, Bounds], frozenset[int]]:
        """As `bounds`, for the partitions whose leaders answer now, and the set of the others.
        Waits if no leader answers. Raises `SourceError`."""
        return self._insist(f"offsets of {topic}", lambda: self._led(topic))

    def topic_id(self, topic: str) -> str | None:
        """The topic's id; None: the broker names none. Raises `SourceError`."""
        self._insist(f"id of {topic}", lambda: self._look_up(topic))
        return self._ids[topic]

    def read(self, wanted: Range) -> Iterator[Placed]:
        """The batches that overlap a range, in order. Raises `SourceError`."""
        at = wanted.start
        partition = f"{wanted.topic}-{wanted.partition}"
        damaged_at: Offset | None = None
        while at < wanted.end:
            place = f"{partition} at offset {at}"
            batches, at, damage = self._insist(place, partial(self._fetch, wanted, at))
            for batch in batches:
                if batch.base_offset >= wanted.end:
                    return
                if not crc_matches(batch):
                    damage = "its CRC does not match"
                    break
                if batch.last_offset >= at:
                    yield Placed(at, batch)
                    at = batch.last_offset + 1
            if damage and damaged_at == at:
                raise SourceError(f"the batch at offset {at} of {partition} is damaged: {damage}")
            if damage:
                damaged_at = at

    # ---- asking again

    def _insist(self, what: str, attempt: Callable[[], _T]) -> _T:
        """The result of `attempt` as soon as it succeeds. Raises `SourceError` if time is up."""
        begun = time.monotonic()
        pause = _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except (OSError, FrameError, _NotYetError) as error:
                limit = min(self._timeout, getattr(error, "within", self._timeout))
                if time.monotonic() - begun > limit:
                    raise SourceError(self._given_up(what, error, limit)) from None
                self._leaders.clear()
            except UnfitError as error:
                raise SourceError(str(error)) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _given_up(self, what: str, error: Exception, limit: float) -> str:
        """The message if time is up: what was asked for, the last error, and what to do."""
        if isinstance(error, _NoLeaderError):
            return f"{error} for {limit:g} s"
        if isinstance(error, _NoTopicError):
            return f"{error}; {self._there()}"
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        told = f"{what}: no answer within {limit:g} s from {self._asked()}: {why}"
        never = isinstance(error, OSError) and not self._met
        return f"{told}; start a broker there, or mend bootstrap" if never else told

    def _there(self) -> str:
        """Which topics exist, if they are few."""
        with suppress(OSError, FrameError, UnfitError):
            answer = self._any("metadata", topics=None, **_NOTHING_MADE)
            names = sorted(str(each.name) for each in answer.topics if not each.is_internal)
            if not names:
                return "create it first: there is none yet"
            if len(names) <= _FEW:
                return f"there are {', '.join(names)}"
            return f"there are {len(names)} others; look how it is spelled"
        return "look how it is spelled"

    def _asked(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self._bootstrap)

    def _connected(self, address: Address) -> Connection:
        found = self._connections.get(address)
        if found is None:
            within = min(_ANSWER_WITHIN, self._timeout)
            found = self._connections[address] = Connection(address, within)
        return found

    def _call(self, address: Address, api: str, **fields: Any) -> Any:
        try:
            return self._connected(address).call(api, **fields)
        except (OSError, FrameError):
            broken = self._connections.pop(address, None)
            if broken is not None:
                broken.close()
            raise

    # ---- who leads

    def _look_up(self, topic: str) -> dict[int, Address | None]:
        """Leader of each partition; None: there is none now."""
        known = self._leaders.get(topic)
        if known is None:
            known = self._leaders[topic] = self._metadata(topic)
        return known

    def _metadata(self, topic: str) -> dict[int, Address | None]:
        wanted = [{"name": topic, "topic_id": ZERO_ID}]
        for answer in self._all("metadata", topics=wanted, **_NOTHING_MADE):
            if answer.topics[0].error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                break  # one that has just started may not know it; others do
        addresses = {each.node_id: (each.host, each.port) for each in answer.brokers}
        self._brokers = list(addresses.values())
        (found,) = answer.topics
        if found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise SourceError(f"{topic!r} is not a name of a topic")
        if found.error_code:
            if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                within = self._timeout if topic in self._met else UNKNOWN_FOR
                raise _NoTopicError(f"there is no topic {topic} at {self._asked()}", within)
            raise _NotYetError(f"topic {topic}: {_named(found.error_code)}")
        self._met.add(topic)
        found_id = getattr(found, "topic_id", None)
        self._ids[topic] = None if found_id is None else str(found_id)
        return {each.partition_index: addresses.get(each.leader_id) for each in found.partitions}

    def _any(self, api: str, **fields: Any) -> Any:
        """Ask any broker that answers. Raises the error of the last one asked."""
        return next(self._all(api, **fields))

    def _all(self, api: str, **fields: Any) -> Iterator[Any]:
        """Ask the brokers one after the other; yields the answers. If there is none, raises the
        error of the last one asked."""
        error: Exception | None = ConnectionRefusedError("no broker is known")
        for address in dict.fromkeys((*self._brokers, *self._bootstrap)):
            try:
                answer = self._call(address, api, **fields)
            except (OSError, FrameError) as found:
                error = error and found
            else:
                error = None
                yield answer
        if error is not None:
            raise error

    # ---- offsets

    def _bounds(self, topic: str, only: int | None = None) -> dict[int, Bounds]:
        found, missing = self._answers(topic, only)
        if missing:
            raise next(iter(missing.values()))
        return found

    def _led(self, topic: str) -> tuple[dict[int, Bounds], frozenset[int]]:
        found, missing = self._answers(topic)
        if missing and not found:
            raise next(iter(missing.values()))
        return found, frozenset(missing)

    def _answers(
        self, topic: str, only: int | None = None
    ) -> tuple[dict[int, Bounds], dict[int, Exception]]:
        """Bounds of the partitions, and for the others the reason why there are none."""
        by_leader: dict[Address, list[int]] = {}
        missing: dict[int, Exception] = {}
        for partition, leader in self._look_up(topic).items():
            if only not in {None, partition}:
                continue
            if leader is None:
                missing[partition] = _NoLeaderError(f"{topic}-{partition}")
            else:
                by_leader.setdefault(leader, []).append(partition)
        found: dict[int, Bounds] = {}
        for leader, partitions in by_leader.items():
            try:
                starts, failed = self._offsets(leader, topic, partitions, FROM_EARLIEST)
                ends, others = self._offsets(leader, topic, partitions, FROM_LATEST)
            except (OSError, FrameError) as error:
                missing |= dict.fromkeys(partitions, error)
            else:
                missing |= failed | others
                both = starts.keys() & ends.keys()
                found |= {each: Bounds(starts[each], ends[each]) for each in both}
        return dict(sorted(found.items())), missing

    def _offsets(
        self, leader: Address, topic: str, partitions: list[int], timestamp: int
    ) -> tuple[dict[int, Offset], dict[int, Exception]]:
        wanted = [
            {"partition_index": each, "timestamp": timestamp, "current_leader_epoch": -1}
            for each in partitions
        ]
        answer = self._call(
            leader,
            "list_offsets",
            replica_id=-1,
            isolation_level=0,
            topics=[{"name": topic, "partitions": wanted}],
        )
        found: dict[int, Offset] = {}
        failed: dict[int, Exception] = {}
        for each in answer.topics[0].partitions:
            number = each.partition_index
            if each.error_code:
                failed[number] = _NotYetError(f"{topic}-{number}: {_named(each.error_code)}")
            else:
                found[number] = int(each.offset)
        return found, failed

    # ---- records

    def _fetch(self, wanted: Range, at: Offset) -> Fetched:
        topic, partition = wanted.topic, wanted.partition
        leader = self._look_up(topic).get(partition)
        check_same(topic, wanted.topic_id, self._ids[topic])
        if leader is None:
            raise _NoLeaderError(f"{topic}-{partition}")
        part = {
            "partition": partition,
            "current_leader_epoch": -1,
            "fetch_offset": at,
            "log_start_offset": -1,
            "partition_max_bytes": FETCH_BYTES,
        }
        answer = self._call(
            leader,
            "fetch",
            replica_id=-1,
            max_wait=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": [part]}],
            forgotten_topics_data=[],
            rack_id="",
        )
        found = answer.responses[0].partitions[0]
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Fetched([], self._behind_what_is_gone(wanted, at))
        if found.error_code:
            raise _NotYetError(_named(found.error_code))
        records = bytes(found.records or b"")
        if not records:
            raise _NotYetError(f"nothing there, though the range ends at {wanted.end}")
        return split(records, at, int(found.high_watermark))

    def _behind_what_is_gone(self, wanted: Range, at: Offset) -> Offset:
        start, end = self._bounds(wanted.topic, wanted.partition)[wanted.partition]
        if at >= start:
            raise _NotYetError(f"the log ends at {end}: what had been there is gone")
        if self._strict:
            raise DataLossError(
                f"{wanted.topic}-{wanted.partition}: records {at} to {start - 1} are gone, the log "
                f"starts at {start}; {PASSED_OVER}"
            )
        return start


def _named(code: int) -> str:
    """An error code in words."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
