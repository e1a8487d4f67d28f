"""`Call`: one request under way, as a handler sees it.

A handler gets `(request, call)` and answers exactly once, now or from a callback later, with one of
`reply`, `answer`, `answer_bytes`, `answer_parts`, `no_answer` or `close`. Whatever it answers
leaves the connection in the order of the requests (`ottla.broker.wire.pipeline`). Calling any of
them again, or after the connection is gone, does nothing: a handler need not know.

A `Call` is also the slot of the request in its connection's pipeline, so that a request costs one
object; the fields marked so belong to `pipeline` and `connection`, not to handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol

from ottla.broker.wire.api.encoding import Steps, encode
from ottla.broker.wire.codec import response_schema
from ottla.broker.wire.pipeline import Slot

if TYPE_CHECKING:
    from ottla.broker.wire.api.produce_request import Shortcut
    from ottla.broker.wire.host import Host


Asked = ParamSpec("Asked")
"""What comes back to a handler: a ticket, an outcome of the controller, nothing from a timer."""


class Route(NamedTuple):
    """How requests of one API and version are read, and by whom they are answered."""

    key: int
    version: int
    handle: Callable[[Any, Call], None]
    read: Callable[[Any, int], Any]
    """`codec.Schema.read` of the request."""
    header_tags: bool
    """The request's header ends in tagged fields."""
    answer_tagged: bool
    """So does the answer's."""
    shortcut: Shortcut | None
    """Reads most of the requests faster (Produce only)."""


class Link(Protocol):
    """The connection, as its calls use it."""

    host: Host

    @property
    def local_address(self) -> tuple[str, int]:
        """Host and port of the listener."""

    def done(self, call: Call) -> None:
        """`call` has been answered, or will not be."""

    def charge(self, call: Call, size: int) -> None:
        """`call` may come to hold an answer of `size` bytes."""

    def hold(self) -> None:
        """Begin nothing before `release`."""

    def release(self) -> None:
        """The end of a `hold`."""

    def failed(self, call: Call, error: Exception) -> None:
        """The handler of `call` has a bug."""


class Call(Slot):
    """See the module's text."""

    memo: Any = None
    """Whatever the handler wants to find again when it answers."""

    def __init__(
        self, link: Link, route: Route, correlation_id: int, client_id: str | None, size: int
    ):
        """`size` is the bytes of the request's frame."""
        # Slot.__init__, written out: one call less for every request.
        self.size = size
        self.link = link
        self.host = link.host
        """The node that serves the request."""
        self.route = route
        self.version = route.version
        self.correlation_id = correlation_id
        self.client_id = client_id

    @property
    def produces(self) -> bool:
        """See `Slot`."""
        return self.route.shortcut is not None

    @property
    def local_address(self) -> tuple[str, int]:
        """Host and port of the listener the request came in by."""
        return self.link.local_address

    def reply(self, **fields: Any) -> None:
        """Answer with the API's response in the request's version, of plain values (`encoding`)."""
        self.run(self._encoded(fields))

    def _encoded(self, fields: dict[str, Any]) -> Steps:
        pieces: list[bytes] = []
        yield from encode(response_schema(self.route.key, self.version).cls, fields, pieces)
        self.answer_parts(pieces)

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

    def answer(self, response: Any) -> None:
        """Answer with a response entity of the request's API and version."""
        self.answer_bytes(response_schema(self.route.key, self.version).write(response))

    def answer_bytes(self, body: bytes) -> None:
        """Answer with an encoded response body."""
        if self.parts is None:
            self.parts = (body,)
            self.link.done(self)

    def answer_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        """Answer with a body in pieces, which are joined only on their way out."""
        if self.finish(parts):
            self.link.done(self)

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
                self.close(f"API {self.route.key} version {self.version} failed: {error!r}")
                raise

        return guarded

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """`callback()` once if the connection is lost before this call was answered."""
        self.on_lost = callback

    def charge(self, size: int) -> None:
        """Say that the answer may hold up to `size` bytes: counts as in flight until it leaves."""
        self.link.charge(self, size)


class _Work:
    """Steps of a call: a `Job`."""

    __slots__ = ("_call", "holds", "owner", "steps")

    def __init__(self, call: Call, steps: Iterator[int]):
        self._call = call
        self.owner: object = call.host
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
