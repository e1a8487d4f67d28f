"""Questions: requests as readers send them now and then, to compare answers and errors with a log.

In every run an extra client sends a few: where a partition begins, ends, or has its first record of
a time; which node leads it; where a leader epoch ended. It fetches beyond the end, below the log
start, and with an epoch that the log may not have had. It asks the leader, or any node. Most
questions name a leader epoch, which may be too old or too new. Each answer becomes a `learn` row,
or an `error` row with the question. Then the client does what a consumer would do: it goes where
its reset policy says, or where the answer sent it, and reads there.

All choices come from a stream of their own. Each question has a client number of its own, because a
client that reads here and there is not a consumer that reads on. Questions do not wait for each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH
from ottla.broker.wire.answers import MetadataAnswer, PartitionFetched
from ottla.broker.wire.requests import MetadataRequest, MetadataTopic
from ottla.log.types import Offset
from ottla.raft.types import NodeId, Term
from ottla.sim.clients.consumer import EARLIEST, LATEST, QUESTIONS
from ottla.sim.clients.worker import MS
from ottla.sim.world.batch import FIRST_TIME, time_of
from ottla.sim.world.frames import (
    TOPIC,
    Frame,
    end_of_epoch,
    ended,
    fetch,
    fetched,
    list_offsets,
    listed,
)
from ottla.sim.world.world import World

ASKER = 3_000_000
"""Its first client number."""
ASKED_A_RUN = 12
ONE_BATCH = 1
"""Bytes of a fetch: at least one batch is returned."""
FAR = 1_000
"""Records beyond the end, for a reader that is far off."""


class Question(NamedTuple):
    """One question to one node."""

    what: str
    """latest, earliest, time, epoch, leader or fetch."""
    node: NodeId
    partition: int
    value: int = ANY_EPOCH
    """The time, or the epoch; of a fetch the epoch of the record before, if any."""
    off: Offset = 0
    """The offset of a fetch."""
    leads: Term = ANY_EPOCH
    """The leader epoch that it names."""


Heard: TypeAlias = Callable[[Question, ErrorCode, Offset], None]


class Asker:
    """One client with its questions, one after the other. `heard` is called with the result of
    each: an error, or an offset (of a fetch, the next one; of a leader, its node)."""

    def __init__(self, world: World, number: int, heard: Heard | None = None):
        self._world = world
        self._number = number
        self._heard = heard or (lambda _question, _error, _off: None)

    def ask(self, question: Question, then: Callable[[Offset], None] | None = None) -> None:
        """Send it. `then` is called with an offset to go on from, if there is one."""
        world = self._world
        since = len(world.history.rows)

        def come(answer: Frame) -> None:
            connection.close()
            off = _HEARS[question.what](self, question, answer.value, since)
            if then is not None and off >= 0:
                then(off)

        connection = world.clients.connect(self._number, question.node, come, lambda _: None)
        connection.send(Frame(1, _request(question)))

    def _row(self, kind: str, question: Question, since: int, **columns: Any) -> None:
        self._world.history.add(
            kind,
            client=self._number,
            node=question.node,
            partition=question.partition,
            aux=since,
            **columns,
        )

    def _failed(
        self, question: Question, since: int, error: ErrorCode, off: Offset | None = None
    ) -> Offset:
        leads = None if question.leads == ANY_EPOCH else question.leads
        has = None if off is None or question.value == ANY_EPOCH else question.value
        self._row("error", question, since, code=error.name, off=off, term=leads, value=has)
        self._heard(question, error, -1)
        return -1

    def hear_listed(self, question: Question, answer: Any, since: int) -> Offset:
        """The answer is an offset, by time or not."""
        part = listed(answer)
        if part.error_code is not ErrorCode.NONE:
            return self._failed(question, since, part.error_code)
        by_time = question.what == "time"
        self._row(
            "learn",
            question,
            since,
            code=question.what,
            term=part.leader_epoch,
            off=part.offset,
            value=question.value if by_time else None,
            hw=part.timestamp if by_time else None,
        )
        self._heard(question, ErrorCode.NONE, part.offset)
        return part.offset

    def hear_described(self, question: Question, answer: MetadataAnswer, since: int) -> Offset:
        """The answer names the leader."""
        (topic,) = answer.topics
        error, leads = topic.error_code, -1
        for part in topic.partitions:
            if part.partition_index == question.partition:
                error, leads = part.error_code, part.leader_id
                if error is ErrorCode.NONE:
                    term = part.leader_epoch
                    self._row("learn", question, since, code="leader", term=term, cand=leads)
        if error is not ErrorCode.NONE:
            return self._failed(question, since, error)
        self._heard(question, error, leads)
        return -1

    def hear_ended(self, question: Question, answer: Any, since: int) -> Offset:
        """The answer says where an epoch ended."""
        part = ended(answer)
        if part.error_code is not ErrorCode.NONE:
            return self._failed(question, since, part.error_code)
        self._row(
            "learn",
            question,
            since,
            code="epoch",
            value=question.value,
            term=part.leader_epoch,
            off=part.end_offset,
        )
        self._heard(question, ErrorCode.NONE, part.end_offset)
        return part.end_offset

    def hear_fetched(self, question: Question, answer: Any, since: int) -> Offset:
        """The answer has records, or the reason why there are none."""
        part = fetched(answer)
        if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._failed(question, since, part.error, question.off)
            self._reset(question)
            return -1
        if part.error is not ErrorCode.NONE:
            return self._failed(question, since, part.error, question.off)
        if part.diverging is not None:
            self._row(
                "learn",
                question,
                since,
                code="diverging",
                value=question.value,
                hw=question.off,
                term=part.diverging.epoch,
                off=part.diverging.start_offset,
            )
            self._heard(question, ErrorCode.NONE, part.diverging.start_offset)
            return part.diverging.start_offset
        self._row(
            "fetch",
            question,
            since,
            term=part.leader_epoch,
            hw=part.high_watermark,
            off=question.off,
        )
        self._heard(question, ErrorCode.NONE, self._deliver(question, part))
        return -1

    def _deliver(self, question: Question, part: PartitionFetched) -> Offset:
        world, position = self._world, question.off
        for batch in part.batches:
            for place, value in enumerate(world.decoder.values(batch)):
                if batch.base_offset + place >= position:
                    position = batch.base_offset + place + 1
                    numbered = batch.producer_id >= 0
                    world.history.add(
                        "poll",
                        client=self._number,
                        node=question.node,
                        partition=question.partition,
                        off=position - 1,
                        value=value,
                        pid=batch.producer_id if numbered else None,
                        epoch=batch.producer_epoch if numbered else None,
                    )
        return position

    def _reset(self, question: Question) -> None:
        """Apply its reset policy: even client numbers go to the beginning, odd ones to the end."""
        what = QUESTIONS[LATEST if self._number % 2 else EARLIEST]
        where = Question(what, question.node, question.partition)
        self.ask(where, partial(self.read, where))

    def read(self, found: Question, off: Offset) -> None:
        """Read one batch at the offset that the answer named."""
        self.ask(Question("fetch", found.node, found.partition, off=off))


_HEARS: dict[str, Callable[[Asker, Question, Any, int], Offset]] = {
    "latest": Asker.hear_listed,
    "earliest": Asker.hear_listed,
    "time": Asker.hear_listed,
    "epoch": Asker.hear_ended,
    "leader": Asker.hear_described,
    "fetch": Asker.hear_fetched,
}


def _request(question: Question) -> Any:
    what, partition, leads = question.what, question.partition, question.leads
    if what == "fetch":
        return fetch(partition, question.off, ONE_BATCH, 0, leads=leads, has=question.value)
    if what == "leader":
        return MetadataRequest((MetadataTopic(TOPIC),), allow_auto_topic_creation=False)
    if what == "epoch":
        return end_of_epoch(partition, question.value, leads)
    timestamp = {"latest": LATEST, "earliest": EARLIEST}.get(what, question.value)
    return list_offsets(partition, timestamp, leads)


class Questions:
    """See the module's docstring."""

    def __init__(self, world: World):
        self._world = world
        self._stream = world.choices.stream("questions")
        self._number = ASKER

    def start(self) -> None:
        """Schedule the questions at random times of the load."""
        world = self._world
        for _ in range(ASKED_A_RUN):
            world.kernel.after(self._stream.below(world.config.load_ms * MS), self._strike)

    def _strike(self) -> None:
        world, stream = self._world, self._stream
        partition = stream.below(world.config.partitions)
        life = world.leader(partition)
        node = stream.pick(world.nodes)
        if life is not None and stream.below(4):
            node = life.node_id
        term = 0 if life is None else world.replicas(partition)[life.node_id].term
        leads = stream.pick((ANY_EPOCH, ANY_EPOCH, term, term, max(0, term - 1), term + 1))
        make = stream.pick(_KINDS)
        self._number += 1
        asker = Asker(world, self._number)
        question = make(self, node, partition, term)._replace(leads=leads)
        asker.ask(question, partial(asker.read, question) if question.what == "time" else None)

    # ---- the questions, by node, partition and the term of its leader

    def latest(self, node: NodeId, partition: int, _: Term) -> Question:
        """Where the partition ends."""
        return Question("latest", node, partition)

    def earliest(self, node: NodeId, partition: int, _: Term) -> Question:
        """Where the partition begins."""
        return Question("earliest", node, partition)

    def leader(self, node: NodeId, partition: int, _: Term) -> Question:
        """Which node leads the partition."""
        return Question("leader", node, partition)

    def by_time(self, node: NodeId, partition: int, _: Term) -> Question:
        """The first record of a time: of a time that a record may have, a bit later, or before all
        records."""
        end = self._stream.below(self._world.config.records + 1)
        time = self._stream.pick((time_of(end), time_of(end) + 1, FIRST_TIME - FAR))
        return Question("time", node, partition, time)

    def epoch(self, node: NodeId, partition: int, term: Term) -> Question:
        """The end of an epoch: the present one, an earlier one, or seldom a future one."""
        return Question("epoch", node, partition, self._stream.below(term + 2))

    def beyond(self, node: NodeId, partition: int, _: Term) -> Question:
        """Fetch at the end, a little beyond it, or far beyond it."""
        ahead = self._stream.pick((0, 1, 2, 5, FAR))
        return Question("fetch", node, partition, off=self._end(partition) + ahead)

    def below(self, node: NodeId, partition: int, _: Term) -> Question:
        """Fetch before the end, maybe below the log start."""
        return Question("fetch", node, partition, off=self._stream.below(self._end(partition) + 1))

    def diverged(self, node: NodeId, partition: int, term: Term) -> Question:
        """Fetch after a record of some epoch that a reader's own log may have."""
        has, off = self._stream.below(term + 1), self._stream.below(self._end(partition) + 3)
        return Question("fetch", node, partition, has, off)

    def _end(self, partition: int) -> Offset:
        return int(self._world.high_watermark(partition, 0))


_KINDS: tuple[Callable[[Questions, NodeId, int, Term], Question], ...] = (
    *(Questions.latest, Questions.earliest, Questions.by_time, Questions.epoch, Questions.epoch),
    *(Questions.beyond, Questions.below, Questions.diverged, Questions.leader),
)
