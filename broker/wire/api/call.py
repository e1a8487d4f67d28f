"""`Call`: one request in progress, as a handler sees it.

A handler gets `(request, call)` and answers exactly once, at once or later from a callback, by
`answer`, `no_answer` or `close`. Answers leave the connection in the order of the requests
(`ottla.broker.wire.pipeline`). A second answer, or one after the connection is lost, does nothing,
so a handler need not check.

Request and answer are values (`ottla.broker.wire.requests`, `ottla.broker.wire.answers`). The call
of a real connection encodes the answer (`ottla.broker.wire.byte_call`); that of a simulated
connection keeps the value.

A `Call` is also the `Slot` of the request in its connection's pipeline, so that a request costs
only one object. The fields of `Slot` belong to `pipeline` and `connection`, not to handlers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeAlias

from ottla.broker.wire.pipeline import Slot
from ottla.raft.types import Matched

if TYPE_CHECKING:
    from ottla.broker.wire.host import Host


Asked = ParamSpec("Asked")
"""The arguments of a handler's callback: a ticket, an outcome of the controller, none of a
timer."""
Steps: TypeAlias = Generator[int, None, None]
"""Work in steps (`ottla.broker.event_loop.slices`): each step yields its cost in units."""


class Link(Protocol):
    """The connection, as its calls see it."""

    host: Host

    def done(self, call: Matched) -> None:
        """`call` is answered, or will not be answered."""

    def charge(self, call: Matched, size: int) -> None:
        """The answer of `call` may need `size` bytes."""

    def hold(self) -> None:
        """Begin no request before `release`."""

    def release(self) -> None:
        """The end of a `hold`."""

    def failed(self, call: Matched, error: Exception) -> None:
        """The handler of `call` raised `error`, which is a bug."""


class Call(Slot, ABC):
    """See the module's docstring."""

    link: Link
    host: Host
    """The node that serves the request."""
    version: int
    """The version of the request."""
    client_id: str | None

    @property
    def owner(self) -> object:
        """The node for which the steps of this call work (`slices.Job`)."""
        return self.host

    @abstractmethod
    def answer(self, answer: object) -> None:
        """Answer with the answer value of the API."""

    def run(self, steps: Iterator[int]) -> None:
        """Run `steps`, over as many iterations of the loop as they need
        (`ottla.broker.event_loop.slices`).

        A handler that works on each topic or partition of a request does so in steps. The
        connection begins no other request meanwhile. If a step raises, the connection is closed.
        """
        work = _Work(self, steps)
        if not self.host.slices.run(work):
            work.holds = True
            self.link.hold()

    def no_answer(self) -> None:
        """This request has no answer (Produce with acks=0)."""
        if self.finish(()):
            self.link.done(self)

    def close(self, reason: str) -> None:
        """Close the connection once everything before this request has been answered."""
        if self.finish((), closing=reason):
            self.link.done(self)

    def guarded(self, callback: Callable[Asked, None]) -> Callable[Asked, None]:
        """`callback`, but if it raises, the connection is closed: else the client would get no
        answer."""

        def guarded(*asked: Asked.args, **named: Asked.kwargs) -> None:
            try:
                callback(*asked, **named)
            except Exception as error:
                self.close(f"{self} failed: {error!r}")
                raise

        return guarded

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call `callback()` once if the connection is lost before this call is answered."""
        self.on_lost = callback

    def charge(self, size: int) -> None:
        """Count `size` more bytes, which the answer may need, as in flight until it leaves."""
        self.link.charge(self, size)

    def hold(self) -> None:
        """Let the connection begin no request before `release`."""
        self.link.hold()

    def release(self) -> None:
        """The end of a `hold`."""
        self.link.release()


class _Work:
    """Steps of a call: a `Job`."""

    __slots__ = ("_call", "holds", "owner", "steps")

    def __init__(self, call: Call, steps: Iterator[int]):
        self._call = call
        self.owner = call.owner
        self.steps = steps
        self.holds = False
        """The connection begins no request until this work has ended."""

    def wanted(self) -> bool:
        """Whether to go on: False once the call is answered or the client is gone."""
        return self._call.parts is None

    def ended(self, error: Exception | None) -> None:
        """The work has ended: let the connection go on."""
        if error is not None:
            self._call.link.failed(self._call, error)
        if self.holds:
            self._call.link.release()
