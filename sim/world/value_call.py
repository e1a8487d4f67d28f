"""`ValueCall`: a request that arrives as a value, and whose answer leaves as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import Lazily
from ottla.broker.wire.api.call import Call, Link
from ottla.broker.wire.requests import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from ottla.sim.world.frames import Frame, size_of

if TYPE_CHECKING:
    from ottla.broker.node.node import Node

VERSIONS: dict[type, int] = {
    ApiVersionsRequest: 4,
    ProduceRequest: 12,
    FetchRequest: 12,
    ListOffsetsRequest: 8,
    DeleteRecordsRequest: 2,
    MetadataRequest: 12,
    InitProducerIdRequest: 5,
    CreateTopicsRequest: 7,
    DeleteTopicsRequest: 6,
    OffsetForLeaderEpochRequest: 4,
}
"""The version of each API that simulated clients use: the newest that is served."""


class ValueCall(Call):
    """See `ottla.broker.wire.api.call.Call`."""

    def __init__(self, link: Link, frame: Frame, node: Node):
        super().__init__(size_of(frame))
        self.link = link
        self.host = link.host
        self.version = VERSIONS[frame.value.__class__]
        self.client_id = None
        self.frame = frame
        self._node = node
        self.value: Any = None
        """The answer; None until there is one."""

    def __str__(self) -> str:
        """Its name in messages."""
        return f"{type(self.frame.value).__name__} {self.frame.number}"

    @property
    def owner(self) -> object:
        """See `Call`."""
        return self._node

    @property
    def produces(self) -> bool:
        """See `Slot`."""
        return isinstance(self.frame.value, ProduceRequest)

    def answer(self, answer: Any) -> None:
        """See `Call`. The value leaves as it is now: later changes of its parts do not reach it."""
        if self.finish((b"",)):
            self.value = _settled(answer)
            self.link.done(self)


_PLAIN = frozenset({bool, bytes, int, str, type(None), ErrorCode, float})
"""Classes of values without parts."""


def _settled(value: Any) -> Any:
    kind = value.__class__
    if kind is Lazily or kind is list:
        return tuple([each if each.__class__ in _PLAIN else _settled(each) for each in value])
    if isinstance(value, tuple):
        settled = [each if each.__class__ in _PLAIN else _settled(each) for each in value]
        return value._make(settled) if hasattr(value, "_make") else tuple(settled)
    return value
