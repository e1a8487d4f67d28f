"""Lone `Replica`s that a test hands their messages, one turn at a time.

`serving()` leads term 1 of a group of three with both followers streaming; `alone()` has just been
elected.
"""

from __future__ import annotations

from broker_core_partition import make_partition
from broker_core_world import NODES, SECOND
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.effects import Effects
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import ProduceTicket
from ottla.log.types import RecordBatch
from ottla.raft.config import RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import AppendReply, VoteReply
from ottla.raft.raft_log import bootstrap
from ottla.raft.types import HardState, Micros, NodeId

GROUP = 7
ELECTION = 100_000
NOW = 1_000_000


class FirstJitter:
    """The shortest election timeout, always."""

    def randrange(self, stop: int, /) -> int:
        """See the class."""
        return 0


class PartitionReplica(Replica):
    """A replica whose machine is known to be a partition."""

    machine: Partition


def config(node: NodeId = 1) -> RaftConfig:
    """Of one member of the group."""
    return RaftConfig(group=GROUP, node=node, election_timeout=ELECTION, retransmit=40_000)


def alone(voters: tuple[NodeId, ...] = NODES, queue_bytes: int = 1 << 20) -> PartitionReplica:
    """A replica that has just won the first election of a fresh group."""
    machine = make_partition(voters=voters, queue_bytes=queue_bytes)
    log, entries = bootstrap(voters)
    machine.appended(entries)
    core = RaftCore(config(), hard_state=HardState(), log=log, jitter=FirstJitter(), now=NOW)
    replica = PartitionReplica(GROUP, core, machine, entries)
    core.campaign(NOW)
    synced(replica, replica.turn(NOW))
    if len(voters) > 1:
        replica.submit(VoteReply(GROUP, 2, 1, 1, True))
    return replica


def synced(replica: Replica, effects: Effects) -> None:
    """The disk has taken this turn; what the replica says to itself then is in its inbox."""
    for message in effects.messages_after:
        if message.to == 1:
            replica.submit(message)
    if effects.persisted is not None:
        replica.synced(*effects.persisted, NOW)


def serving(voters: tuple[NodeId, ...] = NODES, queue_bytes: int = 1 << 20) -> PartitionReplica:
    """A leader whose first entry is committed, with both followers streaming."""
    replica = alone(voters, queue_bytes)
    synced(replica, replica.turn(NOW))
    for follower in (2, 3):
        replica.submit(AppendReply(GROUP, follower, 1, 1, True, 2))
    synced(replica, replica.turn(NOW))
    assert replica.machine.leadership.synced
    return replica


def produce(
    replica: Replica, data: RecordBatch, *, acks: int = -1, deadline: Micros = NOW + SECOND
) -> ProduceTicket:
    """A client's batch, in the inbox."""
    ticket = ProduceTicket(data, acks, lambda _: None, deadline)
    replica.submit(ticket)
    return ticket
