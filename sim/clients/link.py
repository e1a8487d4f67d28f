"""One connection of a client: its requests, their answers, and its timeouts.

Answers carry no type and come in the order of their requests, so the reader must remember what was
asked (promise-P1). An answer that is not for the oldest open request breaks the protocol: it leaves
a row and ends the run (`ProtocolViolation`). A produce request with acks=0 is not remembered,
because no answer comes.

If a request is not answered in time, the client closes the connection, as real clients do. Other
open requests are lost too, and later answers are never received (half-open, sim-N7).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.wire.answers import ApiVersionsAnswer
from ottla.broker.wire.requests import ApiVersionsRequest
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.worker import NEVER, Worker
from ottla.sim.world.frames import Frame
from ottla.sim.world.outcomes import Lost


class ProtocolViolation(Exception):  # noqa: N818 - it names what it is
    """A node's answer fits no request, or is out of order: the run ends here."""


class LinkOwner(Worker):
    """A client, as its links see it."""

    @abstractmethod
    def connected(self, link: Link) -> None:
        """The node has answered for the first time."""

    @abstractmethod
    def disconnected(self, link: Link, why: str) -> None:
        """The connection is lost. Callers that wait for an answer on it are told next."""

    @abstractmethod
    def closed(self, link: Link, why: str) -> None:
        """The client has closed the connection."""


class Open(NamedTuple):
    """A request that is not answered yet."""

    number: int
    answer: type
    on_answer: Callable[[Any], None]
    on_lost: Callable[[Lost], None]
    deadline: Micros


class Link:
    """See the module's docstring. `ready`: whether the node has answered anything."""

    __slots__ = (
        "_alarm_at",
        "_client",
        "_connection",
        "_kernel",
        "node",
        "open",
        "ready",
        "sent_at",
    )

    def __init__(self, client: LinkOwner, node: NodeId):
        self.node = node
        self.ready = False
        self.sent_at: Micros = client.kernel.now
        """When something was last sent (librdkafka: `ts_send`)."""
        self.open: deque[Open] = deque()
        """Open requests, oldest first."""
        self._client = client
        self._kernel = client.kernel
        self._alarm_at: Micros = NEVER
        network = client.surroundings.network
        self._connection = network.connect(client.number, node, self._answered, self._closed)
        self.ask(ApiVersionsRequest(), ApiVersionsAnswer, self._greeted, _ignore)

    def ask(
        self,
        request: Any,
        answer: type,
        on_answer: Callable[[Any], None],
        on_lost: Callable[[Lost], None],
        patience: Micros | None = None,
    ) -> None:
        """Send a request. One of the two callbacks is called, once, unless the client closes the
        link.

        `patience`: how long the answer may take; None: the client's request timeout.
        """
        span = self._client.request_timeout if patience is None else patience
        deadline = self._kernel.now + span
        number = self._client.next_number()
        self.open.append(Open(number, answer, on_answer, on_lost, deadline))
        self._watch(deadline)
        self._send(Frame(number, request))

    def tell(self, request: Any) -> None:
        """Send a request that is never answered."""
        self._send(Frame(self._client.next_number(), request))

    def _send(self, request: Frame) -> None:
        self.sent_at = self._kernel.now
        self._connection.send(request)

    def close(self) -> None:
        """The client closes; no callback is called any more."""
        self.open.clear()
        self._connection.close()

    def leave(self, why: str) -> None:
        """The client closes; the callbacks of open requests are told that there will be no
        answer."""
        self._connection.close()
        self._client.closed(self, why)
        self._tell_lost(-1)

    def _greeted(self, _: ApiVersionsAnswer) -> None:
        self.ready = True
        self._client.connected(self)

    def _answered(self, answer: Frame) -> None:
        pending = self.open[0] if self.open else None
        number, value = answer
        if pending is None or pending.number != number or pending.answer is not type(value):
            self._violated(pending, answer)
        else:
            self.open.popleft()
            pending.on_answer(value)

    def _violated(self, pending: Open | None, answer: Frame) -> None:
        asked = "nothing" if pending is None else f"{pending.answer.__name__} {pending.number}"
        text = f"expected {asked}, answered {type(answer.value).__name__} {answer.number}"
        self._client.row("error", node=self.node, code=f"protocol violation: {text}")
        raise ProtocolViolation(f"client {self._client.number}, node {self.node}: {text}")

    # ---- the end

    def _closed(self, why: str) -> None:
        self._gone(why, -1)

    def _gone(self, why: str, expired: Micros) -> None:
        """Tell all callbacks that wait, oldest first. A request with a deadline up to `expired`
        timed out; the others lost their connection."""
        self._client.disconnected(self, why)
        self._tell_lost(expired)

    def _tell_lost(self, expired: Micros) -> None:
        lost, self.open = self.open, deque()
        for each in lost:
            each.on_lost(Lost.TIMED_OUT if each.deadline <= expired else Lost.DISCONNECTED)
        self._client.wake()

    def _watch(self, deadline: Micros) -> None:
        if deadline < self._alarm_at:
            self._alarm_at = deadline
            self._kernel.at(deadline, self._ring, deadline)

    def _ring(self, at: Micros) -> None:
        if at != self._alarm_at:
            return  # an earlier one was set meanwhile
        self._alarm_at = NEVER
        if not self.open:
            return
        first = min(each.deadline for each in self.open)
        if first > at:
            self._watch(first)
            return
        self._connection.close()
        self._gone("request timeout", at)


def _ignore(_: Lost) -> None:
    """A lost greeting needs no callback: `Client.disconnected` says that the link is gone."""
