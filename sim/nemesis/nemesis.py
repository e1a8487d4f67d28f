"""The nemesis: which programs take part in a run, and when each begins.

Once in a period it draws nothing, or a program. A run's configuration may name the programs that it
draws from. Otherwise it draws from all programs, those of plugins too, except some that the seed
leaves out for the whole run (swarm testing: a fault that is always there hides what shows only
without it). With `fault_kinds` the seed picks only a few programs, so that they come again and
again, and overlap. Nothing is the plain choice, so taking a choice off a tape takes one fault out
of the run. If `two-leaders` or `lead-again` take part, the sequential client begins them on its own
partition, too, and asks the deposed leader for what that lacks (`Nemesis.depose`).

A program that needs more nodes than a run has takes no part in it, even if it is named: if the seed
draws the number of nodes, the caller cannot know it. If both were set, that is refused
(`check_faults`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.broker.arguments.spelling import no_such
from ottla.broker.errors import ConfigError
from ottla.sim.chance.delays import exponential
from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.programs import PROGRAMS, Program
from ottla.sim.nemesis.returns import lead_again
from ottla.sim.nemesis.timed_faults import Led, two_leaders
from ottla.sim.plugins.own import OwnFault, added
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.swarm import free
from ottla.sim.world.world import World

_DEPOSING: Mapping[str, Callable[[FaultContext, Led], None]] = {
    "two-leaders": two_leaders,
    "lead-again": lead_again,
}
_BY_NAME = {each.name: each for each in (*PROGRAMS, *BEYOND)}


class Nemesis:
    """See the module's docstring. Choices: streams `swarm faults` and `nemesis`."""

    def __init__(self, world: World):
        self._world = world
        self._hand = FaultContext(world, world.choices.stream("nemesis"))
        self._period = world.config.fault_every_ms * MS
        named = programs_told(self._world.config)
        told = bool(named)
        self._drawn_from: Sequence[Program] = named or (*PROGRAMS, *own(self._world.config))
        nodes = self._world.config.nodes
        possible = [each for each in self._drawn_from if nodes >= each.nodes]
        kinds = self._world.config.fault_kinds
        if kinds and not told:
            possible = self._some(kinds, possible)
            self._drawn_from = possible
            told = True
        names = [each.name for each in possible]
        self.programs = frozenset(names if told else self._taking_part(names))

    def _some(self, kinds: int, possible: Sequence[Program]) -> list[Program]:
        """`kinds` of the programs. The seed draws only from these, so each comes again and
        again."""
        stream, left = self._world.choices.stream("swarm faults"), list(possible)
        return [left.pop(stream.below(len(left))) for _ in range(min(kinds, len(left)))]

    def _taking_part(self, possible: Sequence[str]) -> Iterator[str]:
        stream = self._world.choices.stream("swarm faults")
        return (each for each in possible if stream.below(2) == 0)

    def start(self) -> None:
        """Schedule one draw in each period of the load, if this run has faults."""
        world, period = self._world, self._period
        if period:
            for begin in range(0, world.config.load_ms * MS, period):
                world.kernel.after(begin, self._draw)

    def _draw(self) -> None:
        stream = self._hand.stream
        drawn = stream.below(len(self._drawn_from) + 1)
        if drawn:
            program = self._drawn_from[drawn - 1]
            if program.name in self.programs:
                self._hand.later(exponential(stream, self._period // 2), self._strike, program)

    def _strike(self, program: Program) -> None:
        self._world.fault(f"program {program.name}")
        program.run(self._hand)

    def depose(self) -> None:
        """Depose the leader of the sequential client's partition so that it does not know it, or
        leads again soon, if this run has such a fault."""
        led = self._world.other_leader()
        names = [each for each in _DEPOSING if each in self.programs]
        if self._period and led is not None and names:
            name = self._hand.stream.pick(names)
            self._world.fault(f"program {name}")
            _DEPOSING[name](self._hand, (led[0].node_id, led[1]))

    def stop(self) -> None:
        """Nothing is done or undone any more: `World.heal` mends what the end of the run needs."""
        self._hand.stopped = True


def own(config: RunConfig) -> list[Program]:
    """The programs of a run's plugins."""
    faults = added(config.plugins, OwnFault)
    return [Program(each.id, "", each.function, each.nodes) for each in faults]


def named(name: str, others: Sequence[Program] = ()) -> Program:
    """The program of that name, one of `others` perhaps. Raises `ConfigError`."""
    known = _BY_NAME | {each.name: each for each in others}
    found = known.get(name)
    if found is None:
        raise ConfigError(f"no such fault: {no_such(name, known, all_of_them=True)}")
    return found


def programs_told(config: RunConfig) -> tuple[Program, ...]:
    """The programs that the settings name. Raises `ConfigError`."""
    others = own(config)
    return tuple([named(each, others) for each in config.faults.split()])


def check_faults(config: RunConfig) -> None:
    """Raises `ConfigError` if the settings name programs that do not exist, or that need more nodes
    than the settings fix."""
    told = programs_told(config)
    few = [each for each in told if each.nodes > config.nodes]
    if few and not free(config, "nodes"):
        needs = ", ".join(f"{each.name} needs {each.nodes}" for each in few)
        raise ConfigError(
            f"nodes is {config.nodes}, but {needs}: set more, or leave that fault out"
        )
