"""`ControlClient`: brings a node's controller commands to wherever the controller leads.

A command goes to the local replica of the controller group when that leads, otherwise to the node
known to lead it. While nobody is known to lead, or the one asked says it does not, the command
waits and is tried again; that is safe because a refusal *before* the command entered the log is
definite. Once it may be in the log, an unknown outcome is reported and never retried here.

An answer is handed on only when this node has applied the decision too, so that a client that
creates a topic finds it in the very next metadata request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from ottla.broker.commands import ControlTicket
from ottla.broker.errors import ErrorCode
from ottla.raft.types import LogIndex, Micros, NodeId

log = logging.getLogger("ottla")

RETRY_AFTER: Micros = 20_000

Done: TypeAlias = Callable[[ErrorCode, dict[str, Any]], None]


@dataclass(slots=True)
class ControlRequest:
    """A command on its way to the controller's leader."""

    sender: NodeId
    incarnation: int
    """The sender's life that asks: the next one counts its requests from 1 again."""
    number: int
    command: dict[str, Any]
    timeout: Micros
    """How much of the client's patience is left."""


@dataclass(slots=True)
class ControlResponse:
    """Its outcome."""

    incarnation: int
    number: int
    error: ErrorCode
    result: dict[str, Any]
    index: LogIndex
    """Where the command stands in the controller's log; 0 when it never entered it."""


def _response(incarnation: int, number: int, ticket: ControlTicket) -> ControlResponse:
    return ControlResponse(incarnation, number, ticket.error, ticket.result, ticket.index)


def _nothing() -> None:
    """No timer runs."""


class _Command:
    """One command until its `done` was called."""

    __slots__ = ("cancel_timer", "command", "deadline", "decided", "done", "number")

    def __init__(self, number: int, command: dict[str, Any], done: Done, deadline: Micros):
        self.number = number
        self.command = command
        self.done = done
        self.deadline = deadline
        self.decided: ControlResponse | None = None
        """Its outcome, while this node has not applied it yet."""
        self.cancel_timer: Callable[[], None] = _nothing


class ControlClient:
    """See the module's text. Its owner, the node, provides the way out as callables."""

    def __init__(
        self,
        node: NodeId,
        incarnation: int,
        *,
        now: Callable[[], Micros],
        call_at: Callable[[Micros, Callable[[], None]], Callable[[], None]],
        submit: Callable[[ControlTicket], None],
        send: Callable[[NodeId, object], None],
        leader: Callable[[], NodeId],
    ):
        self._node = node
        self._incarnation = incarnation
        self._now = now
        self._call_at = call_at
        self._submit = submit
        self._send = send
        self._leader = leader
        self._numbers = count(1)
        self._open: dict[int, _Command] = {}
        self._applied: LogIndex = 0

    def request(self, command: dict[str, Any], done: Done, deadline: Micros) -> None:
        """Have `command` decided; `done(error, result)` is called once, by `deadline` or soon."""
        mine = _Command(next(self._numbers), command, done, deadline)
        self._open[mine.number] = mine
        mine.cancel_timer = self._call_at(deadline, lambda: self._overdue(mine.number))
        self._try(mine)

    def serve(self, request: ControlRequest) -> None:
        """Another node believes that this one leads the controller."""

        def answer(ticket: ControlTicket) -> None:
            self._send(request.sender, _response(request.incarnation, request.number, ticket))

        self._submit(ControlTicket(request.command, answer, self._now() + request.timeout))

    def answered(self, response: ControlResponse) -> None:
        """The outcome of a command of ours, or of an earlier life's, which is nobody's now."""
        mine = self._open.get(response.number)
        if mine is None or response.incarnation != self._incarnation:
            return
        if response.error is ErrorCode.NOT_CONTROLLER and not response.index:
            self._call_at(self._now() + RETRY_AFTER, lambda: self._retry(mine))
        elif response.error is ErrorCode.NONE and response.index > self._applied:
            mine.decided = response
        else:
            self._finish(mine, response.error, response.result)

    def applied(self, index: LogIndex) -> None:
        """This node's own replica of the controller has applied entries up to `index`."""
        self._applied = index
        for mine in list(self._open.values()):
            if mine.decided is not None and mine.decided.index <= index:
                self._finish(mine, mine.decided.error, mine.decided.result)

    def _retry(self, mine: _Command) -> None:
        if mine.number in self._open:
            self._try(mine)

    def _try(self, mine: _Command) -> None:
        leader = self._leader()
        left = mine.deadline - self._now()
        if leader == self._node:
            self._submit(ControlTicket(mine.command, self._local_answer(mine), mine.deadline))
        elif leader:
            self._send(
                leader,
                ControlRequest(self._node, self._incarnation, mine.number, mine.command, left),
            )
        else:
            self._call_at(self._now() + RETRY_AFTER, lambda: self._retry(mine))

    def _local_answer(self, mine: _Command) -> Callable[[ControlTicket], None]:
        return lambda ticket: self.answered(_response(self._incarnation, mine.number, ticket))

    def _overdue(self, number: int) -> None:
        mine = self._open.get(number)
        if mine is not None and mine.decided is not None:
            self._finish(mine, mine.decided.error, mine.decided.result)
        elif mine is not None:
            self._finish(mine, ErrorCode.REQUEST_TIMED_OUT, {})

    def _finish(self, mine: _Command, error: ErrorCode, result: dict[str, Any]) -> None:
        """Its timer goes too: it would keep this node, its disk with it, until it rings."""
        self._open.pop(mine.number, None)
        mine.cancel_timer()
        try:
            mine.done(error, result)
        except Exception:  # the asker's fault, in the middle of the node's own business
            log.exception("node %d: an outcome could not be delivered", self._node)

    def close(self) -> None:
        """The node stops: whoever waits is told that the outcome is not known."""
        for mine in list(self._open.values()):
            self._finish(mine, ErrorCode.REQUEST_TIMED_OUT, {"message": "the node stopped"})
