"""A consumer: reads partitions from the beginning, and adds a row for each record.

Its partitions are fixed (all, unless told otherwise), because consumer groups are not modelled. For
each partition it asks the leader where the log begins. From there it fetches with a long poll, one
fetch at a time on each connection, the partitions of one leader in turn. It follows the leaders
that Metadata names. After any error it asks again after the backoff. OFFSET_OUT_OF_RANGE makes it
ask again where to begin (auto.offset.reset).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import FetchAnswer, ListOffsetsAnswer
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import Offset, RecordBatch
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.base import Client
from ottla.sim.clients.link import Link
from ottla.sim.clients.worker import Surroundings
from ottla.sim.settings.settings import FETCH_WAIT_US
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.frames import fetch, fetched, list_offsets, listed
from ottla.sim.world.outcomes import Lost, Outcome

EARLIEST = -2
LATEST = -1
QUESTIONS = {EARLIEST: "earliest", LATEST: "latest"}
"""Their names in rows."""

Reset = Literal["earliest", "latest"]

_DOUBTFUL = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
)
"""Errors after which the metadata is in doubt."""


class Reading:
    """How far one partition is read."""

    __slots__ = ("asked", "failures", "partition", "position", "retry_at", "since", "sought")

    def __init__(self, partition: int):
        self.partition = partition
        self.position: Offset | None = None
        """The offset to read next; None until the partition said where it begins."""
        self.asked = False
        """Whether a request is open."""
        self.failures = 0
        self.retry_at: Micros = 0
        self.sought: Offset | None = None
        """The offset of the last request; None if it asked where to begin."""
        self.since = 0
        """How many rows the history had when it was sent."""


class Consumer(Client):
    """See the module's docstring."""

    def __init__(
        self,
        surroundings: Surroundings,
        number: int,
        decoder: Decoder,
        partitions: Sequence[int] | None = None,
        reset: Reset = "earliest",
    ):
        super().__init__(surroundings, number)
        chosen = range(surroundings.config.partitions) if partitions is None else partitions
        self._readings = [Reading(each) for each in chosen]
        self._decoder = decoder
        self._reset = EARLIEST if reset == "earliest" else LATEST
        self._fetching: dict[NodeId, int] = {}
        """By node, which partition is being fetched from it."""

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that it reads."""
        return tuple(sorted(each.partition for each in self._readings))

    def position(self, partition: int) -> Offset:
        """The offset that it reads next there; -1: not known yet."""
        for each in self._readings:
            if each.partition == partition and each.position is not None:
                return each.position
        return -1

    def work(self) -> None:
        """Ask for everything that is not asked for already."""
        now = self.kernel.now
        leads: dict[NodeId, list[Reading]] = {}
        for reading in self._readings:
            node = self.view.leader(reading.partition)
            if node == 0:
                self.view.refresh()
            elif reading.asked:
                leads.setdefault(node, [])
            elif now < reading.retry_at:
                self.alarm(reading.retry_at)
            else:
                leads.setdefault(node, []).append(reading)
        for node, readings in leads.items():
            if readings:
                self._ask(node, readings)

    def _ask(self, node: NodeId, readings: list[Reading]) -> None:
        link = self.link(node)
        if link is None:
            return
        for reading in readings:
            if reading.position is None:
                self._list(link, reading)
        if node not in self._fetching:
            self._fetch(link, readings)

    def _list(self, link: Link, reading: Reading) -> None:
        self._asks(reading, None)
        answered = partial(self._listed, link.node, reading)
        lost = partial(self._lost, link.node, reading)
        link.ask(list_offsets(reading.partition, self._reset), ListOffsetsAnswer, answered, lost)

    def _listed(self, node: NodeId, reading: Reading, answer: ListOffsetsAnswer) -> None:
        part = listed(answer)
        if part.error_code is not ErrorCode.NONE:
            self._failed(node, reading, part.error_code)
            return
        reading.asked, reading.failures = False, 0
        reading.position = part.offset
        self.row(
            "learn",
            node=node,
            partition=reading.partition,
            code=QUESTIONS[self._reset],
            term=part.leader_epoch,
            off=part.offset,
            aux=reading.since,
        )
        self.wake()

    def _asks(self, reading: Reading, sought: Offset | None) -> None:
        reading.asked, reading.sought = True, sought
        reading.since = len(self.surroundings.history.rows)

    def _fetch(self, link: Link, readings: list[Reading]) -> None:
        """Fetch the partition whose last fetch is the oldest."""
        for reading in readings:
            if reading.position is not None:
                break
        else:
            return
        self._readings.remove(reading)
        self._readings.append(reading)
        self._asks(reading, reading.position or 0)
        self._fetching[link.node] = reading.partition
        wait = FETCH_WAIT_US // len(self._readings)
        size = self.surroundings.config.fetch_bytes
        request = fetch(reading.partition, reading.position or 0, size, wait)
        answered = partial(self._fetched, link.node, reading)
        patience = self.request_timeout + wait
        lost = partial(self._lost, link.node, reading)
        link.ask(request, FetchAnswer, answered, lost, patience)

    def _fetched(self, node: NodeId, reading: Reading, answer: FetchAnswer) -> None:
        self._fetching.pop(node, None)
        part = fetched(answer)
        if part.error is not ErrorCode.NONE:
            self._failed(node, reading, part.error)
            return
        reading.asked, reading.failures = False, 0
        partition, position = reading.partition, reading.position or 0
        self.row(
            "fetch",
            node=node,
            partition=partition,
            term=part.leader_epoch,
            hw=part.high_watermark,
            off=position,
            aux=reading.since,
        )
        for batch in part.batches:
            if batch.last_offset >= position:
                self._deliver(node, partition, batch, position)
                position = batch.last_offset + 1
        reading.position = position
        self.wake()

    def _deliver(self, node: NodeId, partition: int, batch: RecordBatch, position: Offset) -> None:
        base, numbered = batch.base_offset, batch.producer_id >= 0
        note, number = self.note, self.number
        for place, value in enumerate(self._decoder.values(batch)):
            if base + place >= position:
                note(
                    "poll",
                    client=number,
                    node=node,
                    partition=partition,
                    off=base + place,
                    value=value,
                    pid=batch.producer_id if numbered else None,
                    epoch=batch.producer_epoch if numbered else None,
                    seq=batch.base_sequence + place & MAX_SEQUENCE if numbered else None,
                )

    def _lost(self, node: NodeId, reading: Reading, lost: Lost) -> None:
        self._fetching.pop(node, None)
        self._failed(node, reading, lost)

    def _failed(self, node: NodeId, reading: Reading, outcome: Outcome) -> None:
        reading.asked = False
        reading.retry_at = self.kernel.now + self.backed_off(reading.failures)
        reading.failures += 1
        self.row(
            "error",
            node=node,
            partition=reading.partition,
            off=reading.sought,
            code=outcome.name,
            aux=reading.since,
        )
        if outcome is ErrorCode.OFFSET_OUT_OF_RANGE:
            reading.position = None
        elif outcome in _DOUBTFUL:
            self.view.refresh()
        self.wake()
