"""What all parts of a script stand on: its world, the people in it, and what is written down."""

from __future__ import annotations

from collections.abc import Callable

from ottla.sim.scenarios.script_clients import Names, Person
from ottla.sim.world.world import World


class Stage:
    """See the module's text. A part adds commands: methods called `do_` and their word."""

    world: World
    """Of the act that is played; `nodes` makes it."""
    names: Names

    def __init__(self) -> None:
        self.out: list[str] = []
        self.script_clients: dict[str, Person] = {}

    def say(self, text: str) -> None:
        """Write a line of what happened."""
        self.out.append(f"  {text}")

    def run(self, words: list[str]) -> None:
        """Run one command. Raises `ValueError` for one that there is not."""
        method: Callable[..., None] | None = getattr(self, f"do_{words[0].replace('-', '_')}", None)
        if method is None:
            raise ValueError(f"no such command: {words[0]}")
        method(*words[1:])

    def enter(self, person: Person) -> None:
        """Somebody more takes part; what is heard is written down."""
        person.say = self.say
        self.script_clients[person.name] = person
