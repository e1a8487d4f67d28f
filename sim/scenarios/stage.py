"""`Stage`: what the parts of a script share: its world, the people in it, and what is written down.

A part has commands: methods called `do_` and their word. One may ask the stage to run another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ottla.sim.scenarios.script_clients import Names, Person
from ottla.sim.world.world import World

Command: TypeAlias = Callable[..., None]
_PREFIX = "do_"


class Stage:
    """See the module's docstring. `run` runs a command of any part."""

    def __init__(self, run: Callable[[list[str]], None]) -> None:
        self.run = run
        self.out: list[str] = []
        self.world: World
        """Of the act that is played; none before the first."""
        self.names = Names()
        self.script_clients: dict[str, Person] = {}

    def begin(self, world: World) -> None:
        """An act begins, in a world of its own, with nobody in it."""
        self.world = world
        self.names = Names()
        self.script_clients = {}

    def say(self, text: str) -> None:
        """Write a line of what happened."""
        self.out.append(f"  {text}")

    def enter(self, person: Person) -> None:
        """Somebody more takes part; what is heard is written down."""
        person.say = self.say
        self.script_clients[person.name] = person


def commands_of(parts: Sequence[Any]) -> dict[str, Command]:
    """The commands of parts, by their words."""
    return {
        word_of(name): getattr(part, name)
        for part in parts
        for name in dir(part)
        if name.startswith(_PREFIX)
    }


def words_of(*kinds: type) -> tuple[str, ...]:
    """The words of the commands of parts."""
    return tuple(word_of(name) for kind in kinds for name in vars(kind) if name.startswith(_PREFIX))


def word_of(name: str) -> str:
    """`do_hang_up` is `hang-up`."""
    return name.removeprefix(_PREFIX).replace("_", "-")
