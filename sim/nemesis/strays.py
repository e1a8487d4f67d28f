"""Programs about requests that arrive late, or once more, and about who dies while it asks.

A client that gives up a connection cannot call back what it has sent (sim-N7), and a producer that
was thought to be dead may still be sending (sim-L1, sim-S24, sim-S28). What arrives so was stored
already, or is none of what was ever sent, so a broker must refuse it or know it again.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.wire.answers import ProduceAnswer
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.build import build_batch
from ottla.sim.history.history import Event
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.batch import record_of, time_of
from ottla.sim.world.frames import Frame, produce, produced
from ottla.sim.world.life import Life
from ottla.sim.world.points import Trap
from ottla.sim.world.world import SECOND

STRANGER = 1_000_000
"""Its number as a client."""


def late_requests(hand: FaultContext) -> None:
    """What one client has sent the leader, and sends it on this connection, takes long: nothing of
    it arrives for a while."""
    world, node = hand.world, hand.leader()
    found = [each for each in world.clients.connections if each.node == node and each.open]
    if found:
        connection = hand.stream.pick(found)
        world.fault(f"requests of client {connection.client} take long", node)
        connection.hold_up(2 * hand.span())


def stray_request(hand: FaultContext) -> None:
    """A batch that was acknowledged arrives again: as it was, shorter, or longer. Longest-lived
    epochs first: one that its producer has left behind is worth more."""
    world, stream = hand.world, hand.stream
    batch = _acknowledged(hand)
    life = None if batch is None else world.leader(batch.partition or 0)
    if batch is None or life is None or not _remembered(world.config):
        return
    seq, last = batch.seq or 0, batch.seq_last or 0
    count = (last - seq & MAX_SEQUENCE) + 1 + stream.pick((0, 1, -1))
    op = batch.op or 0
    data = build_batch(
        [record_of(op + place, world.config.record_bytes) for place in range(max(1, count))],
        producer_id=batch.pid or 0,
        producer_epoch=batch.epoch or 0,
        base_sequence=seq,
        base_timestamp=time_of(op),
    )
    world.fault(f"a stray request, {max(1, count)} records from {seq} on", life.node_id)
    connection = world.clients.connect(STRANGER, life.node_id, _ignore, _ignore)
    connection.send(Frame(1, produce(-1, SECOND, ((batch.partition or 0, data),))))


def die_asking(hand: FaultContext) -> None:
    """A producer dies when what it asked for is stored, before it hears of that; another takes over
    with a new id, which has no way to know."""
    world = hand.world

    def die(_: Life) -> None:
        client = next(row.client for row in reversed(world.history.rows) if row.kind == "answer")
        world.client_dies(client or 0)

    node = hand.leader() if hand.stream.below(2) else None
    trap = world.points.set(Trap("answer", die, node, 1 + hand.stream.below(4), _all_stored))
    hand.later(4 * hand.span(), world.points.lift, trap)


def _all_stored(answer: Any) -> bool:
    """It says of each batch where it lies."""
    return isinstance(answer, ProduceAnswer) and not any(each.error for each in produced(answer))


def _acknowledged(hand: FaultContext) -> Event | None:
    """A batch all of whose records are known to be stored."""
    rows = hand.world.history.rows
    stored = {row.op for row in rows if row.kind == "ok"}
    sent = [row for row in rows if row.kind == "send" and row.pid is not None and row.op in stored]
    if not sent:
        return None
    newest = {row.pid: row.epoch for row in sent}
    old = [row for row in sent if row.epoch != newest[row.pid]]
    return hand.stream.pick(old or sent)


def _remembered(config: RunConfig) -> bool:
    """Nobody is forgotten: who is may begin anew anywhere, with what is stored already."""
    default = RunConfig()
    return (config.max_producers, config.producer_expiry_ms) == (
        default.max_producers,
        default.producer_expiry_ms,
    )


def _ignore(_: Any) -> None:
    """Nobody waits for it."""
