"""Routes: how requests of each API and version are read, and by whom they are answered.

A route is made when the first request of its kind arrives: schema modules cost milliseconds to
import, and a broker uses a dozen of them.
"""

from __future__ import annotations

from ottla.broker.errors import FrameError
from ottla.broker.wire.api import table
from ottla.broker.wire.api.call import Route
from ottla.broker.wire.api.produce import PRODUCE_KEY
from ottla.broker.wire.api.produce_large import reader
from ottla.broker.wire.api.produce_request import Shortcut
from ottla.broker.wire.codec import API_VERSIONS_KEY, request_schema


class Routes(dict[int, Route]):
    """Those that a node has met so far, by key * 65536 + version.

    What a node has learned of its requests changes how much a turn of its loop takes of them. So it
    is the node's own: a simulated run must not depend on what ran in the process before.
    """

    def find(self, key: int, version: int) -> Route:
        """The route of a pair, made if it is met for the first time. Raises `FrameError`."""
        return self.get(key * 65536 + version) or self._make(key, version)

    def _make(self, key: int, version: int) -> Route:
        if not table.serves(key, version):
            if key != API_VERSIONS_KEY:
                raise FrameError(f"API {key} version {version} is not served")
            # The one request that is answered in a version nobody knows: its body stays unread.
            return Route(key, version, table.handler(key), lambda *_: None, False, False, None)
        schema = request_schema(key, version)
        route = self[key * 65536 + version] = Route(
            key,
            version,
            table.handler(key),
            reader(version, schema.read) if key == PRODUCE_KEY else schema.read,
            schema.header_tags,
            # As the answer's schema says too, but Produce packs its answers without importing one.
            version >= table.BY_KEY[key].flexible_from and key != API_VERSIONS_KEY,
            Shortcut(version) if key == PRODUCE_KEY else None,
        )
        return route
