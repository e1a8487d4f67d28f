"""Real clients in a scenario: the simulator's models, which follow their own rules.

A `Sender` sends what the script says. One of these is only *handed* records, and reacts to answers
as its library does: whether it sends again, in what order, in which epoch. A consumer reads from
the beginning as long as the scenario lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.mutants import mutated
from ottla.sim.clients.producer import Producer
from ottla.sim.clients.worker import surroundings_of
from ottla.sim.clients.workload import MODELS
from ottla.sim.scenarios.script_clients import Names, Person
from ottla.sim.scenarios.stage import Stage
from ottla.sim.world.world import ENDLESS, World

TOLD = ("send", "ok", "fail", "info", "error", "poll")


class Modelled(Person):
    """One of these clients, by its name."""

    def __init__(self, world: World, names: Names, name: str, number: int, model: str):
        super().__init__(world, names, name, number)
        around = surroundings_of(world, number)
        self.client: Producer | Consumer
        if model == "consumer":
            self.client = mutated(Consumer, world.mutants)(around, number, world.decoder)
        else:
            made = mutated(MODELS[model][0], world.mutants)
            self.client = made(around, number, world.config.acks)
        self._handed: dict[int, list[str]] = {}
        world.history.listen(TOLD, self._told)
        self.client.start()

    @property
    def waiting(self) -> bool:
        """Whether something has no outcome yet, or was not read yet."""
        if isinstance(self.client, Producer):
            return not self.client.at_rest()
        return any(
            self.client.position(each) < self.world.high_watermark(each, ENDLESS)
            for each in self.client.partitions
        )

    def hand(self, records: list[str], partition: int) -> None:
        """Hand records to it."""
        assert isinstance(self.client, Producer), f"{self.name} is no producer"
        for each in records:
            self._handed.setdefault(partition, []).append(each)
            self.client.hand(self.names.number(each), partition)

    def heard(self, node: int, what: Any, answer: Any) -> None:
        """Its client handles answers itself."""
        raise AssertionError(f"{self.name} asks nothing by itself")

    # ---- what it reports

    def _told(self, row: Any) -> None:
        if row.client == self.number and row.partition is not None:
            self.say(f"{self.name}: {_SAID[row.kind](self, row)}")

    def records(self, row: Any) -> str:
        """The records of the batch that begins with the row's op."""
        first, handed = self.names.name(row.op), self._handed[row.partition]
        count = 1 if row.seq_last is None else row.seq_last - row.seq + 1
        place = handed.index(first)
        return ",".join(handed[place : place + count])


def _sent(who: Modelled, row: Any) -> str:
    records = who.records(row)
    if row.seq is None:
        return f"sends {records} to {row.node}"
    who.names.sent(row.pid, row.epoch, row.seq, records.split(","))
    return f"sends {records} to {row.node}, epoch {row.epoch}, seq {row.seq}"


def _failed(who: Modelled, row: Any) -> str:
    return str(row.code) if row.op is None else f"{who.records(row)} {row.code}"


def _ended(who: Modelled, row: Any) -> str:
    how = "failed" if row.kind == "fail" else "given up, nobody knows"
    return f"{who.names.name(row.op)} {how} ({row.code})"


_SAID: dict[str, Callable[[Modelled, Any], str]] = {
    "send": _sent,
    "ok": lambda who, row: f"{who.names.name(row.op)} is at {row.off}",
    "fail": _ended,
    "info": _ended,
    "error": _failed,
    "poll": lambda who, row: f"reads {row.off} {who.names.name(row.value)}",
}


class Models:
    """Part of a `Script`: the commands about these clients."""

    def __init__(self, stage: Stage):
        self._stage = stage

    def do_clients(self, *pairs: str) -> None:
        """Name clients and their models."""
        for pair in pairs:
            name, model = pair.split("=")
            self._stage.enter(
                Modelled(
                    self._stage.world,
                    self._stage.names,
                    name,
                    len(self._stage.script_clients) + 1,
                    model,
                )
            )

    def do_hand(self, name: str, records: str, _partition: str = "", partition: str = "0") -> None:
        """Hand records to one of these clients."""
        client = self._stage.script_clients[name]
        assert isinstance(client, Modelled), f"{name} sends only what it is told to"
        client.hand(records.split(","), int(partition))
