"""Random lives of a small group: all kinds of faults, drawn from one generator.

`Chaos` does one random thing per step and lets `raft_invariants.Watch` judge it. Then `recover`
ends all faults, and demands what a healthy group must have: a leader, progress, and equal logs.

Run by hand for as long as you like, from the checkout's root::

    PYTHONPATH=tests/lib python tests/lib/raft_chaos.py SECONDS [FIRST_SEED]

It prints seeds as it goes; a seed that fails fails again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random
from time import monotonic

from ottla.raft.messages import Message
from ottla.raft.roles import Role
from ottla.raft.types import NodeId
from raft_invariants import Watch
from raft_member import Member
from raft_world import ELECTION, World


class Chaos:
    """One group of 1, 3 or 5 and a generator; the same seed lives the same life."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        draw = self.random
        nodes = draw.choice((1, 3, 3, 3, 5, 5))
        watch = Watch()
        self.world = World(
            nodes,
            lambda node: Random(seed * 100 + node),
            watch,
            max_append_bytes=draw.choice((40, 150, 1 << 20)),
            max_inflight_bytes=draw.choice((100, 400, 1 << 20)),
            snapshot_chunk_bytes=draw.choice((4, 30)),
        )
        self.world.short = draw.random() < 0.5
        self.watch = watch
        self.proposed = 0
        steps = (
            ("deliver", 30),
            ("deliver_some", 6),
            ("turn", draw.choice((0, 4, 8))),
            ("drop", draw.choice((0, 1, 4))),
            ("duplicate", draw.choice((0, 1, 3))),
            ("write", 14),
            ("write_together", draw.choice((0, 6))),
            ("write_all", 3),
            ("advance", draw.choice((2, 4))),
            ("advance_one", draw.choice((0, 2))),
            ("beat", draw.choice((0, 2, 4))),
            ("beat_late", draw.choice((0, 1))),
            ("propose", draw.choice((2, 6))),
            ("crash", draw.choice((0, 1))),
            ("crash_after_write", draw.choice((0, 1))),
            ("restart", 3),
            ("pause", draw.choice((0, 1))),
            ("wake", 2),
            ("cut", draw.choice((0, 1))),
            ("isolate", draw.choice((0, 1))),
            ("heal", 1),
            ("campaign", draw.choice((0, 1))),
            ("transfer", draw.choice((0, 1))),
            ("step_down", draw.choice((0, 1))),
            ("barrier", 3),
            ("compact", draw.choice((0, 1, 5))),
            ("leave_behind", draw.choice((0, 0, 2))),
        )
        self.names = [name for name, _ in steps]
        self.weights = [weight for _, weight in steps]

    def step(self) -> None:
        """One random thing."""
        (name,) = self.random.choices(self.names, self.weights)
        getattr(self, name)()

    def _any(self, *, alive: bool = True, paused: bool = False) -> Member | None:
        members = [
            member
            for member in self.world.members.values()
            if (member.alive, member.paused) == (alive, paused)
        ]
        return self.random.choice(members) if members else None

    def _leaders(self) -> list[Member]:
        return [member for member in self.world.awake if member.core.term_start is not None]

    def deliver(self) -> None:
        """Some message arrives: mostly an old one, sometimes any."""
        flying = self.world.flying
        if flying:
            near = min(len(flying), 3 if self.random.random() < 0.8 else len(flying))
            self.world.deliver(flying.pop(self.random.randrange(near)))

    def deliver_some(self) -> None:
        """Several arrive."""
        for _ in range(8):
            self.deliver()

    def turn(self) -> None:
        """Several arrive at one member within one turn, in any order."""
        if self.world.flying:
            to = self.random.choice(self.world.flying).to
            arriving = [m for m in self.world.flying if m.to == to][: self.random.randrange(1, 8)]
            self.world.flying = [m for m in self.world.flying if not _among(m, arriving)]
            if self.random.random() < 0.3:
                self.random.shuffle(arriving)
            self.world.deliver_together(arriving)

    def drop(self) -> None:
        """A message is lost."""
        if self.world.flying:
            self.world.flying.pop(self.random.randrange(len(self.world.flying)))

    def duplicate(self) -> None:
        """A message will arrive twice, the second time much later."""
        if self.world.flying and len(self.world.flying) < 200:
            self.world.flying.append(self.random.choice(self.world.flying))

    def write(self) -> None:
        """A disk finishes a write."""
        member = self._any()
        if member and member.writes:
            member.finish_write()
            member.take()

    def write_together(self) -> None:
        """A disk finishes several writes at once."""
        member = self._any()
        if member and member.writes:
            member.finish_together(self.random.randrange(1, 6))
            member.take()

    def write_all(self) -> None:
        """All disks finish."""
        self.world.finish_writes()

    def advance(self) -> None:
        """Time passes: seldom so much that everyone gives up."""
        self.world.advance(self.random.choice((1, 50, 300, 700, ELECTION)))

    def advance_one(self) -> None:
        """Time passes, and one member notices before the others can."""
        self.world.now += self.random.choice((50, 300, 700, ELECTION))
        member = self._any()
        if member:
            member.core.advance(self.world.now)
            member.take()

    def beat(self) -> None:
        """Nodes vouch for each other."""
        self.world.beat()

    def beat_late(self) -> None:
        """Nodes vouch for each other, late."""
        self.world.beat(self.random.choice((1, 400, ELECTION)))

    def propose(self) -> None:
        """Whoever leads, or believes to, takes proposals."""
        for leader in self._leaders():
            payloads = []
            for _ in range(self.random.randrange(1, 4)):
                self.proposed += 1
                payloads.append(b"%d " % self.proposed + b"." * self.random.randrange(40))
            self.world.propose(leader.node, *payloads)

    def crash(self) -> None:
        """A member stops and loses what its disk had not finished."""
        member = self._any()
        if member:
            member.crash()

    def crash_after_write(self) -> None:
        """A member stops between a finished write and what was to be sent after it."""
        member = self._any()
        if member and member.writes:
            member.finish_write(tell=False)
            member.crash()

    def restart(self) -> None:
        """A stopped member comes back."""
        member = self._any(alive=False)
        if member:
            member.restart()

    def pause(self) -> None:
        """A member stops, and keeps what it is sent."""
        member = self._any()
        if member:
            member.paused = True

    def wake(self) -> None:
        """A member goes on where it stopped."""
        member = self._any(paused=True)
        if member:
            member.wake()

    def cut(self) -> None:
        """One direction between two members stops working."""
        a, b = self._two()
        if a != b:
            self.world.cut.add((a, b))

    def isolate(self) -> None:
        """One member is alone."""
        self.world.isolate(self._two()[0])

    def heal(self) -> None:
        """All links work."""
        self.world.heal()

    def _two(self) -> tuple[NodeId, NodeId]:
        nodes = list(self.world.members)
        return self.random.choice(nodes), self.random.choice(nodes)

    def campaign(self) -> None:
        """A member stands for election without need."""
        member = self._any()
        if member:
            self.world.campaign(member.node)

    def transfer(self) -> None:
        """A leader wants to hand over."""
        for leader in self._leaders():
            leader.core.transfer(self._two()[0], self.world.now)
            leader.take()

    def step_down(self) -> None:
        """A leader resigns."""
        for leader in self._leaders()[:1]:
            leader.core.step_down(self.world.now)
            leader.take()

    def barrier(self) -> None:
        """Someone asks for proof of leadership."""
        member = self._any()
        if member:
            self.world.barrier(member.node)

    def compact(self) -> None:
        """A member takes a snapshot somewhere in what it knows to be committed."""
        member = self._any()
        if member and member.core.commit >= member.core.first_index:
            index = self.random.randrange(member.core.first_index, member.core.commit + 1)
            member.compact(index, size=self.random.randrange(0, 60))
            member.take()

    def leave_behind(self) -> None:
        """A leader goes on without one of the others, and compacts what that one lacks."""
        leaders, alone = self._leaders(), self._two()[0]
        if leaders:
            self.world.isolate(alone)
            for _ in range(3):
                self.propose()
                self.deliver_some()
                self.world.finish_writes()
                self.deliver_some()
            core = leaders[-1].core
            if core.role is Role.LEADER and core.commit >= core.first_index:
                leaders[-1].compact(core.commit, size=self.random.randrange(0, 60))
                leaders[-1].take()
            self.world.heal()

    def recover(self) -> None:
        """Good times: all links, all members, all disks. The group must agree again, on all."""
        world = self.world
        world.heal()
        world.flying.clear()
        for member in world.members.values():
            if not member.alive:
                member.restart()
            elif member.paused:
                member.wake()
        last = None
        for _ in range(200):
            world.settle()
            leader = world.leader()
            if leader is not None and last is None:
                last = world.propose(leader.node, b"end")
            if last is not None and self._agreed(b"end"):
                return
            if leader is None or not any(
                b"end" in world.payloads(m.node, False) for m in world.alive
            ):
                last = None
            world.beat()
            world.advance(100)
        raise AssertionError(f"no agreement: {[m.core.commit for m in world.alive]}")

    def _agreed(self, payload: bytes) -> bool:
        cores = [member.core for member in self.world.members.values()]
        same = len({(core.commit, core.last_index, core.term) for core in cores}) == 1
        return same and all(
            self.world.payloads(core.config.node)[-1:] == [payload] for core in cores
        )


def _among(message: Message, messages: Sequence[Message]) -> bool:
    return any(message is each for each in messages)


def live(seed: int, steps: int = 400) -> Chaos:
    """One whole life."""
    chaos = Chaos(seed)
    for _ in range(steps):
        chaos.step()
    chaos.recover()
    return chaos


def main() -> None:
    """Live until the time is up; stop at the first broken promise."""
    ends_at = monotonic() + float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    first = seed
    committed = terms = 0
    while monotonic() < ends_at:
        try:
            chaos = live(seed)
        except BaseException:
            sys.stderr.write(f"seed {seed} failed\n")
            raise
        committed += chaos.watch.last_committed
        terms += len(chaos.watch.leaders)
        seed += 1
    sys.stdout.write(f"{seed - first} lives, {committed} entries committed, {terms} leaders\n")


if __name__ == "__main__":
    main()
