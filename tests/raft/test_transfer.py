"""A successor that fails on its way to office: for how long nobody takes a write (thesis 3.10).

As long as the old leader is not deposed, an election timeout. One that deposes it and is gone then
costs an election, as a leader that dies, and not more: each fault strikes at each step of the way.
A disk that hung cost 3 timeouts, for the successor told of a term that it could not stand in; one
that heard nothing cost 3, for it asked again and again for votes that it had been given.
"""

import pytest

from ottla.raft.core import RaftCore
from raft_world import ELECTION, World

OLD, THIRD, NEXT = 1, 2, 3
STEP, BEAT = 20, 100
SLACK = 2 * BEAT
"""Rounds, and the time between two looks."""
SHARES = (0, 2)


class Slow:
    """One of the waits that a member may draw."""

    def __init__(self, share: int) -> None:
        self.share = share

    def randrange(self, stop: int) -> int:
        return stop * self.share // 4


def links(*pairs: tuple[int, int]):
    return lambda world, _: world.cut.update(pairs)


def crash(world: World, _: set[int]) -> None:
    world.members[NEXT].crash()


def crash_when_written(world: World, _: set[int]) -> None:
    member = world.members[NEXT]
    while member.writes:
        member.finish_write(tell=False)
    member.crash()


def restart(world: World, hung: set[int]) -> None:
    crash_when_written(world, hung)
    world.members[NEXT].restart()


def pause(world: World, _: set[int]) -> None:
    world.members[NEXT].paused = True


SILENT = {
    "paused": pause,
    "isolated": links((NEXT, OLD), (NEXT, THIRD), (OLD, NEXT), (THIRD, NEXT)),
    "not heard": links((NEXT, OLD), (NEXT, THIRD)),
    "hears nobody": links((OLD, NEXT), (THIRD, NEXT)),
    "dead": crash,
    "dead, its vote written": crash_when_written,
    "restarted, its vote written": restart,
}
HARMLESS = {
    "its disk hangs": lambda _, hung: hung.add(NEXT),
    "does not hear the leader": links((OLD, NEXT)),
    "is not heard by the leader": links((NEXT, OLD)),
    "does not hear the third": links((THIRD, NEXT)),
    "is not heard by the third": links((NEXT, THIRD)),
}


def leads(core: RaftCore) -> bool:
    return core.term_start is not None


class Story:
    """A leader in the midst of writes that hands over; a fault strikes `after` so many steps."""

    def __init__(self, share: int) -> None:
        self.world = World(3, lambda node: Slow((share + node) % 4))
        self.world.elect(OLD)
        self.hung: set[int] = set()
        self.committed, self.since, self.longest = 0, self.world.now, 0
        for _ in range(20):
            self.step()

    def step(self) -> None:
        world = self.world
        world.advance(STEP)
        if world.now % BEAT == 0:
            world.beat()
        for member in world.awake:
            if member.node not in self.hung and member.writes:
                member.finish_together(len(member.writes))
                member.take()
        flying, world.flying = world.flying, []
        for message in flying:
            world.deliver(message)
        for member in world.awake:
            if leads(member.core):
                world.propose(member.node, b"x")
        self.look()

    def look(self) -> None:
        now, committed = self.world.now, max(each.core.commit for each in self.world.awake)
        self.longest = max(self.longest, now - self.since)
        if committed > self.committed:
            self.committed, self.since = committed, now

    def play(self, fault, after: int) -> bool:
        """Whether it struck before the successor was in office."""
        assert self.world[OLD].transfer(NEXT, self.world.now)
        self.world.members[OLD].take()
        for _ in range(after):
            self.step()
        if leads(self.world[NEXT]):
            return False
        fault(self.world, self.hung)
        for _ in range(3 * ELECTION // STEP):
            self.step()
        return True


def played(fault):
    """Stories of a fault at every step before the successor is in office."""
    for share in SHARES:
        after, struck = 0, True
        while struck:
            story = Story(share)
            struck = story.play(fault, after)
            if struck:
                yield story
            after += 1
        assert after > 2, "or nothing was shown"


@pytest.mark.parametrize("fault", HARMLESS.values(), ids=HARMLESS)
def test_whose_faults_depose_nobody_costs_an_election_timeout(fault):
    for story in played(fault):
        assert story.longest <= ELECTION + SLACK


@pytest.mark.parametrize("fault", SILENT.values(), ids=SILENT)
def test_who_is_gone_costs_an_election_timeout_or_an_election(fault):
    for story in played(fault):
        deposed = not leads(story.world[OLD]) or story.world[OLD].term > 1
        assert story.longest <= (2 if deposed else 1) * ELECTION + SLACK
