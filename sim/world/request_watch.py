"""`RequestWatch`: how long a node takes to answer requests, and which it never answers (sim-I44).

The longest time that a request may take is in the request (`timeout`, `max_wait`), or is a bound of
the broker. Answers of a connection leave in the order of its requests, so the time of a request
begins when it has arrived and the answer before it has left. A client that gives up closes its
connection about when its produce request is overdue, and then gets no answer. So the tickets of
produce requests are watched as well, in the partition, by their deadline.

Time passes by the node's clock and by the simulator's; the smaller span counts, because a clock may
be slow and may jump. It is counted anew when a frozen node goes on and when a slow one is no longer
slow. A dead node owes no answer. A request that is more than `NOTED` late leaves a `late` row; at
the end of the run so does one that is still open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.node.readiness import CATCH_UP_TIMEOUTS
from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.wire.requests import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from ottla.raft.types import Micros
from ottla.sim.history.history import History
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import name_of
from ottla.sim.world.life import Life

NOTED: Micros = 10_000
"""A request may be this late without a row."""
_IDS_WITHIN: Micros = 10_000_000
"""Within this a producer id is given out: up to two blocks of ids may have to be asked for."""
_LIMITS: dict[type, Callable[[Any, Micros], Micros]] = {
    ProduceRequest: lambda request, _: max(0, request.timeout),
    FetchRequest: lambda request, election: max(election, request.max_wait),
    ListOffsetsRequest: lambda _, election: election,
    OffsetForLeaderEpochRequest: lambda _, election: election,
    DeleteRecordsRequest: lambda request, _: max(0, request.timeout),
    CreateTopicsRequest: lambda request, _: max(0, request.timeout),
    DeleteTopicsRequest: lambda request, _: max(0, request.timeout),
    InitProducerIdRequest: lambda _, __: _IDS_WITHIN,
}
"""How long a request may take, by its class. `election`: an election timeout, after which a leader
that waits for its own first entry resigns. Other requests are answered at once."""


class Since(NamedTuple):
    """A time: the simulator's, and what the node's monotonic clock showed."""

    world: Micros
    node: Micros


class LostRequests:
    """How many requests reached a node and lost their connection before they were answered."""

    def __init__(self, history: History):
        self._history = history
        self._count = 0

    def add(self, requests: int) -> None:
        """So many more."""
        self._count += requests

    def note(self) -> None:
        """A row at the end of the run, if there were any."""
        if self._count:
            code = "request whose connection was lost"
            self._history.add("late", code=code, aux=self._count)


class RequestWatch:
    """All requests to one life of a node. `begin` and `ended` are called for each ticket of a
    partition, `unanswered` with how many requests were open when their connection was lost."""

    def __init__(
        self, life: Life, history: History, config: RunConfig, unanswered: Callable[[int], None]
    ):
        self.life = life
        self.unanswered = unanswered
        self.election: Micros = config.election_timeout_ms * 1_000
        self._history = history
        self._kernel = life.kernel
        self._tickets: dict[ProduceTicket, tuple[int, Since, Micros]] = {}
        self._connections: dict[ConnectionWatch, None] = {}
        self.serves_since: Micros | None = None
        """When its listener began to serve; None: not yet."""

    def now(self) -> Since:
        """The present time."""
        return Since(self._kernel.now, self.life.clockwork.now())

    def connection(self, client: int) -> ConnectionWatch:
        """A client has connected."""
        watch = ConnectionWatch(self, client)
        self._connections[watch] = None
        return watch

    def gone(self, watch: ConnectionWatch) -> None:
        """The connection is gone."""
        self._connections.pop(watch, None)

    def begin(self, client: int, ticket: ProduceTicket) -> None:
        """A produce ticket is in a partition."""
        now = self.now()
        # A node that was frozen begins with tickets whose time is over: it has a moment for each.
        self._tickets[ticket] = client, now, max(0, ticket.deadline - now.node)

    def ended(self, ticket: ProduceTicket) -> None:
        """The ticket is done."""
        client, since, limit = self._tickets.pop(ticket)
        self.note("Produce ticket", client, since, limit)

    def note(self, what: str, client: int, since: Since, limit: Micros, begun: Micros = 0) -> None:
        """Add a row if it took too long; `begun`: the simulator's time before which no answer was
        due."""
        now, life = self.now(), self.life
        well = life.clockwork.well_since
        if life.clockwork.slowness != 1:
            well = now.world
        passed = now.world - max(since.world, begun, life.thawed, well)
        passed = min(passed, now.node - since.node)
        if passed > limit + NOTED:
            self._history.add(
                "late",
                node=life.node_id,
                inc=life.inc,
                client=client,
                code=what,
                value=passed,
                aux=limit,
            )

    def final(self) -> None:
        """Rows for what is still open at the end."""
        for client, since, limit in self._tickets.values():
            self.note("Produce ticket, open", client, since, limit)
        for each in self._connections:
            each.final()


class ConnectionWatch:
    """The requests of one connection, in their order."""

    def __init__(self, watch: RequestWatch, client: int):
        self._watch = watch
        self._client = client
        self._open: deque[tuple[Since, Any]] = deque()
        self._left: Micros = 0
        """When the last answer left."""

    def arrived(self, request: Any) -> None:
        """A request has arrived."""
        self._open.append((self._watch.now(), request))

    def left(self) -> None:
        """The oldest request is done: its answer left, or it wants none. No request is open if the
        connection broke at the answer before."""
        if not self._open:
            return
        since, request = self._open.popleft()
        self._note("", since, request)
        self._left = self._watch.now().world

    def lost(self) -> None:
        """The connection is lost: the other requests get no answer."""
        self._watch.unanswered(len(self._open))
        self._end()
        self._watch.gone(self)

    def final(self) -> None:
        """The run is over."""
        self._end()

    def _end(self) -> None:
        if self._open:
            self._note(", open", *self._open[0])
        self._open.clear()

    def _note(self, how: str, since: Since, request: Any) -> None:
        watch = self._watch
        limit_of = _LIMITS.get(request.__class__)
        limit = 0 if limit_of is None else limit_of(request, watch.election)
        begun = self._left
        if watch.serves_since is None:
            limit += CATCH_UP_TIMEOUTS * watch.election
        else:
            begun = max(begun, watch.serves_since)
        watch.note(name_of(request) + how, self._client, since, limit, begun)
