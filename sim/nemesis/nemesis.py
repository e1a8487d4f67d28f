"""The nemesis: which programs take part in a run, and when each begins.

Once in a period it draws: nothing, or one of all programs there are, which then runs if it takes
part. A run's configuration may name the programs that do; otherwise the seed leaves some of them
out (swarm testing: a fault that is always there hides what only shows without it). Nothing is the
plain choice, so striking a choice off a tape strikes one fault out of the run.
"""

from __future__ import annotations

from ottla.broker.errors import ConfigError
from ottla.sim.delays import exponential
from ottla.sim.nemesis.hand import MS, Hand
from ottla.sim.nemesis.programs import BY_NAME, PROGRAMS, Program
from ottla.sim.world import World


class Nemesis:
    """See the module's text. Choices: streams `swarm faults` and `nemesis`."""

    def __init__(self, world: World):
        self._world = world
        self._hand = Hand(world, world.choices.stream("nemesis"))
        self._period = world.config.fault_every_ms * MS
        self.programs = self._taking_part()

    def _taking_part(self) -> frozenset[str]:
        config = self._world.config
        possible = [each.name for each in PROGRAMS if config.nodes >= each.nodes]
        if config.faults:
            return frozenset(named(each).name for each in config.faults.split())
        stream = self._world.choices.stream("swarm faults")
        return frozenset(each for each in possible if stream.below(2) == 0)

    def start(self) -> None:
        """Begin, if this run has faults at all: one chance in each period of its load."""
        world, period = self._world, self._period
        if period:
            for begin in range(0, world.config.load_ms * MS, period):
                world.kernel.after(begin, self._draw)

    def _draw(self) -> None:
        stream = self._hand.stream
        drawn = stream.below(len(PROGRAMS) + 1)
        if drawn:
            program = PROGRAMS[drawn - 1]
            if program.name in self.programs:
                self._hand.later(exponential(stream, self._period // 2), self._strike, program)

    def _strike(self, program: Program) -> None:
        self._world.fault(f"program {program.name}")
        program.run(self._hand)

    def stop(self) -> None:
        """Nothing is done or undone any more: `World.heal` mends what the run's end asks for."""
        self._hand.stopped = True


def named(name: str) -> Program:
    """The program of that name. Raises `ConfigError`."""
    found = BY_NAME.get(name)
    if found is None:
        raise ConfigError(f"no such fault: {name!r}; there are {', '.join(BY_NAME)}")
    return found
