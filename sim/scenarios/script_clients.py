"""The clients of a scenario: they send what the script says, and nothing by themselves.

A `Sender` has a producer id, an epoch and no rules of its own: the script chooses sequences, copies
and the node. It adds the rows that a real producer would, so that a scenario is judged like any
other run: each record is handed over once, and has one outcome. A record has a name. It holds a
number, which is the same whichever client sends it, and however often.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import (
    DeleteRecordsAnswer,
    FetchAnswer,
    InitProducerIdAnswer,
    PartitionFetched,
    PartitionProduced,
    ProduceAnswer,
)
from ottla.broker.wire.requests import InitProducerIdRequest
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.records import records_of
from ottla.log.types import NO_OFFSET, Offset
from ottla.raft.types import Micros, NodeId
from ottla.sim.world.batch import encode, time_of, value_of
from ottla.sim.world.frames import (
    Frame,
    delete_records,
    deleted,
    fetch,
    fetched,
    produce,
    produced,
)
from ottla.sim.world.outcomes import Lost, Outcome, may_be_stored
from ottla.sim.world.tcp import Connection
from ottla.sim.world.world import World

RECORD_BYTES = 16
FETCH_BYTES = 1 << 20


class Names:
    """Records by name and number, and which of them a batch in a log holds."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._batches: dict[tuple[int, int, int], str] = {}

    def number(self, name: str) -> int:
        """The number of a record, from 1 in the order in which they are named."""
        number = self.numbers.setdefault(name, len(self.numbers) + 1)
        self._names[number] = name
        return number

    def name(self, number: int) -> str:
        """The record of that number; an unknown number is "damaged"."""
        return self._names.get(number, "damaged")

    def sent(self, pid: int, epoch: int, seq: int, names: Sequence[str]) -> None:
        """These records were sent as one batch."""
        self._batches[pid, epoch, seq] = ",".join(names)

    def batch(self, pid: int | None, epoch: int | None, seq: int | None) -> str:
        """The records of a batch."""
        if pid is None or epoch is None or seq is None:
            return "a batch"
        return self._batches.get((pid, epoch, seq), "a batch")


@dataclass(slots=True)
class Sending:
    """A batch on its way to a node."""

    records: tuple[str, ...]
    node: NodeId
    partition: int
    epoch: int
    seq: int
    acks: int
    timeout: Micros


@dataclass(slots=True)
class _Known:
    """What a sender knows of one of its records."""

    acks: int
    partition: int
    attempts: int = 0
    ended: bool = False
    heard: str = ""
    """Its last outcome."""
    suspect: bool = False
    """Whether some attempt may be stored."""
    open: int = 0
    """How many attempts have no outcome yet."""


class Person:
    """A client with a name: its connections, its open requests, its answers."""

    def __init__(self, world: World, names: Names, name: str, number: int):
        self.world = world
        self.names = names
        self.name = name
        self.number = number
        self.say: Callable[[str], None] = print
        self.connections: dict[NodeId, Connection] = {}
        self._open: dict[NodeId, deque[tuple[int, Any]]] = {}
        self._numbers = 0

    @property
    def waiting(self) -> bool:
        """Whether it waits for an answer."""
        return any(self._open.values())

    def row(self, kind: str, **columns: Any) -> None:
        """Add a row about it to the history."""
        self.world.history.add(kind, client=self.number, **columns)

    def connect(self, node: NodeId) -> Connection:
        """Its connection to a node: the one it has, or a new one."""
        connection = self.connections.get(node)
        if connection is None or not connection.open:
            connection = self.world.clients.connect(
                self.number,
                node,
                lambda answer: self._answered(node, answer),
                lambda why: self._closed(node, why),
            )
            self.connections[node] = connection
            self._open[node] = deque()
        return connection

    def ask(self, node: NodeId, request: Any, what: Any) -> None:
        """Send a request; `what` is passed to `heard` with its answer."""
        connection = self.connect(node)
        self._numbers += 1
        self._open[node].append((self._numbers, what))
        connection.send(Frame(self._numbers, request))

    def hang_up(self, node: NodeId) -> None:
        """Close a connection; its open requests will never be answered."""
        self.connections[node].close()
        self._closed(node, "hung up")

    def _answered(self, node: NodeId, answer: Frame) -> None:
        number, what = self._open[node].popleft()
        assert number == answer.number, f"expected answer {number}, came {answer.number}"
        self.heard(node, what, answer.value)

    def _closed(self, node: NodeId, why: str) -> None:
        self.row("close", node=node, code=why)
        self.say(f"{self.name}: connection to {node} is gone, {why}")
        lost, self._open[node] = self._open[node], deque()
        for _, what in lost:
            self.heard(node, what, None)

    def heard(self, node: NodeId, what: Any, answer: Any) -> None:
        """An answer has come; None: there will be none."""
        raise NotImplementedError


