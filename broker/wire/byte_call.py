"""`ByteCall`: a request that came as bytes and is answered in bytes; and its `Route`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.broker.wire.api.call import Call, Link, Steps
from ottla.broker.wire.translation.packing import Piece
from ottla.broker.wire.translation.produce_prefixes import Shortcut
from ottla.broker.wire.walk import ReadOnlyBuffer
from ottla.raft.types import Matched

Write = Callable[[Matched, list[Piece]], Steps]
"""Appends an answer value to a list of pieces, in steps."""


class Route(NamedTuple):
    """For one API and version: how requests are read, which handler answers, how answers are
    written."""

    key: int
    version: int
    handle: Callable[[Matched, Call], None]
    read: Callable[[ReadOnlyBuffer, int], Matched]
    """Reads a request value from a frame; its body begins at the given byte. Raises
    `FrameError`."""
    write: Write
    header_tags: bool
    """Whether the request's header ends in tagged fields."""
    answer_tagged: bool
    """Whether the answer's header ends in tagged fields."""
    shortcut: Shortcut | None
    """Reads most requests faster; only for Produce."""


class ByteCall(Call):
    """See `Call`."""

    memo: Matched = None
    """Data that the short cut of Produce keeps for its answer."""

    def __init__(
        self, link: Link, route: Route, correlation_id: int, client_id: str | None, size: int
    ):
        """`size`: the bytes of the request's frame."""
        # The lines of Slot.__init__: this saves a call for every request.
        self.size = size
        self.link = link
        self.host = link.host
        self.route = route
        self.version = route.version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __str__(self) -> str:
        """API and version, for messages about this request."""
        return f"API {self.route.key} version {self.version}"

    @property
    def produces(self) -> bool:
        """See `Slot`."""
        return self.route.shortcut is not None

    def answer(self, answer: object) -> None:
        """See `Call`."""
        self.run(self._written(answer))

    def _written(self, answer: object) -> Steps:
        pieces: list[Piece] = []
        yield from self.route.write(answer, pieces)
        self.answer_parts(pieces)

    def answer_parts(self, parts: Sequence[Piece]) -> None:
        """Answer with a body in pieces, which are joined only when they are sent."""
        if self.finish(parts):
            self.on_lost = None  # this breaks the cycle of references between call and handler
            self.link.done(self)

    def answer_bytes(self, body: bytes) -> None:
        """Answer with an encoded response body."""
        if self.parts is None:
            self.parts = (body,)
            self.link.done(self)
