"""What a script may do to nodes, disks and links, and at points in the middle of a turn.

One method per command; `script.py` has the language and everything else. A command behind `at`
runs inside the node's turn: what ends the node there ends the turn, and nothing behind it happens.
Messages are told from each other by their class, and only those of the topic count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.raft.describe import describe_message
from ottla.raft.messages import VoteReply
from ottla.raft.types import EntryKind, Micros, NodeId
from ottla.sim.ending import MS
from ottla.sim.life import Life
from ottla.sim.network import LinkName
from ottla.sim.points import Trap
from ottla.sim.world import World

_KINDS = {"records": EntryKind.BATCH, "term": EntryKind.EMPTY, "command": EntryKind.COMMAND}


def span_of(text: str) -> Micros:
    """`200us`, `500ms` or `2s`."""
    number = int(text.rstrip("mus"))
    return number * (1 if text.endswith("us") else MS if text.endswith("ms") else 1000 * MS)


class Faults:
    """Part of a `Script`; see the module's text."""

    world: World

    def say(self, text: str) -> None:
        """Write a line of what happened."""
        raise NotImplementedError

    def run(self, words: list[str]) -> None:
        """Run one command."""
        raise NotImplementedError

    # ---- lives and disks

    def do_crash(self, *nodes: str) -> None:
        """Kill processes."""
        for node in nodes:
            self.world.crash(int(node))

    def do_power(self, *nodes: str) -> None:
        """Take the power away."""
        for node in nodes:
            self.world.crash(int(node), power=True)

    def do_start(self, *nodes: str) -> None:
        """New lives."""
        for node in nodes:
            self.world.start(int(node))

    def do_freeze(self, *nodes: str) -> None:
        """Stop processes."""
        for node in nodes:
            self.world.freeze(int(node))

    def do_thaw(self, *nodes: str) -> None:
        """Let them go on."""
        for node in nodes:
            self.world.thaw(int(node))

    def do_stall(self, node: str, span: str) -> None:
        """No sync of its disk ends within that span."""
        self.world.disks[int(node)].stalled_until = self.world.kernel.now + span_of(span)

    def do_disk_error(self, node: str) -> None:
        """The next sync fails."""
        self.world.disks[int(node)].fail("input/output error")

    # ---- links

    def _links(self, words: tuple[str, ...]) -> list[LinkName]:
        found: list[LinkName] = []
        for word in words:
            left, right = (int(each) for each in word.replace("-", ">").split(">"))
            found.append((left, right))
            if "-" in word:
                found.append((right, left))
        return found

    def do_cut(self, *links: str) -> None:
        """Lose what is sent there."""
        self.world.network.cut(self._links(links))

    def do_isolate(self, *nodes: str) -> None:
        """Cut nodes off from all others."""
        for node in nodes:
            self.world.network.isolate(int(node))

    def do_mend(self, *links: str) -> None:
        """Links work again."""
        if not links:
            self.world.network.mend(self.world.nodes)
        for name in self._links(links):
            self.world.network.links[name].cut = False

    def do_clog(self, *links: str) -> None:
        """Keep what is sent there."""
        for name in self._links(links):
            self.world.network.clog(name)

    def do_release(self, *links: str) -> None:
        """Let it go on."""
        for name in self._links(links):
            self.world.network.release(name)

    def do_drop(self, kind: str, link: str = "", count: str = "1") -> None:
        """The next messages of a kind are lost."""
        left = int(count)
        names = self._links((link,)) if link else None

        def passes(sender: NodeId, to: NodeId, message: Any) -> bool:
            nonlocal left
            if not left or type(message).__name__ != kind or self._foreign(message):
                return True
            if names is not None and (sender, to) not in names:
                return True
            left -= 1
            self.say(f"lost: {describe_message(message)}")
            return False

        self.world.network.filters.append(passes)

    def _foreign(self, message: Any) -> bool:
        """Of no partition of the topic."""
        seats = self.world.seats(0).values()
        return getattr(message, "group", None) not in {seat.group for seat in seats}

    # ---- points

    def do_at(self, point: str, node: str, *words: str) -> None:
        """Have a command run there."""
        kind = ""
        if not node.endswith(":"):
            kind, *rest = words
            words = tuple(rest)
            assert kind.endswith(":"), f"a colon before the command, not {kind}"
        where = int(node.rstrip(":"))

        def act(_: Life) -> None:
            self.run(list(words))

        fits = self._fits(kind.rstrip(":"))
        self.world.points.set(Trap(point, act, where, fits=fits))

    def _fits(self, kind: str) -> Callable[[Any], bool] | None:
        if not kind:
            return None
        if kind == "vote":
            return lambda detail: (
                isinstance(detail, VoteReply) and _is_vote(detail) and not self._foreign(detail)
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
            type(detail).__name__ == kind
            and (not hasattr(detail, "group") or not self._foreign(detail))
        )

    # ---- leadership

    def do_transfer(self, node: str, _to: str, successor: str) -> None:
        """Hand over."""
        life = self.world.lives[int(node)]
        seat = self.world.seats(0)[int(node)]

        def transfer() -> None:
            begun = seat.replica.core.transfer(int(successor), life.clockwork.now())
            self.say("= begun" if begun else "= refused")
            life.node.runner.wake(seat)

        life.enter(transfer)

    def do_campaign(self, node: str) -> None:
        """Its patience ends now."""
        life = self.world.lives[int(node)]
        seat = self.world.seats(0)[int(node)]

        def campaign() -> None:
            seat.replica.core.campaign(life.clockwork.now())
            life.node.runner.wake(seat)

        life.enter(campaign)


def _is_vote(reply: VoteReply) -> bool:
    return reply.granted and not reply.pre
