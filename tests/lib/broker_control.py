"""Commands and tickets for the controller, short enough to read in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker_machine import MachineDriver
from ottla.broker.config import ClusterConfig
from ottla.broker.controller.controller import Controller
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import Command, CreateTopic, Origin
from ottla.broker.turn.tickets import ControlTicket

CLUSTER_ID = "a-test-cluster"
NEVER = 10**15


def create(name: str, *, assignments: Any = None, **fields: Any) -> CreateTopic:
    """A topic to create; one partition on one node unless said otherwise."""
    if assignments is None:
        return CreateTopic(name, **{"partitions": 1, "replication_factor": 1, **fields})
    placed = tuple((partition, tuple(nodes)) for partition, nodes in assignments)
    return CreateTopic(name, assignments=placed, **fields)


def ticket(command: Command, deadline: int = NEVER, origin: Origin | None = None) -> ControlTicket:
    """A ticket for a command; nobody waits for it but the test."""
    return ControlTicket(command, lambda _: None, deadline, origin=origin)


class ControllerDriver(MachineDriver[Controller]):
    """A controller with a few words of its own."""

    def ask(self, command: Command, origin: Origin | None = None) -> ControlTicket:
        """Submit one command, let everything settle, return its ticket: it must be answered."""
        asked = ticket(command, origin=origin)
        self.submit(asked)
        self.settle()
        assert asked in self.answered(), f"no answer to {command}"
        return asked

    def decided(self, command: Command) -> dict[str, Any]:
        """As `ask`, for a command that must succeed: its result."""
        asked = self.ask(command)
        assert asked.error is ErrorCode.NONE, f"{asked.error.name}: {asked.result}"
        return asked.result

    def refusal(self, command: Command) -> tuple[ErrorCode, str]:
        """As `ask`, for a command that must be refused: code and message."""
        asked = self.ask(command)
        assert asked.error is not ErrorCode.NONE, f"{command} was not refused"
        return asked.error, asked.result.get("message", "")


def controller(
    nodes: tuple[int, ...] = (1, 2, 3),
    *,
    compact_every: int = 1000,
    unheard: Sequence[int] = (),
    **settings: Any,
) -> ControllerDriver:
    """A controller that has seen nothing yet; `settings` are those of `ClusterConfig`."""
    machine = Controller(
        CLUSTER_ID,
        nodes,
        ClusterConfig(**settings),
        compact_every=compact_every,
        unheard=lambda: unheard,
    )
    return ControllerDriver(machine)


def leader(nodes: tuple[int, ...] = (1, 2, 3), **settings: Any) -> ControllerDriver:
    """A controller that leads term 1 and has synced."""
    driver = controller(nodes, **settings)
    driver.lead(term=1)
    driver.commit()
    return driver
