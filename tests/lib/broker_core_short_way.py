"""What carries messages in the world of `Replica`s, and the short way of a follower's append.

The short way is that of `ottla.broker.driver.fast_append`, the sender the runner's own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.driver.hosted import unheard
from ottla.broker.driver.reading import Reading
from ottla.broker.driver.sender import MessageSender
from ottla.broker.turn.effects import Effects
from ottla.raft.messages import AppendEntries, Message

if TYPE_CHECKING:
    from broker_core_world import Life


def sender_of(life: Life) -> MessageSender:
    """What fills in and sends for a life; what it reads back waits for the world's kernel."""
    later = partial(life.world.kernel.after, 0)
    reading = Reading(life.store, later=later, submit=unheard, broken=unheard)
    return MessageSender(
        life.node,
        life.store,
        life.world,
        reading=reading,
        term_of=lambda _: life.replica.core.term,
    )


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
