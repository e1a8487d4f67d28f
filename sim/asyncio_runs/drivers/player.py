"""Plays a tape of turns to fresh replicas, under a driver of one's choice.

The player makes every call of the tape at its time, applies the results to stores of its own, and
compares them with those on the tape. Its time comes from the driver that it is given: the event
kernel, or the deterministic asyncio loop. Equal ends mean that a replica's log and producers follow
from what its turns drained, and not from anything of a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import ProduceTicket, WatchTicket
from ottla.log.memory_disk import MemoryDisk
from ottla.log.memory_store import MemoryStore
from ottla.log.store import Write
from ottla.raft.types import Entry, GroupId, LogIndex, NodeId, Snapshot, Term
from ottla.sim.asyncio_runs.drivers.turn_tape import (
    End,
    Line,
    Recorder,
    Short,
    Step,
    TurnTape,
    copied,
    end_of,
    short_of,
    taped,
)
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.run import run as run_program
from ottla.sim.chance.choices import Drawn
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.world import World

_SILENT = ("vouch", "step_down", "campaign")
"""Calls that return nothing."""


class DriversDifferError(Exception):
    """A call had another result than before; the text names the first one."""


class Player:
    """See the module's docstring. `config`: the configuration of the run's nodes."""

    def __init__(self, tape: TurnTape, config: ClusterConfig):
        self._tape = tape
        self._config = config
        self._replicas: dict[int, Replica] = {}
        self._stores: dict[tuple[NodeId, GroupId], MemoryStore] = {}
        self._known: dict[tuple[GroupId, LogIndex, Term], Entry] = {}
        """Every entry that was written, for lives that begin with it on their disk."""
        self._watches: dict[int, list[WatchTicket]] = {}
        """By life, in the order in which turns drained them."""
        self._plays: dict[str, Callable[..., Short]] = {
            "take_back": self._take_back,
            "turn": self._turn,
            "follow": self._follow,
            "close": self._close,
        }

    def take(self, step: Step) -> None:
        """Make one call. Raises `DriversDifferError`."""
        line = self._tape.lines[step.line]
        if step.call == "begin":
            self._begin(step.line, line)
            return
        play: Callable[..., Short] = self._plays.get(step.call, self._told)
        came = play(line, step, *step.arguments)
        if came != step.came:
            raise DriversDifferError(
                f"at {step.at} us node {line.node}, group {line.group}, {step.call}: "
                f"{step.came} on the tape, {came} here"
            )

    def ends(self) -> dict[tuple[NodeId, GroupId], End]:
        """The ends of the last lives. Raises `DriversDifferError` if the tape has others."""
        last = {(line.node, line.group): place for place, line in enumerate(self._tape.lines)}
        found = {
            where: end_of(self._replicas[place], list(self._stores[where].scan(where[1])))
            for where, place in sorted(last.items())
            if where in self._tape.ends
        }
        for (node, group), end in found.items():
            before = self._tape.ends[node, group]
            if end != before:
                raise DriversDifferError(
                    f"node {node}, group {group} ends with {_in_short(before)} on the tape, "
                    f"with {_in_short(end)} here"
                )
        return found

    # ---- lives

    def _begin(self, place: int, line: Line) -> None:
        store = self._stores[line.node, line.group] = MemoryStore(MemoryDisk())
        if line.hard_state is not None:
            store.append([self._held(line, line.snapshot)])
        factory = ReplicaFactory(
            line.node,
            self._config,
            store=store,
            counters=Counters(),
            jitter=_Played(line.drawn),
            limits=line.limits,
        )
        if line.topic is None:
            told = partial(_unheard, iter(line.unheard))
            machine = factory.make_controller(line.cluster_id, line.replicas, told)
            replica = factory.controller(machine, line.replicas, line.now, store.append)
        else:
            opening = factory.begin(line.topic, line.group, line.replicas, line.now)
            replica = factory.open(opening, line.now, store.append)
        self._replicas[place] = replica
        self._learn(line.group, list(store.scan(line.group)))

    def _held(self, line: Line, snapshot: Snapshot | None) -> Write:
        entries = [self._known[line.group, index, term] for index, term in line.kept]
        first = entries[0].index if entries else 0
        return Write(
            line.group,
            hard_state=line.hard_state,
            snapshot=snapshot,
            reset=snapshot is not None,
            first=first,
            entries=entries,
            compact_to=0,
        )

    def _write(self, line: Line, writes: Any) -> None:
        if writes:
            self._stores[line.node, line.group].append(writes)
            for write in writes:
                self._learn(line.group, write.entries)

    def _learn(self, group: GroupId, entries: Any) -> None:
        for entry in entries:
            self._known[group, entry.index, entry.term] = entry

    # ---- calls

    def _turn(self, line: Line, step: Step, now: int, drained: tuple[Any, ...]) -> Short:
        replica = self._replicas[step.line]
        for item in drained:
            twin = copied(item)
            if isinstance(twin, WatchTicket):
                self._watches.setdefault(step.line, []).append(twin)
            replica.submit(twin)
        effects = replica.turn(now)
        self._write(line, effects.writes)
        return short_of(effects)

    def _follow(self, line: Line, step: Step, message: Any, now: int) -> Short:
        reply = self._replicas[step.line].follow(message, now)
        first = message.prev_index + 1
        self._write(line, [Write(line.group, first=first, entries=message.entries)])
        return () if reply is None else (reply.match,)

    def _take_back(self, _: Line, step: Step, *numbers: int) -> Short:
        for number in numbers:
            self._watches[step.line][number].cancelled = True
        return ()

    def _told(self, _: Line, step: Step, *arguments: Any) -> Short:
        """A call whose effects are all inside the replica."""
        came = getattr(self._replicas[step.line], step.call)(*arguments)
        return () if came is None and step.call in _SILENT else (came,)

    def _close(self, _: Line, step: Step, now: int, waiting: tuple[Any, ...]) -> Short:
        replica = self._replicas[step.line]
        for item in waiting:
            replica.submit(copied(item))
        answers = replica.close(now)
        return tuple(int(each.error) for each in answers if isinstance(each, ProduceTicket))


def _unheard(told: Iterator[tuple[NodeId, ...]]) -> tuple[NodeId, ...]:
    """The next answer to a controller that asks which nodes are not heard of."""
    nodes = next(told, None)
    if nodes is None:
        raise DriversDifferError("a controller places more topics than on the tape")
    return nodes


class _Played:
    """The taped jitter of a line."""

    def __init__(self, drawn: list[int]):
        self._drawn = iter(drawn)

    def randrange(self, stop: int, /) -> int:
        """As `JitterSource.randrange`."""
        number = next(self._drawn, None)
        if number is None or number >= stop:
            raise DriversDifferError(f"{number} below {stop} for an election timeout")
        return number


def on_the_kernel(tape: TurnTape, config: ClusterConfig) -> dict[tuple[NodeId, GroupId], End]:
    """Play under the event kernel. Raises `DriversDifferError`."""
    player, kernel = Player(tape, config), Kernel()
    for step in tape.steps:
        kernel.at(step.at, player.take, step)
    kernel.run(tape.steps[-1].at)
    return player.ends()


def on_the_loop(tape: TurnTape, config: ClusterConfig) -> dict[tuple[NodeId, GroupId], End]:
    """Play under the deterministic loop. Raises `DriversDifferError`."""
    player = Player(tape, config)

    async def program(loop: DeterministicLoop) -> dict[tuple[NodeId, GroupId], End]:
        over = loop.create_future()

        def take(step: Step) -> None:
            try:
                player.take(step)
            except DriversDifferError as error:
                over.set_exception(error)

        def finish() -> None:
            if not over.done():
                over.set_result(None)

        for step in tape.steps:
            loop.call_at_micros(step.at, take, step)
        loop.call_at_micros(tape.steps[-1].at + 1, finish)
        await over
        return player.ends()

    return run_program(program).result


def _in_short(end: End) -> str:
    return f"{len(end.log)} entries, producers {end.producers:x}, watermark {end.high_watermark}"


def tape_of(seed: int, config: RunConfig) -> tuple[TurnTape, ClusterConfig]:
    """The turns of a run of the kernel, and the configuration of its nodes."""
    worlds: list[World] = []
    recorders: list[Recorder] = []

    def watch(world: World) -> None:
        worlds.append(world)
        recorders.append(Recorder(lambda: world.kernel.now))
        world.factory = taped(recorders[0])

    outcome = run_choices(Drawn(seed), config, watching=[watch])
    return recorders[0].finish(tuple(worlds[0].lives)), outcome.config.cluster_config()


def difference(seed: int, config: RunConfig) -> str | None:
    """Run a seed in the kernel, taped, and play the tape under both drivers. Returns what differs;
    None: nothing."""
    tape, told = tape_of(seed, config)
    try:
        on_the_kernel(tape, told)
        on_the_loop(tape, told)
    except DriversDifferError as error:
        return str(error)
    return None
