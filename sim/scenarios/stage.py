"""`Stage`: what the parts of a script share: its world, its clients, and its transcript.

A part has commands: methods whose names are `do_` and the command's word. A command may call
another through the stage.
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
        """The world of the present act; not set before the first."""
        self.names = Names()
        self.script_clients: dict[str, Person] = {}

    def begin(self, world: World) -> None:
        """An act begins, in a new world, without clients."""
        self.world = world
        self.names = Names()
        self.script_clients = {}

    def say(self, text: str) -> None:
        """Add a line of what happened to the transcript."""
        self.out.append(f"  {text}")

    def enter(self, person: Person) -> None:
        """Add a client; what it reports goes to the transcript."""
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
