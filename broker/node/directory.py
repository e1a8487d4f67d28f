"""Where clients may turn: which nodes this one names to them, and who leads, as far as it knows.

A client believes what it is told: librdkafka forgets nodes that Metadata leaves out, with what is
in flight there, and asks the node again that it asked last. So a wrong answer of one node can keep
a client from a cluster that is well. What a node may rely on are the beats it hears (`Heartbeats`):

| this node | it names | so that |
|---|---|---|
| hears a majority | whom it hears, and whom these hear | a cut between two denies neither |
| and does not know all topics | these, without itself if half remain | others tell them more |
| hears none, leads what was asked for | all | its clients find it, and the others |
| hears none, leads nothing of it | whom it does not hear | they turn to who may lead by now |

In the last case it also names whom it hears that leads some of what was asked for. Whatever it
names has one node of every majority, so that whichever majority comes back, its clients know a way
there: who named only one other of three sent its clients where nobody was for ever (seed 78).

A replica behind a cut that hears no leader is elected by nobody (pre-vote), and its leader leads
all the same, or a new one does. It names that one all the same: who hears both passes on who leads
(`Beat.relayed`), and somebody does where each of the two hears a majority (sim-S68).
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
    """See the module's text. `within`: for how long a node counts as heard, in microseconds."""

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
        """The node takes part from now on: it could not hear the others sooner."""
        self._since = now

    def silent(self, now: Micros) -> Sequence[NodeId]:
        """The nodes on which nothing new should lie: not heard for half the time after which they
        are not named, an election timeout, after which those who follow a leader elect. None where
        they are half or more: who hears no majority was away itself."""
        if now - self._since < self._within:
            return ()
        alive, half = self._beats.alive, self._within // 2
        silent = [each for each in self._nodes if not alive(each, now, half)]
        return silent if 2 * len(silent) < len(self._nodes) else ()

    def named(self, asked: Iterable[GroupId], now: Micros, *, informed: bool) -> Sequence[NodeId]:
        """The nodes to name to a client that asked about these groups, in order; never none.
        `informed`: this node knows all topics."""
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
        """Who leads a group, from its replica here or from what other nodes said."""
        hosted = self._runner.hosted_replicas.get(group)
        if hosted is not None and hosted.replica.soft.role is Role.LEADER:
            in_sync = cast(Partition, hosted.replica.machine).state.in_sync
            return LeaderImage(self._node, hosted.replica.soft.term, in_sync.in_sync(now))
        known = self._known(group, hosted, now)
        return LeaderImage(known.leader, known.term, replicas)

    def _known(self, group: GroupId, hosted: HostedReplica | None, now: Micros) -> Claim:
        """The newest claim of those that this node heard itself, or by others. A replica that
        follows a leader knows better than an older claim; one that stands for election, maybe in a
        term that nobody else ever hears of, knows nothing."""
        claims = [self._beats.claim(group)]
        if hosted is not None and hosted.replica.soft.leader != NO_NODE:
            claims.append(Claim(hosted.replica.soft.term, hosted.replica.soft.leader))
        elif hosted is not None and not self._beats.hears(claims[0].leader):
            claims[0] = claims[0]._replace(leader=NO_NODE)
        relayed = self._beats.relayed(group, now, self._within)
        return max(claims if relayed is None else [*claims, relayed])

    def _is_heard_of(self, node: NodeId, now: Micros) -> bool:
        return self._beats.heard_of(node, now, self._within)