class Sender(Person):
    """A producer; see the module's docstring."""

    def __init__(self, world: World, names: Names, name: str, number: int, pid: int):
        super().__init__(world, names, name, number)
        self.pid = pid
        self.misreads: ErrorCode | None = None
        """What the next answer to a batch says, whatever the node wrote."""
        self._known: dict[str, _Known] = {}

    def introduce(self, node: NodeId) -> None:
        """Ask for a producer id."""
        self.ask(node, InitProducerIdRequest(), None)

    def send(self, batch: Sending) -> None:
        """Send a batch, whatever was sent before."""
        for name in batch.records:
            self._handed(name, batch)
        self.names.sent(self.pid, batch.epoch, batch.seq, batch.records)
        self.row(
            "send", node=batch.node, aux=self._known[batch.records[0]].attempts, **self._of(batch)
        )
        numbers = [self.names.number(each) for each in batch.records]
        data = encode(numbers, RECORD_BYTES, pid=self.pid, epoch=batch.epoch, seq=batch.seq)
        request = produce(batch.acks, batch.timeout, ((batch.partition, data),))
        if batch.acks == 0:
            self.connect(batch.node).send(Frame(0, request))
            self._came(batch, ErrorCode.NONE, None)
            return
        self.ask(batch.node, request, batch)

    def heard(self, node: NodeId, what: Any, answer: Any) -> None:
        """The outcome of a batch, or the new producer id."""
        if what is None:
            self._introduced(node, answer)
            return
        batch: Sending = what
        records = ",".join(batch.records)
        if answer is None:
            self.say(f"{self.name}: {records} was not answered")
            self._came(batch, Lost.DISCONNECTED, None)
            return
        assert isinstance(answer, ProduceAnswer), f"{answer} answers a produce request"
        (part,) = produced(answer)
        if self.misreads is not None:
            part = part._replace(error=self.misreads, base_offset=NO_OFFSET)
            self.misreads = None
        self.say(f"{self.name} hears from {node}: {records} {_told(part)}")
        self._came(batch, part.error, part)

    def _introduced(self, node: NodeId, answer: Any) -> None:
        if answer is None:
            self.say(f"{self.name} was given no producer id")
            return
        assert isinstance(answer, InitProducerIdAnswer), f"{answer} answers InitProducerId"
        if answer.error_code is not ErrorCode.NONE:
            self.say(f"{self.name} hears from {node}: {answer.error_code.name}")
            return
        self.pid = answer.producer_id
        self.say(f"{self.name} hears from {node}: producer id {self.pid}")

    def heard_of(self, name: str) -> str:
        """The last outcome of a record, by name; empty: none."""
        known = self._known.get(name)
        return "" if known is None else known.heard

    def end(self) -> list[str]:
        """The scenario is over: returns the records whose outcome it does not know."""
        unknown = []
        for name, known in self._known.items():
            if not known.ended:
                unsure = known.suspect or known.open > 0
                self._end("info" if unsure else "fail", name, known, code="scenario over")
                if unsure:
                    unknown.append(name)
        return unknown

    def _handed(self, name: str, batch: Sending) -> None:
        known = self._known.get(name)
        if known is None:
            place = len(self._known)
            known = self._known[name] = _Known(batch.acks, batch.partition)
            number = self.names.number(name)
            self.row(
                "inv",
                op=number,
                value=number,
                partition=batch.partition,
                seq=place,
                acks=batch.acks,
                aux=time_of(number),
            )
        known.attempts += 1
        known.open += 1

    def _of(self, batch: Sending) -> dict[str, int]:
        return {
            "op": self.names.number(batch.records[0]),
            "partition": batch.partition,
            "pid": self.pid,
            "epoch": batch.epoch,
            "seq": batch.seq,
            "seq_last": batch.seq + len(batch.records) - 1 & MAX_SEQUENCE,
        }

    def _came(self, batch: Sending, outcome: Outcome, part: PartitionProduced | None) -> None:
        if outcome is not ErrorCode.NONE:
            self.row("error", node=batch.node, code=outcome.name, **self._of(batch))
        for place, name in enumerate(batch.records):
            known = self._known[name]
            known.open -= 1
            known.heard = outcome.name
            known.suspect |= may_be_stored(outcome)
            if outcome is ErrorCode.NONE and not known.ended:
                off = -1 if part is None else part.base_offset + place
                seq = batch.seq + place & MAX_SEQUENCE
                self._end("ok", name, known, off=off, node=batch.node, epoch=batch.epoch, seq=seq)

    def _end(self, kind: str, name: str, known: _Known, **columns: Any) -> None:
        known.ended = True
        number = self.names.number(name)
        self.row(
            kind,
            op=number,
            value=number,
            partition=known.partition,
            pid=self.pid,
            acks=known.acks,
            **columns,
        )


