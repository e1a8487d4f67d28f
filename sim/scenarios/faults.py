"""What a script can do to nodes, their disks and clocks, and at points in the middle of a turn.

One method per command; `script.py` has the language and everything else. A command after `at` runs
inside the node's turn. If it ends the node, it ends the turn, and nothing after it happens.
Messages are identified by their class, and only those of the topic count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.node.handover import hand_over, stand_for_election
from ottla.log.store import Write
from ottla.raft.messages import VoteReply
from ottla.raft.types import NO_NODE, EntryKind, Micros, NodeId
from ottla.sim.ending.ending import MS
from ottla.sim.scenarios.stage import Stage, words_of
from ottla.sim.scenarios.wires import Wires, is_foreign
from ottla.sim.world.frames import name_of
from ottla.sim.world.points import Trap

_UNITS = (("us", 1), ("ms", MS), ("s", 1000 * MS), ("h", 3_600_000 * MS))
_KINDS = {"records": EntryKind.BATCH, "term": EntryKind.EMPTY, "command": EntryKind.COMMAND}


def span_of(text: str) -> Micros:
    """The span of a text such as `200us`, `500ms`, `2s` or `-1h`. Raises `ValueError`."""
    number = int(text.rstrip("mush"))
    for unit, span in _UNITS:
        if text.endswith(unit):
            return number * span
    raise ValueError(f"no span: {text}")


class Faults:
    """Part of a `Script`; see the module's docstring."""

    def __init__(self, stage: Stage):
        self._stage = stage

    # ---- lives and disks

    def do_crash(self, *nodes: str) -> None:
        """Kill processes."""
        for node in nodes:
            self._stage.world.crash(int(node))

    def do_power(self, *nodes: str) -> None:
        """Cut the power."""
        for node in nodes:
            self._stage.world.crash(int(node), power=True)

    def do_tear(self, *nodes: str) -> None:
        """Cut the power in the middle of a write."""
        for node in nodes:
            self._stage.world.crash(int(node), power=True, torn=True)

    def do_start(self, *nodes: str) -> None:
        """Start new lives."""
        for node in nodes:
            if not self._stage.world.start(int(node)):
                self._stage.say(f"{node}: refuses to start")

    def do_freeze(self, *nodes: str) -> None:
        """Stop processes."""
        for node in nodes:
            self._stage.world.freeze(int(node))

    def do_thaw(self, *nodes: str) -> None:
        """Let them go on."""
        for node in nodes:
            self._stage.world.thaw(int(node))

    def do_stall(self, node: str, span: str) -> None:
        """No sync of its disk ends within `span`."""
        self._stage.world.disks[int(node)].stall(span_of(span))

    def do_disk_error(self, node: str) -> None:
        """The next sync fails."""
        self._stage.world.disks[int(node)].fail("input/output error")

    def do_disk_lies(self, node: str) -> None:
        """Its syncs keep nothing from now on."""
        self._stage.world.lie(int(node))

    def do_copy_disk(self, node: str) -> None:
        """Make a backup."""
        self._stage.world.disks[int(node)].keep_copy()

    def do_restore_disk(self, node: str) -> None:
        """A dead node's disk is what the backup is."""
        self._stage.world.bring_back(int(node))

    def do_wipe_disk(self, node: str) -> None:
        """Erase a dead node's disk."""
        self._stage.world.wipe(int(node))

    def do_id_again(self) -> None:
        """Give out a producer id again that was given out before."""
        self._stage.world.producer_ids.again += 1

    def do_clock(self, node: str, how: str, span: str) -> None:
        """Its monotonic clock `jumps` ahead or `drifts` (per million), or its `wall` clock is
        off."""
        world, number = self._stage.world, int(node)
        if how == "jumps":
            world.jump(number, span_of(span))
        elif how == "drifts":
            world.clocks[number].drift(world.kernel.now, int(span))
        else:
            assert how == "wall", f"jumps, drifts or wall, not {how}"
            world.clocks[number].step_wall(world.kernel.now, span_of(span) // MS)

    # ---- points

    def do_at(self, point: str, node: str, *words: str) -> None:
        """Run a command at a point."""
        kind = ""
        if not node.endswith(":"):
            kind, *rest = words
            words = tuple(rest)
            assert kind.endswith(":"), f"a colon before the command, not {kind}"
        where = int(node.rstrip(":"))

        def act(_: NodeId) -> None:
            self._stage.run(list(words))

        fits = self._fits(kind.rstrip(":"))
        self._stage.world.points.set(Trap(point, act, where, fits=fits))

    def _foreign(self, detail: Any) -> bool:
        return is_foreign(self._stage.world, detail)

    def _fits(self, kind: str) -> Callable[[Any], bool] | None:
        if not kind:
            return None
        if kind == "snapshot":
            return lambda writes: any(
                each.snapshot is not None and not self._foreign(each) for each in writes
            )
        if kind == "vote":
            return lambda detail: any(
                _is_vote(each) and not self._foreign(each)
                for each in (detail if isinstance(detail, Sequence) else [detail])
            )
        wanted = _KINDS.get(kind)
        if wanted is not None:
            return lambda writes: any(
                entry.kind is wanted
                for write in writes
                if not self._foreign(write)
                for entry in write.entries
            )
        return lambda detail: (
            name_of(detail) == kind and (not hasattr(detail, "group") or not self._foreign(detail))
        )

    # ---- leadership

    def do_transfer(self, node: str, _to: str, successor: str) -> None:
        """Transfer the leadership."""
        life = self._stage.world.lives[int(node)]
        group = self._stage.world.replicas(0)[int(node)].group

        def transfer() -> None:
            begun = hand_over(life.node, group, int(successor))
            self._stage.say("= begun" if begun else "= refused")

        life.enter(transfer)

    def do_campaign(self, node: str) -> None:
        """Its election timeout ends now."""
        life = self._stage.world.lives[int(node)]
        life.enter(stand_for_election, life.node, self._stage.world.replicas(0)[int(node)].group)


def _is_vote(detail: object) -> bool:
    """Whether it is a granted vote, as a message or as a write."""
    if isinstance(detail, Write):
        return detail.hard_state is not None and detail.hard_state.vote != NO_NODE
    return isinstance(detail, VoteReply) and detail.granted and not detail.pre


COMMANDS = words_of(Wires, Faults)
"""The first words of these commands."""
