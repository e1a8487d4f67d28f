"""Beats between two nodes by hand: node 1 leads, node 2 follows."""

from collections.abc import Callable, Sequence

from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, Heartbeats
from ottla.raft.messages import Heartbeat

INTERVAL = 50

Cores = Callable[[int], int | None]


def book(
    node: int,
    *,
    incarnation: int = 1,
    peers: Sequence[int] = (1, 2),
    now: int = 0,
    acks_ride: bool = False,
) -> Heartbeats:
    """A node's book, made at `now`; peers may name the node itself."""
    return Heartbeats(node, peers, INTERVAL, incarnation, now, acks_ride=acks_ride)


def always(term: int | None) -> Cores:
    """Cores that all stand in `term` (None: no replica anywhere)."""
    return lambda _group: term


TERM_0 = always(0)


def unasked(group: int) -> int | None:
    """Cores that nobody may look at."""
    raise AssertionError(f"asked for the term of group {group}")


def one_beat(sender: Heartbeats, now: int) -> Beat:
    """The only beat that is due."""
    (beat,) = sender.due(now)
    return beat


def exchange(
    leader: Heartbeats, follower: Heartbeats, now: int, cores: Cores = TERM_0
) -> tuple[Beat, BeatAck, list[Heartbeat]]:
    """One beat and its ack, nothing lost; returns the beat, the ack and the Heartbeats."""
    beat = one_beat(leader, now)
    ack, heartbeats = follower.on_beat(beat, now, cores)
    assert leader.on_ack(ack, now) == []
    return beat, ack, heartbeats


def following_pair() -> tuple[Heartbeats, Heartbeats]:
    """Node 1 leads group 7 in term 3; node 2 follows and has acknowledged it."""
    leader, follower = book(1), book(2)
    leader.leading(7, 3, (2,), 0)
    exchange(leader, follower, 0)
    return leader, follower
