"""Routes: how requests of each API and version are read, handled and answered.

A route is made when the first request of its API and version arrives, because schema modules and
handlers take milliseconds to import, and a broker uses only a dozen of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ottla.broker.errors import FrameError
from ottla.broker.wire.api import table
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.byte_call import Route, Write
from ottla.broker.wire.codec import API_VERSIONS_KEY, Schema, request_schema, response_schema
from ottla.broker.wire.modules import load
from ottla.broker.wire.requests import ApiVersionsRequest
from ottla.broker.wire.translation import fetch_answer, produce_answer
from ottla.broker.wire.translation.encoding import encode
from ottla.broker.wire.translation.produce_large import reader
from ottla.broker.wire.translation.produce_prefixes import PRODUCE_KEY, Shortcut
from ottla.broker.wire.translation.reading import REQUESTS, translator
from ottla.broker.wire.walk import ReadOnlyBuffer
from ottla.raft.types import Matched

FETCH_KEY = 1
Handler = Callable[[Matched, Call], None]

_handlers: dict[int, Handler] = {}


def handler(key: int) -> Handler:
    """The function `handle` of a served API; its module is imported at the first call."""
    found = _handlers.get(key)
    if found is None:
        module = load(f"ottla.broker.wire.api.{table.BY_KEY[key].module}")
        found = _handlers[key] = module.handle
    return found


class Routes(dict[int, Route]):
    """The routes that a node has used so far, by key * 65536 + version.

    A route learns from its requests (`Shortcut`), and that changes how many requests one iteration
    of the loop handles. So each node has its own routes: a simulated run must not depend on what
    ran in the process before.
    """

    def __init__(self, *, short: bool = True, newest: Mapping[int, int] = table.NO_LIMITS):
        super().__init__()
        self._short = short
        """Whether Produce may take its short cut."""
        self._newest = newest
        """`Profile.newest`."""

    def find(self, key: int, version: int) -> Route:
        """The route of an API and version, made if it is the first time. Raises `FrameError`."""
        return self.get(key * 65536 + version) or self._make(key, version)

    def _make(self, key: int, version: int) -> Route:
        if not table.serves(key, version, self._newest):
            if key != API_VERSIONS_KEY:
                raise FrameError(f"API {key} version {version} is not served")
            # ApiVersions is answered in every version; the body of an unknown version is not read.
            # Its header is: that of a later version must have tagged fields (KIP-482).
            tags = version >= table.BY_KEY[key].flexible_from
            return Route(key, version, handler(key), _unread, writer(key, 0), tags, False, None)
        schema = request_schema(key, version)
        route = self[key * 65536 + version] = Route(
            key,
            version,
            handler(key),
            reader(version, schema) if key == PRODUCE_KEY else _reading(key, schema),
            writer(key, version),
            schema.header_tags,
            # The answer's schema says the same, but Produce does not import one for its answers.
            version >= table.BY_KEY[key].flexible_from and key != API_VERSIONS_KEY,
            Shortcut(version) if key == PRODUCE_KEY and self._short else None,
        )
        return route


def _unread(*_: object) -> ApiVersionsRequest:
    return ApiVersionsRequest()


def _reading(key: int, schema: Schema) -> Callable[[ReadOnlyBuffer, int], Matched]:
    translate, read = translator(REQUESTS[key], schema.cls), schema.read
    return lambda frame, at: read(frame, at, translate)


def writer(key: int, version: int) -> Write:
    """The function that writes the answers of an API in that version."""
    if key == PRODUCE_KEY:
        return partial(produce_answer.pack_in_steps, version)
    if key == FETCH_KEY:
        return partial(fetch_answer.pack_in_steps, version)
    return lambda answer, pieces: encode(response_schema(key, version).cls, answer, pieces)