class Reader(Person):
    """A client that reads and deletes when told to."""

    def read(self, node: NodeId, offset: Offset, partition: int = 0) -> None:
        """Ask a node for what can be read from an offset on."""
        self.ask(node, fetch(partition, offset, FETCH_BYTES, 0), (partition, offset))

    def delete(self, node: NodeId, offset: Offset, timeout: Micros) -> None:
        """Ask a leader to move the log start of partition 0."""
        self.ask(node, delete_records(0, offset, timeout), (0, offset))

    def heard(self, node: NodeId, what: Any, answer: Any) -> None:
        """The records that can be read, or where the log begins now."""
        if answer is None:
            self.say(f"{self.name} was not answered")
            return
        if isinstance(answer, DeleteRecordsAnswer):
            part = deleted(answer)
            error, told = part.error_code, f"the log begins at {part.low_watermark}"
            self.say(f"{self.name} hears from {node}: {error.name if error else told}")
            return
        assert isinstance(answer, FetchAnswer), f"{answer} answers a fetch"
        read = fetched(answer)
        if read.error is not ErrorCode.NONE:
            self.say(f"{self.name} hears from {node}: {read.error.name}")
        else:
            self._read(node, what[1], read)

    def _read(self, node: NodeId, offset: Offset, answer: PartitionFetched) -> None:
        high, partition = answer.high_watermark, answer.partition
        term = answer.leader_epoch
        self.row("fetch", node=node, partition=partition, term=term, hw=high, off=offset)
        seen = []
        for batch in answer.batches:
            for place, record in enumerate(records_of(batch)):
                if record.offset >= offset:
                    number = value_of(record.value or b"")
                    self.row(
                        "poll",
                        node=node,
                        partition=partition,
                        off=record.offset,
                        value=number,
                        pid=batch.producer_id,
                        epoch=batch.producer_epoch,
                        seq=batch.base_sequence + place & MAX_SEQUENCE,
                    )
                    seen.append(f"{record.offset} {self.names.name(number)}")
        told = ", ".join(seen) or "nothing"
        self.say(f"{self.name} reads at {node}: {told}; high watermark {high}")


def _told(part: PartitionProduced) -> str:
    """A produce answer in words."""
    if part.error is ErrorCode.NONE:
        return f"at {part.base_offset}"
    where = f" at {part.base_offset}" if part.base_offset >= 0 else ""
    leads = f", {part.leader} leads" if part.leader > 0 else ""
    return f"{part.error.name}{where}{leads}"
