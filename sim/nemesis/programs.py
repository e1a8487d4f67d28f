"""The programs of the nemesis, as a table: what each does, and which fault of the catalogue it is.

A program is a function of a `FaultContext`: it does something now and undoes it later. Ids are
those of docs/reference/faults.md. Every program is within the fault budget: after it, everything
synced is still there, so it excuses no lost acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from ottla.broker.controller.client import ControlRequest, ControlResponse
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck
from ottla.broker.node.handover import hand_over
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    InstallSnapshot,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.types import NodeId
from ottla.sim.history.history import CONTROLLER_PARTITION
from ottla.sim.nemesis.echoes import repeat_late
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.log_starts import delete_records, overtaken
from ottla.sim.nemesis.machines import (
    bit_rot,
    drift,
    jump_clock,
    lost_disk,
    stop,
    upset_wall_clock,
)
from ottla.sim.nemesis.replaced import held_truncation, lose_decision
from ottla.sim.nemesis.returns import lead_again
from ottla.sim.nemesis.strays import die_asking, late_requests, stray_request
from ottla.sim.nemesis.timed_faults import (
    acknowledges,
    crash_leader,
    crash_loop,
    decides,
    die_at,
    figure_8,
    holds_records,
    late_leader,
    late_sync,
    rivals,
    stuck_disk,
    torn_write,
    two_leaders,
    win_and_go,
)
from ottla.sim.world.points import Trap

KINDS = (
    *(AppendEntries, AppendReply, RequestVote, VoteReply, Beat, BeatAck, ControlResponse),
    *(ControlRequest, InstallSnapshot, SnapshotReply, TimeoutNow),
)
"""The messages that `lose-kind` chooses from: all kinds."""


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table."""

    name: str
    faults: str
    """Ids of the catalogue."""
    run: Callable[[FaultContext], None]
    nodes: int = 1
    """The fewest nodes with which it makes sense."""


# ---- processes


