"""`ControlClient`: sends a node's controller commands to the controller's leader.

A command goes to the local replica of the controller group if that leads, otherwise to the node
that is known to lead. If no leader is known, or the node that was asked does not lead, the command
waits and is sent again. If another leader becomes known, or the same one in another term, the
command is sent there at once, because a dead node does not answer (Apache Kafka does the same:
NodeToControllerRequestThread). At its deadline a command ends with REQUEST_TIMED_OUT; it may be
decided or not.

So a command may come to the log twice. It carries its origin: this node, its incarnation and the
command's number. By that the controller recognizes it and answers its first outcome again
(`broker/controller/outcomes.py`). So a client that creates a topic is not told that the topic
exists already, and a topic that was created again is not deleted by a repeated deletion. A repeated
request for producer ids loses a block. Answers after the first one are ignored.

An answer is passed on only when this node has applied the decision, too. So a client that has
created a topic finds it in its next metadata request. If the node has not applied it by the
deadline, the command ends with REQUEST_TIMED_OUT. Only a block of producer ids is then passed on:
it needs no catalog, and nobody else has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import AllocateProducerIds, Command, Decided, Origin, Position
from ottla.broker.turn.tickets import ControlTicket
from ottla.log.types import Unpacked
from ottla.raft.types import LogIndex, Micros, NodeId, Term

log = logging.getLogger("ottla")

RETRY_AFTER: Micros = 20_000
NUMBERS_PER_INDEX = 1 << 20
"""The numbers of an incarnation begin at this times the entries that it found in its log."""

Leadership: TypeAlias = tuple[NodeId, Term]
"""The controller's leader (0 if none is known) and its term."""
NOWHERE: Leadership = (0, 0)


@dataclass(slots=True)
class ControlRequest:
    """A command that is sent to the controller's leader."""

    sender: NodeId
    incarnation: int
    """The incarnation of the sender."""
    number: int
    command: Command
    timeout: Micros
    """The rest of the command's time limit."""


@dataclass(slots=True)
class ControlResponse:
    """The outcome of a `ControlRequest`."""

    sender: NodeId
    incarnation: int
    number: int
    error: ErrorCode
    result: dict[str, Unpacked]
    index: LogIndex
    """The command's index in the controller's log; 0 if it is not in it."""


def _response(sender: NodeId, origin: Origin, ticket: ControlTicket) -> ControlResponse:
    _, incarnation, number = origin
    return ControlResponse(sender, incarnation, number, ticket.error, ticket.result, ticket.index)


def _nothing() -> None:
    """Cancels nothing, because no timer runs."""


class _Command:
    """One command, until its `done` is called."""

    __slots__ = ("cancel_timer", "command", "deadline", "decided", "done", "number", "sent_to")

    def __init__(self, number: int, command: Command, done: Decided, deadline: Micros):
        self.number = number
        self.command = command
        self.done = done
        self.deadline = deadline
        self.decided: ControlResponse | None = None
        """Its outcome, if this node has not applied the decision yet."""
        self.sent_to = NOWHERE
        """The leader whose answer is awaited; `NOWHERE` while a retry is planned."""
        self.cancel_timer: Callable[[], None] = _nothing


class ControlClient:
    """See the module's docstring. The node provides the functions that it calls."""

    def __init__(
        self,
        node: NodeId,
        incarnation: int,
        *,
        now: Callable[[], Micros],
        call_at: Callable[[Micros, Callable[[], None]], Callable[[], None]],
        submit: Callable[[ControlTicket], None],
        send: Callable[[NodeId, object], None],
        leader: Callable[[], Leadership],
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

    def begin(self, last_index: LogIndex) -> None:
        """The node joins; its copy of the controller's log ends at `last_index`. Numbers begin
        above those of earlier incarnations, which found a shorter log. The incarnation alone is not
        enough: it comes from a clock that may begin again at each boot (or at 0 in a simulation),
        while earlier decisions are on disk."""
        self._numbers = count(1 + last_index * NUMBERS_PER_INDEX)

    def request(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Send `command` to the controller. `done(error, result)` is called once, at `deadline` at
        the latest."""
        mine = _Command(next(self._numbers), command, done, deadline)
        self._open[mine.number] = mine
        mine.cancel_timer = self._call_at(deadline, lambda: self._overdue(mine.number))
        self._try(mine)

    def serve(self, request: ControlRequest) -> None:
        """Take a command of another node, which believes that this node leads the controller."""

        origin = request.sender, request.incarnation, request.number

        def answer(ticket: ControlTicket) -> None:
            self._send(request.sender, _response(self._node, origin, ticket))

        deadline = self._now() + request.timeout
        self._submit(ControlTicket(request.command, answer, deadline, origin=origin))

    def answered(self, response: ControlResponse) -> None:
        """Take the outcome of a command of this node. One of an earlier incarnation is ignored."""
        mine = self._open.get(response.number)
        if mine is None or response.incarnation != self._incarnation or mine.decided is not None:
            return
        awaited = response.sender == mine.sent_to[0]
        if not awaited and (not response.index or isinstance(mine.command, Position)):
            return  # an answer of a former leader that is not from the log may be outdated
        if response.error is ErrorCode.NOT_CONTROLLER:
            if awaited:
                self._later(mine)
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

    def leader_moved(self) -> None:
        """The controller's leader or its term changed, or no leader is known. Send open commands
        again, because the former leader may never answer."""
        now = self._leader()
        for mine in list(self._open.values()):
            if mine.decided is None and mine.sent_to not in (NOWHERE, now):
                self._try(mine)

    def _later(self, mine: _Command) -> None:
        mine.sent_to = NOWHERE
        self._call_at(self._now() + RETRY_AFTER, lambda: self._retry(mine))

    def _retry(self, mine: _Command) -> None:
        if mine.number in self._open:
            self._try(mine)

    def _try(self, mine: _Command) -> None:
        mine.sent_to = leader, _ = self._leader()
        origin = self._node, self._incarnation, mine.number
        if leader == self._node:
            answer = self._local_answer(mine, origin)
            self._submit(ControlTicket(mine.command, answer, mine.deadline, origin=origin))
        elif leader:
            self._send(leader, ControlRequest(*origin, mine.command, mine.deadline - self._now()))
        else:
            self._later(mine)

    def _local_answer(self, mine: _Command, origin: Origin) -> Callable[[ControlTicket], None]:
        return lambda ticket: self.answered(_response(self._node, origin, ticket))

    def _overdue(self, number: int) -> None:
        mine = self._open.get(number)
        if mine is None:
            return
        if mine.decided is not None and isinstance(mine.command, AllocateProducerIds):
            self._finish(mine, mine.decided.error, mine.decided.result)
        else:  # this node's catalog lacks it
            self._finish(mine, ErrorCode.REQUEST_TIMED_OUT, {})

    def _finish(self, mine: _Command, error: ErrorCode, result: dict[str, Unpacked]) -> None:
        """Call `done`, and cancel the timer, which would keep this node and its disk in memory."""
        self._open.pop(mine.number, None)
        mine.cancel_timer()
        try:
            mine.done(error, result)
        except Exception:  # a fault of the caller, which must not stop the node
            log.exception("node %d: an outcome could not be delivered", self._node)

    def close(self) -> None:
        """The node stops: answer all open commands with REQUEST_TIMED_OUT."""
        for mine in list(self._open.values()):
            self._finish(mine, ErrorCode.REQUEST_TIMED_OUT, {"message": "the node stopped"})
