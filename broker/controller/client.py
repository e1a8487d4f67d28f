"""`ControlClient`: brings a node's controller commands to wherever the controller leads.

A command goes to the local replica of the controller group when that leads, otherwise to the node
known to lead it. While nobody is known to lead, or the one asked says it does not, or no longer,
the command waits and is tried again; and as soon as another leader is known, or the same in another
term, it goes there, because one that died or is cut off says nothing (Apache Kafka does the same:
NodeToControllerRequestThread). All that ends at the command's deadline, with REQUEST_TIMED_OUT: it
may be decided or not.

So a command may come to the log twice. It names its origin, this node, its life and the command's
number, by which the controller knows it again and answers what came of it the first time
(`broker/controller/outcomes.py`): of a topic that is created here nobody is told that it exists
already, and one that is deleted here is not deleted again under a later owner. Of producer ids a
block may be lost. Whatever comes back after the first outcome finds nobody who waits.

An answer is handed on only when this node has applied the decision too, so that a client that
creates a topic finds it in the very next metadata request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import Command, Decided, Origin, Position
from ottla.broker.turn.tickets import ControlTicket
from ottla.log.types import Unpacked
from ottla.raft.types import LogIndex, Micros, NodeId, Term

log = logging.getLogger("ottla")

RETRY_AFTER: Micros = 20_000
NUMBERS_PER_INDEX = 1 << 20
"""How far the numbers of two lives lie apart, by entries that the later one found in its log."""

Leadership: TypeAlias = tuple[NodeId, Term]
"""Who leads the controller, 0 when nobody is known to, and in which term."""
NOWHERE: Leadership = (0, 0)


@dataclass(slots=True)
class ControlRequest:
    """A command on its way to the controller's leader."""

    sender: NodeId
    incarnation: int
    """The sender's life that asks: the next one counts its requests from 1 again."""
    number: int
    command: Command
    timeout: Micros
    """How much of the client's patience is left."""


@dataclass(slots=True)
class ControlResponse:
    """Its outcome."""

    sender: NodeId
    incarnation: int
    number: int
    error: ErrorCode
    result: dict[str, Unpacked]
    index: LogIndex
    """Where the command stands in the controller's log; 0 when it never entered it."""


def _response(sender: NodeId, origin: Origin, ticket: ControlTicket) -> ControlResponse:
    _, incarnation, number = origin
    return ControlResponse(sender, incarnation, number, ticket.error, ticket.result, ticket.index)


def _nothing() -> None:
    """No timer runs."""


class _Command:
    """One command until its `done` was called."""

    __slots__ = ("cancel_timer", "command", "deadline", "decided", "done", "number", "sent_to")

    def __init__(self, number: int, command: Command, done: Decided, deadline: Micros):
        self.number = number
        self.command = command
        self.done = done
        self.deadline = deadline
        self.decided: ControlResponse | None = None
        """Its outcome, while this node has not applied it yet."""
        self.sent_to = NOWHERE
        """Whose answer is awaited; nobody's while a retry is."""
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
        """The node joins with a log of the controller's up to there. Its numbers begin behind those
        of lives that put less into it: what was decided lies on disk, and two runs on one disk may
        begin at the same time by their clocks (each machine's since its boot, a simulated one's at
        0), so the incarnation alone would not tell them apart."""
        self._numbers = count(1 + last_index * NUMBERS_PER_INDEX)

    def request(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Have `command` decided; `done(error, result)` is called once, by `deadline` or soon."""
        mine = _Command(next(self._numbers), command, done, deadline)
        self._open[mine.number] = mine
        mine.cancel_timer = self._call_at(deadline, lambda: self._overdue(mine.number))
        self._try(mine)

    def serve(self, request: ControlRequest) -> None:
        """Another node believes that this one leads the controller."""

        origin = request.sender, request.incarnation, request.number

        def answer(ticket: ControlTicket) -> None:
            self._send(request.sender, _response(self._node, origin, ticket))

        deadline = self._now() + request.timeout
        self._submit(ControlTicket(request.command, answer, deadline, origin=origin))

    def answered(self, response: ControlResponse) -> None:
        """The outcome of a command of ours, or of an earlier life's, which is nobody's now."""
        mine = self._open.get(response.number)
        if mine is None or response.incarnation != self._incarnation or mine.decided is not None:
            return
        awaited = response.sender == mine.sent_to[0]
        if not awaited and (not response.index or isinstance(mine.command, Position)):
            return  # What one who leads no longer says outside of the log may be long outdated.
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
        """Another node leads the controller, or in another term, or nobody is known to: what was
        sent to the last one may never be answered."""
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
        if mine is not None and mine.decided is not None:
            self._finish(mine, mine.decided.error, mine.decided.result)
        elif mine is not None:
            self._finish(mine, ErrorCode.REQUEST_TIMED_OUT, {})

    def _finish(self, mine: _Command, error: ErrorCode, result: dict[str, Unpacked]) -> None:
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
