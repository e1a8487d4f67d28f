"""`Call`: one request under way, as a handler sees it.

A handler gets `(request, call)` and answers exactly once, now or from a callback later, with one of
`answer`, `no_answer` or `close`. Whatever it answers leaves the connection in the order of the
requests (`ottla.broker.wire.pipeline`). Calling any of them again, or after the connection is gone,
does nothing: a handler need not know.

Request and answer are values (`ottla.broker.wire.requests`, `ottla.broker.wire.answers`). What a
call makes of an answer is its own affair: that of a real connection makes bytes
(`ottla.broker.wire.byte_call`), that of a simulated one keeps the value.

A `Call` is also the slot of the request in its connection's pipeline, so that a request costs one
object; the fields marked so belong to `pipeline` and `connection`, not to handlers.
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
"""What comes back to a handler: a ticket, an outcome of the controller, nothing from a timer."""
Steps: TypeAlias = Generator[int, None, None]
"""See `slices.py`: each yields what it was in units."""


class Link(Protocol):
    """The connection, as its calls use it."""

    host: Host

    def done(self, call: Matched) -> None:
        """`call` has been answered, or will not be."""

    def charge(self, call: Matched, size: int) -> None:
        """`call` may come to hold an answer of `size` bytes."""

    def hold(self) -> None:
        """Begin nothing before `release`."""

    def release(self) -> None:
        """The end of a `hold`."""

    def failed(self, call: Matched, error: Exception) -> None:
        """The handler of `call` has a bug."""


class Call(Slot, ABC):
    """See the module's text."""

    link: Link
    host: Host
    """The node that serves the request."""
    version: int
    """Of the API, in which the request came."""
    client_id: str | None

    @property
    def owner(self) -> object:
        """The node whose work the steps of this call are (`slices.Job`)."""
        return self.host

    @abstractmethod
    def answer(self, answer: object) -> None:
        """Answer with the API's answer."""

    def run(self, steps: Iterator[int]) -> None:
        """Take `steps`, over as many turns of the loop as they need
        (`ottla.broker.event_loop.slices`).

        Whoever has something to do for each topic or partition of a request does it in steps. No
        request behind this one is begun meanwhile. A step that fails ends this call.
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
        """`callback`, which ends this call where it fails: nobody else would answer the client."""

        def guarded(*asked: Asked.args, **named: Asked.kwargs) -> None:
            try:
                callback(*asked, **named)
            except Exception as error:
                self.close(f"{self} failed: {error!r}")
                raise

        return guarded

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """`callback()` once if the connection is lost before this call was answered."""
        self.on_lost = callback

    def charge(self, size: int) -> None:
        """Say that the answer may hold up to `size` bytes: counts as in flight until it leaves."""
        self.link.charge(self, size)

    def hold(self) -> None:
        """Have the connection begin nothing before `release`."""
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
        """The connection begins nothing else until this has ended."""

    def wanted(self) -> bool:
        """Not when the client is gone."""
        return self._call.parts is None

    def ended(self, error: Exception | None) -> None:
        """The connection may go on."""
        if error is not None:
            self._call.link.failed(self._call, error)
        if self.holds:
            self._call.link.release()
