"""Texts about wires: which wires are drawn, their titles, and sentences about their messages.

The end of a wire that is drawn always has a sentence. If no row of the history gives one, the
message itself gives it (`quiet`).
"""

from __future__ import annotations

from typing import Any

from ottla.broker.wire.answers import FetchAnswer, InitProducerIdAnswer, ProduceAnswer
from ottla.broker.wire.requests import InitProducerIdRequest, ProduceRequest
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.sim.nemesis.strays import STRANGER
from ottla.sim.recording.recorder import Step, Wire
from ottla.sim.world.frames import fetched, name_of, produced

APPEND, REPLY, VOTE, SNAPSHOT, PRODUCE, READ, BARRIER = (
    "append",
    "reply",
    "vote",
    "snapshot",
    "produce",
    "read",
    "barrier",
)
FAMILIES = {
    PRODUCE: "requests and answers of producers",
    READ: "records given to consumers",
    APPEND: "entries sent to followers",
    REPLY: "their answers",
    VOTE: "votes",
    SNAPSHOT: "snapshots",
    BARRIER: "leadership barriers",
}
"""Kinds of wires that are drawn, with their names."""


def family(wire: Wire) -> str | None:
    """The kind of a wire; None if it is not drawn."""
    message = wire.message
    if isinstance(message, AppendEntries):
        return APPEND if message.last_index > message.prev_index else None
    if isinstance(message, AppendReply):
        return REPLY
    if isinstance(message, Heartbeat | HeartbeatReply):
        return BARRIER if message.context else None
    if isinstance(message, FetchAnswer):
        return READ if fetched(message).batches else None
    return next((name for name, kinds in _FAMILIES.items() if isinstance(message, kinds)), None)


_FAMILIES: dict[str, tuple[type, ...]] = {
    VOTE: (RequestVote, VoteReply, TimeoutNow),
    SNAPSHOT: (InstallSnapshot, SnapshotReply),
    PRODUCE: (ProduceRequest, ProduceAnswer, InitProducerIdRequest, InitProducerIdAnswer),
}


def wire_label(wire: Wire) -> str:
    """The title of a wire: its message in a few words."""
    message = wire.message
    name = name_of(message)
    if isinstance(message, AppendEntries):
        return f"{name}, term {message.term}, {entries(message)}"
    if isinstance(message, AppendReply):
        outcome = f"holds up to {message.match}" if message.success else "refuses"
        return f"{name}, term {message.term}, {outcome}"
    if isinstance(message, VoteReply):
        return f"{name}, term {message.term}, {'granted' if message.granted else 'refused'}"
    if isinstance(message, ProduceAnswer):
        told = ", ".join(f"{each.error.name} at {each.base_offset}" for each in produced(message))
        return f"{name}: {told}"
    term = getattr(message, "term", None)
    return name if term is None else f"{name}, term {term}"


def entries(message: AppendEntries) -> str:
    """Which entries an append carries."""
    first, last = message.prev_index + 1, message.last_index
    return f"entry {first}" if first == last else f"entries {first}-{last}"


def quiet(step: Step) -> str | None:
    """A sentence about the message of a step, for a step that has no other sentence."""
    wire = step.wire
    if wire is None or family(wire) is None:
        return None
    message, who = wire.message, wire.origin[1]
    if step.what == "sent":
        if isinstance(message, AppendReply) and message.success:
            return f"tells {wire.goal[1]} that it holds {message.match}"
        return f"sends {name_of(message)} to {wire.goal[1]}"
    if isinstance(message, AppendEntries):
        return f"hears {entries(message)} from {who}"
    if isinstance(message, AppendReply):
        return f"hears that {who} {'holds' if message.success else 'refuses'} {message.match}"
    if isinstance(message, RequestVote):
        return f"is asked by {who} for {'a pre-vote' if message.pre else 'its vote'}"
    if isinstance(message, VoteReply):
        pre = "pre-vote" if message.pre else "vote"
        return f"{'has' if message.granted else 'is refused'} the {pre} of {who}"
    return _quiet_client(step, message, wire)


def _quiet_client(step: Step, message: Any, wire: Wire) -> str | None:
    who, to = wire.origin[1], wire.goal[1]
    if isinstance(message, InitProducerIdRequest) and step.what == "asked":
        return f"asks {to} for a producer id"
    if isinstance(message, InitProducerIdAnswer) and step.what == "heard":
        return f"has producer id {message.producer_id} from {who}"
    if isinstance(message, ProduceAnswer) and step.what == "heard":
        return f"hears {', '.join(each.error.name for each in produced(message))} from {who}"
    if step.what == "received":
        return f"hears {name_of(message)} from {who}"
    told = _QUIET.get(step.what)
    return (
        None
        if told is None
        else told.format(who=who, to=to, asks=client_name(who), told=client_name(to))
    )


def client_name(number: int) -> str:
    """The name of a client; the stray is not one of the run's own clients."""
    return "the stray" if number == STRANGER else f"client {number}"


_QUIET = {
    "asked": "sends a request to {to}",
    "arrived": "a request of {asks} arrives",
    "answered": "its answer to {told} leaves",
    "heard": "hears from {who}",
}
