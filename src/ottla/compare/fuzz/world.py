"""What a step is drawn from: the dice, the logs as the model has them, and what may be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.compare.fuzz.dice import Dice
from ottla.compare.fuzz.model import LogModel, ProducerId

PLACES = (("t", 0), ("t", 0), ("t", 1), ("u", 0))
"""Topics and partitions of a sequence; the first is used most."""
ABSENT = "x"
"""A name of no topic."""


class World:
    """See the module's docstring."""

    def __init__(self, dice: Dice, served: Mapping[str, tuple[int, int]]):
        self.dice = dice
        self._served = served
        self._logs = {place: LogModel() for place in PLACES}
        self.producers: Sequence[ProducerId] = ()
        self.stamped = False
        """Whether the broker's clock stamps the records of `u`."""
        self.knows_epochs = False
        """Whether a step with the name `leaders` has asked for the leader epochs."""

    def serves(self, api: str) -> bool:
        """Whether both brokers serve an API."""
        return api in self._served

    def place(self) -> tuple[str, int, LogModel]:
        """A partition."""
        name, partition = self.dice.pick(PLACES)
        return name, partition, self._logs[name, partition]

    def choose_version(self, keys: dict[str, Any], api: str, least: int = 0) -> None:
        """Now and then another version of a request than the usual one, from `least` on."""
        if self.dice.one_in(6):
            low, high = self._served[api]
            keys["version"] = self.dice.between(max(low, min(least, high)), high)

    def leader_epoch(self, name: str, partition: int) -> int | str:
        """A leader epoch as a reader names it: none, the present one or one of the future."""
        if self.dice.one_in(12):
            return 1_000_000
        if not self.knows_epochs or self.dice.one_in(2):
            return -1
        topic = ("t", "u").index(name)
        return f"$leaders.topics[{topic}].partitions[{partition}].leader_epoch"


def at(name: str, partition: int) -> dict[str, Any]:
    """The keys that name a partition; those of the first need none."""
    keys: dict[str, Any] = {} if name == "t" else {"topic": name}
    return {**keys, "partition": partition} if partition else keys
