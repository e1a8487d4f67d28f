"""Programs about requests that arrive late or again, and producers that die while they ask.

A client that gives up a connection cannot take back what it has sent (sim-N7). A producer that
seemed to be dead may still be sending (sim-L1, sim-S24, sim-S28). What arrives that way was stored
already, or is no batch that was ever sent. So a broker must refuse it or recognise it.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.wire.answers import ProduceAnswer
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.raft.types import NodeId
from ottla.sim.history.history import Event
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.batch import encode
from ottla.sim.world.frames import TOPIC, Frame, produce, produced
from ottla.sim.world.points import Trap
from ottla.sim.world.world import SECOND

STRANGER = 1_000_000
"""Its client number."""


def late_requests(hand: FaultContext) -> None:
    """All that one client has sent the leader, and still sends on this connection, is late: none of
    it arrives for a while."""
    world, node = hand.world, hand.leader()
    found = [each for each in world.clients.connections if each.node == node and each.open]
    if found:
        connection = hand.stream.pick(found)
        world.fault(f"requests of client {connection.client} take long", node)
        connection.hold_up(2 * hand.span())


def stray_request(hand: FaultContext) -> None:
    """A batch that was acknowledged arrives again: unchanged, shorter, or longer. Batches of old
    epochs are preferred, because an epoch that its producer has left tests more."""
    world, stream = hand.world, hand.stream
    batch = _acknowledged(hand)
    life = None if batch is None else world.leader(batch.partition or 0)
    if batch is None or life is None or not _remembered(world.config):
        return
    seq, last = batch.seq or 0, batch.seq_last or 0
    count = (last - seq & MAX_SEQUENCE) + 1 + stream.pick((0, 1, -1))
    op = batch.op or 0
    data = encode(
        range(op, op + max(1, count)),
        world.config.record_bytes,
        pid=batch.pid or 0,
        epoch=batch.epoch or 0,
        seq=seq,
    )
    world.fault(f"a stray request, {max(1, count)} records from {seq} on", life.node_id)
    connection = world.clients.connect(STRANGER, life.node_id, _ignore, _ignore)
    connection.send(Frame(1, produce(-1, SECOND, ((batch.partition or 0, data),))))


def die_asking(hand: FaultContext) -> None:
    """A producer dies when its batch is stored, before it gets the answer. Another producer with a
    new id takes over, and cannot know that the batch is stored."""
    world = hand.world

    def die(_: NodeId) -> None:
        client = next(row.client for row in reversed(world.history.rows) if row.kind == "answer")
        world.client_dies(client or 0)

    node = hand.leader() if hand.stream.below(2) else None
    trap = world.points.set(Trap("answer", die, node, 1 + hand.stream.below(4), _all_stored))
    hand.later(4 * hand.span(), world.points.lift, trap)


def _all_stored(answer: Any) -> bool:
    """Whether a produce answer about the run's own topic says of each batch where it lies."""
    return (
        isinstance(answer, ProduceAnswer)
        and all(each.topic == TOPIC for each in answer.topics)
        and not any(each.error for each in produced(answer))
    )


def _acknowledged(hand: FaultContext) -> Event | None:
    """A batch whose records are all known to be stored."""
    rows = hand.world.history.rows
    stored = {row.op for row in rows if row.kind == "ok"}
    sent = [row for row in rows if row.kind == "send" and row.pid is not None and row.op in stored]
    if not sent:
        return None
    newest = {row.pid: row.epoch for row in sent}
    old = [row for row in sent if row.epoch != newest[row.pid]]
    return hand.stream.pick(old or sent)


def _remembered(config: RunConfig) -> bool:
    """Whether no producer is ever forgotten: a forgotten one may begin at any sequence, with
    records that are stored already."""
    default = RunConfig()
    return (config.max_producers, config.producer_expiry_ms) == (
        default.max_producers,
        default.producer_expiry_ms,
    )


def _ignore(_: Any) -> None:
    """No client waits for the answer."""
