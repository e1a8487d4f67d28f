"""`Stages`: replication in two steps that a program may await, for embedded clusters (promise-R1).

    stages = cluster.replicate_in_stages("orders", 0, batch)
    await stages.enqueued      # the batch has its place in the log: its order is certain
    await stages.replicated    # committed; the result is its base offset

The result of `enqueued` is the log index of the entry, that of `replicated` is the offset of the
first record. If the batch is refused, or its fate cannot be learned, each stage that is not done
yet raises `RequestFailedError` with Kafka's code. `definite` of that error says whether the batch
is certainly not stored. A duplicate gets no entry in the log: both stages end when the offset of
the original is known, and the result of `enqueued` is 0.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ottla.broker.errors import ErrorCode, RequestFailedError
from ottla.broker.node.node import Node
from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.wire.host import ReplicaInbox
from ottla.log.record_batch import BatchDefect, read_batch
from ottla.log.types import Offset
from ottla.raft.types import LogIndex, Micros


class Stages(NamedTuple):
    """The two stages of one batch; see the module's docstring."""

    enqueued: asyncio.Future[LogIndex]
    replicated: asyncio.Future[Offset]


def replicate_in_stages(
    node: Node, inbox: ReplicaInbox, batch: bytes, *, acks: int = -1, timeout: Micros
) -> Stages:
    """Submit one record batch (as a producer would send it) to a replica of this loop.

    Raises `RequestFailedError` at once when the bytes are no record batch.
    """
    parsed = read_batch(batch)
    if isinstance(parsed, BatchDefect):
        raise RequestFailedError(ErrorCode.INVALID_RECORD, parsed.value)
    stages = Stages(asyncio.Future(), asyncio.Future())
    ticket = ProduceTicket(
        parsed,
        acks,
        lambda done: _finish(stages, done),
        node.now() + timeout,
        wall_ms=node.wall_ms(),
    )
    ticket.on_enqueued = lambda staged: _resolve(stages.enqueued, staged.index)
    node.submit(inbox, ticket)
    return stages


def _resolve(stage: asyncio.Future[int], value: int) -> None:
    if not stage.done():
        stage.set_result(value)


def _finish(stages: Stages, ticket: ProduceTicket) -> None:
    if ticket.error is ErrorCode.NONE:
        _resolve(stages.enqueued, ticket.index)
        _resolve(stages.replicated, ticket.base_offset)
        return
    why = "; ".join(fault.text for fault in ticket.faults)
    for stage in (stages.enqueued, stages.replicated):
        if not stage.done():
            stage.set_exception(RequestFailedError(ticket.error, why))
            # A caller that awaits only one of them gets no warning about the other.
            stage.exception()
