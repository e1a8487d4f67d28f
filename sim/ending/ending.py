"""How every run ends: all faults stop, and then everything must recover within a bound.

First only a *core* is healed: a random majority of the nodes, the links between them, and all
clients. Nothing new goes wrong; all else that is dead, cut or frozen stays so (sim-Z; TigerBeetle's
lesson: a fault that is always healed hides the livelock that it causes). Within the bound the core
must have a leader for each partition that has a majority of its replicas there, answer all requests
that clients wait for, agree on the partitions that it leads, and let them be read to the end. Then
the rest is healed too, all nodes must agree, and consumers must read to the end. One run in three
rests then: no leader may fall, and each leader must be able to hand over (`rest.py`).

One thing is healed everywhere at once, also outside the core: no message is lost by chance or by
its kind (`lose-kind`) any more. Otherwise a leader outside whose heartbeats pass, but whose entries
or their answers are lost, would lead for ever and commit nothing, because heartbeats alone keep it
(decision 0006). What the core must do then is not settled, so that livelock is not tested here.

What cannot recover must be explained (`unavoidable`): a partition without a majority in the core,
or led from outside; clients that may never learn its leader, or that gave up before they could be
served. docs/decisions/0042 says which seed needs which. Anything else that does not recover is
anomaly sim-I31. If a partition is excused, all others must recover anyway, and its own clients must
give up, if their timeout is within the bound. Clients without open requests prove nothing. So with
`probes`, which the swarm always draws, one more record is sent in each partition until it is
stored. That happens only after the core has settled without it, because a new record would also
move what was stuck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from ottla.raft.quorum import majority
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.base import Client
from ottla.sim.ending.lost_clients import lost
from ottla.sim.ending.probes import Asked, Probes
from ottla.sim.ending.rest import (
    hand_over_each,
    is_calm,
    let_calm_down,
    lose_a_follower,
    rest,
    rests,
)
from ottla.sim.ending.topics import agreed, note_topics
from ottla.sim.world.life import Life, awake
from ottla.sim.world.world import STEP, World

MS: Micros = 1_000
_FEW_IN_SYNC = 4
"""One core in so many may lack replicas that must be in sync for acks=all."""


class Waiting(Asked, Protocol):
    """The clients of a run, as its end uses them."""

    def start(self) -> None:
        """Start them."""

    def stop_faults(self) -> None:
        """No client dies or is replaced any more."""

    def idle(self) -> bool:
        """Whether every record that a producer was handed has its outcome."""

    def behind(self, partitions: Iterable[int]) -> Sequence[tuple[int, Client]]:
        """The consumers with each of these partitions that they have not read to the end."""


class NotLive(Exception):  # noqa: N818 - it names what it is
    """The cluster did not settle although nothing goes wrong any more (sim-I31)."""


class Ending:
    """See the module's docstring. Choices: stream `ending`."""

    def __init__(self, world: World, clients: Waiting):
        self.world = world
        self.clients = clients
        self.core: tuple[NodeId, ...] = ()
        self.unavoidable: list[str] = []
        """Why the core could not serve some partition."""

    def settle(self) -> None:
        """The first phase. Raises `NotLive`."""
        world = self.world
        self.core = self._choose_core()
        for node in self.core:
            world.history.add("phase", code="heal", node=node)
        healed = len(world.history.rows)
        self.clients.stop_faults()
        world.heal(self.core)
        served = [each for each in range(world.config.partitions) if self._has_quorum(each)]
        for partition in range(world.config.partitions):
            if partition not in served:
                world.history.add("phase", code="excused", partition=partition)
        self._await_leaders(served)
        # A request that is sent just before its batch expires must still be waited for.
        given_up = world.config.delivery_timeout_ms + world.config.request_timeout_ms
        bounded = given_up < world.config.bound_ms
        if bounded or not self.unavoidable:
            self._await_answers()
        self._agreed(served)
        if world.config.probes and world.config.producers:
            self._probe(served, healed)
            self._agreed(served)
        elif not self.unavoidable:
            self._note_fruitless(served, healed)
        self._read(served)
        self._note_led_outside(served)

    def finish(self) -> None:
        """The second phase. Raises `NotLive`."""
        world = self.world
        world.history.add("phase", code="settle")
        for node in world.able:
            if node not in self.core:
                world.history.add("phase", code="heal", node=node)
        world.heal(world.able)
        healed = world.kernel.now
        partitions = range(world.config.partitions)
        self._await(lambda: self._led(partitions), "leaders everywhere")
        self._await_answers()
        self._await(lambda: self._agree(world.able, partitions), "agreement of all")
        self._await(
            lambda: not self._held_back(partitions),
            "a high watermark at the end of each log",
            lambda: self._held_back(partitions),
        )
        self._await(lambda: not self.clients.behind(partitions), "consumers at the end")
        agreed_on = self._topics()
        self._all_at_once(agreed_on)
        if rests(world):
            let_calm_down(world, healed)
            self._all_at_once(agreed_on)
            if is_calm(world):
                # What was excused before might be refused again.
                asks = world.config.probes and world.config.producers and not self.unavoidable
                answered = self._await_answers if asks else None
                rest(world, self.clients, answered)
                self._all_at_once(agreed_on)
                if is_calm(world):
                    self._hand_over(answered)
                    self._all_at_once(agreed_on)
                if answered is not None and is_calm(world):
                    lose_a_follower(world, self.clients, answered)
                    self._all_at_once(agreed_on)
        note_topics(world)
        world.history.add("phase", code="done")

    def _hand_over(self, answered: Callable[[], None] | None) -> None:
        failed = hand_over_each(self.world, self.clients, answered)
        if failed:
            raise NotLive(f"transfers while nothing is wrong: in vain of {', '.join(failed)}")

    def _await_answers(self) -> None:
        self._await(self.clients.idle, "answers for all that clients wait for")

    def _all_at_once(self, agreed_on: bool) -> None:
        """A leader may have been deposed meanwhile, so all of this must hold at the same time."""
        world, partitions = self.world, range(self.world.config.partitions)
        self._await(
            lambda: (
                self._led(partitions)
                and self._agree(world.able, partitions)
                and not self.clients.behind(partitions)
                and (not agreed_on or agreed(world))
            ),
            "leaders, agreement and consumers at the end, all at once",
        )

    def _topics(self) -> bool:
        """Wait for the extra topics. Returns whether they recovered; sim-I48 judges what is so."""
        with suppress(NotLive):
            self._await(lambda: agreed(self.world), "topics as they were asked for")
            return True
        return False

    def _agreed(self, served: list[int]) -> None:
        self._await(
            lambda: self._settled(served) and self._agree(self.core, self._led_inside(served)),
            "agreement of the core",
        )

    def _read(self, served: list[int]) -> None:
        """Let consumers read what the core leads, except those that may never learn its leader."""
        try:
            self._await(
                lambda: self._settled(served) and not self._unread(served),
                "consumers at the end of what is led",
            )
        except NotLive:
            unread = self._unread(served)
            reasons = [lost(self.world, reader, of, self.core) for of, reader in unread]
            if not self._settled(served) or not all(reasons):
                raise
            for (partition, _), reason in zip(unread, reasons, strict=True):
                self.unavoidable.append(
                    f"whether partition {partition} can be read to its end was not checked: a "
                    f"consumer asks {reason}"
                )

    def _unread(self, served: list[int]) -> Sequence[tuple[int, Client]]:
        return self.clients.behind(self._led_inside(served))

    def _probe(self, asked: Sequence[int], healed: int) -> None:
        """Clients that have only given up would be idle, too: let a record be stored in each of
        these."""
        probes = Probes(self.world, self.clients, self.core, asked, healed)
        try:
            self._await(probes.stored, "a record stored in each partition")
        except NotLive:
            reasons = [self._unserved(each) or probes.excuse(each) for each in probes.left]
            if not all(reasons):
                raise
            for partition, reason in zip(probes.left, reasons, strict=True):
                told = (
                    f"whether partition {partition} still takes records was not checked: {reason}"
                )
                self.unavoidable.append(told)
                self.world.history.add("phase", code="excused", partition=partition)

    def _unserved(self, partition: int) -> str | None:
        """Why a partition has no leader, if it has none: when the core settled it had a leader that
        was not healed, and that leader has resigned since."""
        return None if self._leader(partition) else self._unknown(partition)

    def _settled(self, served: Iterable[int]) -> bool:
        """Whether each of these partitions has a leader, or cannot have one. A partition that
        cannot have a leader has none in the core either, and needs nothing."""
        return all(self._leader(each) or self._unknown(each) for each in served)

    def _note_fruitless(self, served: Sequence[int], healed: int) -> None:
        """Report partitions whose clients only gave up: that is allowed, but does not show that the
        core would have served them."""
        since = self.world.history.rows[healed:]
        stored = {row.partition for row in since if row.kind == "ok"}
        ended = Counter((row.partition, row.code) for row in since if row.kind in {"fail", "info"})
        for partition in served if self.world.config.acks != 0 else ():
            codes = [f"{n} {code}" for (of, code), n in ended.most_common() if of == partition]
            if codes and partition not in stored:
                self.unavoidable.append(
                    f"nothing was stored in partition {partition} after a majority was healed: its "
                    f"clients gave up the records they still had ({', '.join(codes)}); with --set "
                    "probes=true they keep asking until a record is stored"
                )

    def _note_led_outside(self, served: Sequence[int]) -> None:
        inside = self._led_inside(served)
        for partition in served:
            leader = self._leader(partition)
            if leader is not None and partition not in inside:
                self.unavoidable.append(
                    f"the end of the run did not check partition {partition}: node "
                    f"{leader.node_id}, which still leads it, was not healed"
                )

    def _choose_core(self) -> tuple[NodeId, ...]:
        """A random majority in which leaders can stay; the plain choice is all nodes."""
        stream, nodes = self.world.choices.stream("ending"), self.world.able
        core = list(nodes)
        spare = max(0, len(nodes) - majority(len(self.world.nodes)))
        leader = self.world.leader(0) if self.world.config.leader_left_out and spare else None
        if leader is not None and leader.node_id in core:
            core.remove(leader.node_id)
            spare -= 1
        for _ in range(stream.below(spare + 1)):
            core.pop(stream.below(len(core)))
        if self.world.config.min_insync > 1 and stream.below(_FEW_IN_SYNC):
            core = self._with_in_sync(core)
        return tuple(core if self.world.near(core) else nodes)

    def _with_in_sync(self, core: Sequence[NodeId]) -> list[NodeId]:
        """The core, and the replicas that it lacks and that must be in sync: without them acks=all
        is refused to the end, and nothing shows that the core would have served."""
        world, found = self.world, set(core)
        for placed in world.placement.values():
            inside = sum(each in found for each in placed)
            if inside >= majority(len(placed)):
                outside = [each for each in placed if each in world.able and each not in found]
                found.update(outside[: max(0, world.config.min_insync - inside)])
        return [each for each in world.able if each in found]

    def _leader(self, partition: int) -> Life | None:
        return awake(self.world.leader(partition))

    def _controller(self) -> Life | None:
        return awake(self.world.controller())

    def _has_quorum(self, partition: int) -> bool:
        """Whether the core holds a majority of a partition's replicas."""
        placed = self.world.placement[partition]
        inside = [each for each in placed if each in self.core]
        if len(inside) >= majority(len(placed)):
            return True
        self.unavoidable.append(
            f"the end of the run did not check partition {partition}: only nodes "
            f"{list(self.core)} were healed, and they hold no majority of its replicas, which are "
            f"on nodes {list(placed)}"
        )
        return False

    def _await_leaders(self, served: list[int]) -> None:
        """Wait until all of them have a leader; those that the core cannot know of are removed."""
        try:
            self._await(lambda: self._led(served), "leaders")
        except NotLive:
            unled = [each for each in served if self._leader(each) is None]
            reasons = [reason for each in unled if (reason := self._unknown(each))]
            if self._controller() is None or len(reasons) < len(unled):
                raise
            self.unavoidable.extend(reasons)
            for partition in unled:
                served.remove(partition)
                self.world.history.add("phase", code="excused", partition=partition)

    def _unknown(self, partition: int) -> str | None:
        """Why a partition cannot have a leader, if the core does not know of it. A node that comes
        back learns from the controller what it hosts. If the controller's leader is outside the
        core, it may be cut off from this node and heard by the others, which rightly do not depose
        it."""
        controller, placed = self._controller(), self.world.placement[partition]
        hosting = [each for each in self.world.replicas(partition) if each in self.core]
        outside = controller is not None and controller.node_id not in self.core
        if not outside or len(hosting) >= majority(len(placed)):
            return None
        inside = [each for each in placed if each in self.core]
        return (
            f"partition {partition} could not be led: of its replicas on the healed nodes, "
            f"{inside}, only {hosting} know that they have one; the others would hear it from the "
            "controller's leader, which was not healed"
        )

    def _led(self, partitions: Iterable[int]) -> bool:
        """Whether these partitions have a leader, and the controller's group has one; every core
        has a majority of that group."""
        return self._controller() is not None and all(
            self._leader(each) is not None for each in partitions
        )

    def _held_back(self, partitions: Iterable[int]) -> str:
        """Which partition is not shown to its end, although enough replicas are able to be in sync,
        and by whom; empty if there is none."""
        world = self.world
        for partition in partitions:
            placed, leader = world.placement[partition], self._leader(partition)
            enough = min(world.config.min_insync, len(placed))
            if leader is not None and sum(each in world.able for each in placed) >= enough:
                made = world.replicas(partition)[leader.node_id].of_partition()
                if made.high_watermark < made.log_end_offset:
                    shown = f"partition {partition} up to offset {made.high_watermark}"
                    in_sync = list(made.in_sync(world.kernel.now))
                    told = f"; node {leader.node_id} shows {shown} of {made.log_end_offset}"
                    return f"{told}, with nodes {in_sync} in sync of {enough} that must be"
        return ""

    def _led_inside(self, partitions: Sequence[int]) -> list[int]:
        """Partitions whose leader is in the core. A partition that is led from outside is served,
        too, over links that happen to work. But no follower can follow over a link that is cut, and
        pre-vote rightly keeps such a follower from deposing a leader that others hear."""
        leaders = ((each, self._leader(each)) for each in partitions)
        return [each for each, life in leaders if life is not None and life.node_id in self.core]

    def _agree(self, nodes: tuple[NodeId, ...], partitions: range | list[int]) -> bool:
        """Whether the replicas on these nodes hold and have applied the same. All replicas placed
        there count, if the controller's leader is one of these nodes: from it they learn what they
        host. Until there is one, it is unknown whether a node that came back lacks a replica (seed
        9088496)."""
        world, controller = self.world, self._controller()
        if controller is None:
            return False
        told = controller.node_id in nodes
        for partition in partitions:
            ends = []
            for node, replica in world.replicas(partition).items():
                if node in nodes:
                    made = replica.of_partition()
                    ends.append((made.applied, made.last_index))
            placed = sum(each in nodes for each in world.placement[partition])
            missing = told and len(ends) < placed
            if missing or any(end != (ends[0][1], ends[0][1]) for end in ends):
                return False
        return True

    def _await(
        self, condition: Callable[[], bool], what: str, state: Callable[[], str] = str
    ) -> None:
        """Raises `NotLive` if it takes too long; its text ends with `state`."""
        kernel = self.world.kernel
        bound = self.world.config.bound_ms
        end = kernel.now + bound * MS
        step = STEP
        while not condition():
            if kernel.now >= end:
                raise NotLive(f"{what}: not within {bound} ms{state()}")
            kernel.run(kernel.now + step)
            step = min(2 * step, 100 * STEP)
