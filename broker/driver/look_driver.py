"""`LookDriver`: begins a slice of `Looks` in each iteration of the loop, as long as groups wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.tickets import LookOnTicket
from ottla.raft.types import GroupId


class LookDriver:
    """Plans the slices of a node, and gives each waiting replica a `LookOnTicket`."""

    def __init__(
        self,
        looks: Looks,
        call_soon: Callable[[Callable[[], None]], object],
        hosted_replicas: Mapping[GroupId, HostedReplica],
        submit: Callable[[HostedReplica, LookOnTicket], None],
    ):
        self._looks = looks
        self._call_soon = call_soon
        self._hosted_replicas = hosted_replicas
        self._submit = submit
        self._planned = False
        looks.drive(self._plan)

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._call_soon(self._begin)

    def _begin(self) -> None:
        self._planned = False
        for group in self._looks.refill():
            hosted = self._hosted_replicas.get(group)
            if hosted is not None:
                self._submit(hosted, LookOnTicket())
