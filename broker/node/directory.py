"""`Directory`: which nodes this node names to clients, and who leads, as far as it knows.

A client believes such an answer. librdkafka drops nodes that Metadata leaves out, with all requests
in flight there, and asks the same node again. So a wrong answer of one node can keep a client away
from a working cluster. A node judges by the heartbeats that it hears (`Heartbeats`):

| this node hears | it names | because |
|---|---|---|
| a majority | the nodes that it hears, and those that these hear | a cut must hide neither side |
| and lacks topics | the same, without itself if half of all remain | other nodes know more |
| no majority, leads a group asked for | all nodes | its clients must find it and the others |
| no majority, leads none | the nodes that it does not hear | one of them may lead now |

In the last case it also names a node that it hears and that leads one of the groups. The named
nodes always include one of every majority, so that clients find any majority that comes back. (A
node that named only one of two others sent its clients to a dead node for ever: seed 78.)

A replica behind a cut that hears no leader cannot be elected (pre-vote), and some other node leads.
This node still learns who: a node that hears both passes the leader on (`Beat.relayed`). If each of
the two hears a majority, there is such a node (sim-S68).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.driver.runner import Runner
from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.heartbeats.messages import Claim
from ottla.broker.images import LeaderImage
from ottla.broker.partition.partition import Partition
from ottla.raft.roles import Role
from ottla.raft.types import NO_NODE, GroupId, Micros, NodeId


class Directory:
    """See the module's docstring. `within`: how long a node counts as heard, in microseconds."""

    def __init__(
        self,
        node: NodeId,
        nodes: Sequence[NodeId],
        runner: Runner,
        beats: Heartbeats,
        within: Micros,
    ):
        self._node = node
        self._nodes = nodes
        self._runner = runner
        self._beats = beats
        self._within = within
        self._since: Micros = 0

    def begin(self, now: Micros) -> None:
        """The node takes part from now on; before, it could not hear the others."""
        self._since = now

    def silent(self, now: Micros) -> Sequence[NodeId]:
        """The nodes on which no new partition should be placed, because they were silent for half
        of `within` (an election timeout, after which followers elect a new leader). Empty if half
        of the nodes or more are silent: then this node itself is cut off."""
        if now - self._since < self._within:
            return ()
        alive, half = self._beats.alive, self._within // 2
        silent = [each for each in self._nodes if not alive(each, now, half)]
        return silent if 2 * len(silent) < len(self._nodes) else ()

    def named(self, asked: Iterable[GroupId], now: Micros, *, informed: bool) -> Sequence[NodeId]:
        """The nodes to name to a client that asked about these groups, in order; at least one.
        `informed`: whether this node knows all topics."""
        within = self._within
        if now - self._since < within:
            return self._nodes
        heard = [each for each in self._nodes if self._beats.alive(each, now, within)]
        if 2 * len(heard) > len(self._nodes):
            named = [each for each in self._nodes if each in heard or self._is_heard_of(each, now)]
            if informed or self._node in self._leaders(asked, now):
                return named
            others = [each for each in named if each != self._node]
            return others if 2 * len(others) >= len(self._nodes) else named
        leaders = self._leaders(asked, now)
        if self._node in leaders:
            return self._nodes
        return [each for each in self._nodes if each not in heard or each in leaders]

    def _leaders(self, groups: Iterable[GroupId], now: Micros) -> list[NodeId]:
        return [self.leader(group, (), now).leader for group in groups]

    def leader(self, group: GroupId, replicas: tuple[NodeId, ...], now: Micros) -> LeaderImage:
        """The leader of a group, by this node's replica or by claims of other nodes."""
        hosted = self._runner.hosted_replicas.get(group)
        if hosted is not None and hosted.replica.soft.role is Role.LEADER:
            in_sync = cast(Partition, hosted.replica.machine).state.in_sync
            return LeaderImage(self._node, hosted.replica.soft.term, in_sync.in_sync(now))
        known = self._known(group, hosted, now)
        return LeaderImage(known.leader, known.term, replicas)

    def _known(self, group: GroupId, hosted: HostedReplica | None, now: Micros) -> Claim:
        """The newest claim that this node heard, directly or from others. If its own replica
        follows a leader, that counts as a claim of the replica's term. A candidate knows nothing:
        maybe nobody else ever hears of its term."""
        claims = [self._beats.claim(group)]
        if hosted is not None and hosted.replica.soft.leader != NO_NODE:
            claims.append(Claim(hosted.replica.soft.term, hosted.replica.soft.leader))
        elif hosted is not None and not self._beats.hears(claims[0].leader):
            claims[0] = claims[0]._replace(leader=NO_NODE)
        relayed = self._beats.relayed(group, now, self._within)
        return max(claims if relayed is None else [*claims, relayed])

    def _is_heard_of(self, node: NodeId, now: Micros) -> bool:
        return self._beats.heard_of(node, now, self._within)