def _kill(hand: FaultContext) -> None:
    """One time in three the node is back at once, before the others miss it."""
    node = hand.somebody()
    hand.world.crash(node)
    at_once = hand.stream.below(3) == 1
    election = hand.world.config.election_timeout_ms * MS
    hand.revive(node, election // 10 if at_once else hand.span())


def _power(hand: FaultContext) -> None:
    node = hand.somebody()
    hand.world.crash(node, power=True)
    hand.revive(node, hand.span())


def _blackout(hand: FaultContext) -> None:
    for node in hand.world.nodes:
        hand.world.crash(node, power=True)
        hand.revive(node, hand.span())


def _freeze(hand: FaultContext) -> None:
    node = hand.somebody()
    hand.later(hand.span(), hand.freeze(node))


def _slow_node(hand: FaultContext) -> None:
    node = hand.somebody()
    life = hand.world.lives.get(node)
    if life is not None:
        clockwork = life.clockwork
        clockwork.slowness = hand.stream.pick((10, 50, 500))
        hand.world.fault(f"{clockwork.slowness} times slower", node)
        as_ever = partial(setattr, clockwork, "slowness", 1)
        hand.later(hand.span(), hand.hold(("slow", clockwork), as_ever))


# ---- links


def _isolate(hand: FaultContext) -> None:
    node = hand.somebody()
    hand.world.fault("isolated", node)
    hand.cut([name for name in hand.world.network.links if node in name], hand.span())


def _deaf(hand: FaultContext) -> None:
    """In some cases it lasts so long that only the end of the run heals it, or nothing does."""
    node = hand.somebody()
    span = hand.span() * (16 if hand.stream.below(2) else 1)
    hand.world.fault("hears nobody", node)
    hand.cut([name for name in hand.world.network.links if name[1] == node], span)


def _mute(hand: FaultContext) -> None:
    node = hand.somebody()
    hand.world.fault("heard by nobody", node)
    hand.cut([name for name in hand.world.network.links if name[0] == node], hand.span())


def _one_link(hand: FaultContext) -> None:
    name = hand.stream.pick(tuple(hand.world.network.links))
    hand.world.fault(f"link {name[0]}>{name[1]} cut")
    hand.cut([name], hand.span())


def _bridge(hand: FaultContext) -> None:
    """Two sides that meet in only one node."""
    node = hand.node()
    others = [each for each in hand.world.nodes if each != node]
    half = len(others) // 2
    left, right = others[:half], others[half:]
    hand.world.fault(f"{left} and {right} meet in this node only", node)
    hand.cut(
        [(a, b) for a in left for b in right] + [(b, a) for a in left for b in right], hand.span()
    )


def _halves(hand: FaultContext) -> None:
    nodes = list(hand.world.nodes)
    turn = hand.stream.below(len(nodes))
    nodes = nodes[turn:] + nodes[:turn]
    left, right = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
    hand.world.fault(f"parted: {left} and {right}")
    hand.cut(
        [(a, b) for a in left for b in right] + [(b, a) for a in left for b in right], hand.span()
    )


def _ring(hand: FaultContext) -> None:
    nodes = hand.world.nodes
    near = {frozenset(pair) for pair in pairwise((*nodes, nodes[0]))}
    hand.world.fault("each hears its two neighbours only")
    far = [name for name in hand.world.network.links if frozenset(name) not in near]
    hand.cut(far, hand.span())


def _swizzle(hand: FaultContext) -> None:
    """Links stop one after the other and start again in another order (sim-N6)."""
    network, stream = hand.world.network, hand.stream
    names = list(network.links)
    stopped = [names.pop(stream.below(len(names))) for _ in range(1 + stream.below(len(names)))]
    hand.world.fault(f"clogged one by one: {stopped}")
    at, begins = 0, {}
    for name in stopped:
        begins[name] = at
        at += 1 + stream.below(100) * MS
    at += hand.span()
    while stopped:
        name = stopped.pop(stream.below(len(stopped)))
        hand.later(begins[name], hand.clog, name, at - begins[name])
        at += 1 + stream.below(100) * MS


def _burst(hand: FaultContext) -> None:
    links = hand.world.network.links
    node = hand.somebody()
    rate = hand.stream.pick((50_000, 200_000, 500_000))
    hand.world.fault(f"loses {rate // 10_000} % of its messages", node)
    for name, link in links.items():
        if node in name:
            link.loss_ppm = max(rate, link.loss_ppm)
            # Back to its setting, not to what another burst has made of it.
            as_told = partial(setattr, link, "loss_ppm", hand.world.config.loss_ppm)
            hand.later(hand.span(), hand.hold(("loss", name), as_told))


def _slow_link(hand: FaultContext) -> None:
    """One direction takes much longer than the others for a while."""
    name = hand.stream.pick(tuple(hand.world.network.links))
    link, times = hand.world.network.links[name], hand.stream.pick((5, 20, 100))
    hand.world.fault(f"link {name[0]}>{name[1]} is {times} times slower")
    link.spans = tuple(span * times for span in link.plain)
    as_ever = partial(setattr, link, "spans", link.plain)
    hand.later(hand.span(), hand.hold(("spans", name), as_ever))


def _lose_kind(hand: FaultContext) -> None:
    """All messages of one kind are lost, from one node or from all."""
    kind, network = hand.stream.pick(KINDS), hand.world.network
    node = hand.somebody() if hand.stream.below(2) else None
    hand.world.fault(f"every {kind.__name__} is lost", node)

    def passes(sender: NodeId, _: NodeId, message: Any) -> bool:
        return not isinstance(message, kind) or node not in {None, sender}

    def again() -> None:
        if passes in network.filters:
            network.filters.remove(passes)

    network.filters.append(passes)
    hand.later(hand.span(), again)


def _controller(hand: FaultContext) -> None:
    """The controller, which gives out producer ids, is cut off."""
    life = hand.world.controller()
    if life is not None:
        hand.world.fault("isolated, as the controller", life.node_id)
        links = [name for name in hand.world.network.links if life.node_id in name]
        hand.cut(links, hand.span())


# ---- clients


def _cut_clients(hand: FaultContext) -> None:
    """Clients do not reach the leader (or any node); the nodes reach each other."""
    world = hand.world
    everybody = hand.stream.below(4) == 1
    nodes = world.nodes if everybody else (hand.leader(),)
    world.fault(f"clients do not reach {list(nodes)}")
    world.clients.cut(nodes)
    hand.later(hand.span(), world.clients.let, nodes)


def _reset_clients(hand: FaultContext) -> None:
    node = hand.leader()
    hand.world.fault("drops its clients", node)
    for connection in tuple(hand.world.clients.connections):
        if connection.node == node and connection.open:
            connection.reset("reset")


def _lose_answer(hand: FaultContext) -> None:
    """The next answers are written and never read (sim-N7: response lost after commit)."""
    world = hand.world

    def lose(node: NodeId) -> None:
        world.fault("answer lost", node)
        for connection in tuple(world.clients.connections):
            if connection.node == node and connection.open:
                world.kernel.after(0, connection.reset, "reset")

    trap = world.points.set(Trap("answered", lose, count=1 + hand.stream.below(4)))
    hand.later(hand.span(), world.points.lift, trap)


# ---- disks


def _stall(hand: FaultContext) -> None:
    node, span = hand.somebody(), hand.span()
    hand.world.fault(f"its disk stalls for {span // MS} ms", node)
    hand.world.disks[node].stall(span)


def _disk_error(hand: FaultContext) -> None:
    node = hand.somebody()
    hand.world.fault("its next sync fails", node)
    hand.world.disks[node].fail("input/output error")
    hand.revive(node, 4 * hand.span())


# ---- what administrators do


def _transfer(hand: FaultContext) -> None:
    world = hand.world
    life = world.leader(hand.stream.below(world.config.partitions))
    if life is None or life.frozen:
        return
    to = hand.follower()
    for replica in life.view.replicas():
        if replica.leads and to in replica.voters:
            partition = world.observer.partitions.get(replica.group)
            led = (
                "the controller" if partition == CONTROLLER_PARTITION else f"partition {partition}"
            )
            if partition is None:
                led = "a partition of another topic"
            world.fault(f"hands {led} to node {to}", life.node_id)
            life.enter(hand_over, life.node, replica.group, to)
            return


PROGRAMS: tuple[Program, ...] = (
    Program("kill", "P1", _kill),
    Program("power", "P1 D2 D3", _power),
    Program("blackout", "P1 D2", _blackout),
    Program("crash-loop", "P1 T", crash_loop, 3),
    Program("freeze", "P2", _freeze),
    Program("slow-node", "P3", _slow_node),
    Program("isolate", "N5", _isolate, 2),
    Program("deaf", "N5", _deaf, 2),
    Program("mute", "N5", _mute, 2),
    Program("one-link", "N5", _one_link, 2),
    Program("bridge", "N5", _bridge, 3),
    Program("halves", "N5", _halves, 2),
    Program("ring", "N5", _ring, 4),
    Program("swizzle", "N6", _swizzle, 2),
    Program("slow-link", "N1 N6", _slow_link, 2),
    Program("lose-kind", "N2", _lose_kind, 2),
    Program("controller", "N5 L3", _controller, 2),
    Program("burst", "N2", _burst, 2),
    Program("cut-clients", "N5 N8", _cut_clients),
    Program("reset-clients", "N7", _reset_clients),
    Program("lose-answer", "N7 T", _lose_answer),
    Program("stall", "D1", _stall),
    Program("disk-error", "D4", _disk_error, 3),
    Program("drift", "C1 C2", drift),
    Program("step-wall-clock", "C1", upset_wall_clock),
    Program("jump-clock", "C1 C2", jump_clock),
    Program("stop", "P1", stop),
    Program("lost-disk", "D6", lost_disk, 3),
    Program("bit-rot", "D4", bit_rot, 3),
    Program("transfer", "A1", _transfer, 2),
    Program("delete-records", "A2", delete_records),
    Program("die-voted", "T", die_at("voted", "its vote written", before=crash_leader), 2),
    Program("die-appended", "T D2", die_at("appended", "records written", holds_records)),
    Program("die-synced", "T", die_at("synced", "a sync that nobody heard of")),
    Program("die-acknowledging", "T", die_at("sent", "an acknowledgement sent", acknowledges), 2),
    Program("die-deciding", "T L3", die_at("sent", "a decision sent", decides), 2),
    Program("repeat-late", "N3 N4 T", repeat_late, 2),
    Program("lead-again", "A1 N5 T", lead_again, 2),
    Program("die-answering", "T N7", die_at("answer", "an answer on its lips")),
    Program("win-and-go", "T", win_and_go, 3),
    Program("rivals", "C2 T", rivals, 3),
    Program("figure-8", "N5 D1 T", figure_8, 3),
    Program("stuck-disk", "D1 N5", stuck_disk, 3),
    Program("late-sync", "D1 N5 T", late_sync, 3),
    Program("late-leader", "N6 P2", late_leader, 2),
    Program("two-leaders", "P2 N5 N8", two_leaders, 3),
    Program("torn-write", "D3 T", torn_write, 2),
    Program("late-requests", "N1 N7", late_requests),
    Program("stray-request", "L1", stray_request),
    Program("overtaken", "A2 D5 T", overtaken, 3),
    Program("held-truncation", "D1 D2 N5 T", held_truncation, 3),
    Program("lose-decision", "A1 N5 T", lose_decision, 3),
    Program("die-asking", "L1 T", die_asking),
)
