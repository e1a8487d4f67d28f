"""The short way of a follower's append (`ottla.broker.lane`) in the world of `Replica`s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.effects import Effects
from ottla.raft.messages import AppendEntries, Message

if TYPE_CHECKING:
    from broker_core_world import Life


def follow_at_once(life: Life, message: Message) -> Effects | None:
    """Take the turn where the message arrives, in half of the cases where that may be done.

    Returns what waits for the sync; None: nothing was done.
    """
    world = life.world
    if not isinstance(message, AppendEntries) or world.rng.choice((False, True)):
        return None
    reply = life.replica.follow(message, world.kernel.now)
    if reply is None:
        return None
    life.store.extend(message.group, message.prev_index + 1, message.entries)
    effects = Effects(message.group)
    effects.persisted = (message.last_index, message.term)
    effects.messages_after = (reply,)
    world.watch.on_turn(life)
    return effects
