"""`Controller`: the machine of Raft group 0, of which every node hosts a replica.

It is a `Machine` with a `Catalog`, which is what the log says. The steps of a command:

1. `submit` on the leader. A node that does not lead answers NOT_CONTROLLER at once. Until the
   leader's own first entry of its term is applied, its catalog may lack what earlier terms
   committed, so the ticket waits (`sync()` of promise-R3).
2. `resolve` refuses a wrong command without a log entry, and fills in everything the log needs.
3. `take_proposals` proposes commands in the order in which they came, with the synced term.
4. `apply`, on every node: the command is checked again (`broker/controller/commands.py`), and the
   catalog changes. On the leader the ticket is answered with the outcome of *this* entry; another
   command may have been applied before it.

A ticket may be answered early. When leadership is lost, all open tickets are answered
NOT_CONTROLLER; after its deadline a ticket is answered REQUEST_TIMED_OUT. A command that was
already proposed may still be applied; any other will not be, unless it is sent again. A refusal in
step 2 may be based on an old catalog if another leader was elected, for at most the time until
CheckQuorum ends this leadership. What is stored never depends on that.

If a command of the same origin is already in the log, the answer is its first outcome
(`broker/controller/outcomes.py`): it was sent again because the first leader did not answer.

New partitions are placed on nodes that `unheard` does not name; the others are used only if there
are too few.

The command `Position` is answered without the log, with the applied index. A started node waits
until it has applied that index itself before it serves clients.

After every `compact_every` applied entries the controller makes a snapshot of the catalog, so that
its log and the restart of a node stay short. It needs no barriers, because nothing is read through
this machine.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import cast

from ottla.broker.arguments.fields import CommandError
from ottla.broker.config import ClusterConfig
from ottla.broker.controller.catalog import Catalog, collision_key, topic_id_at
from ottla.broker.controller.commands import (
    PlaceTopic,
    check,
    logged,
    pack,
)
from ottla.broker.controller.name_order import NameOrder
from ottla.broker.controller.outcomes import Outcome, refused
from ottla.broker.controller.requests import resolve
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.collecting import MANY_OBJECTS, nothing_collected
from ottla.broker.images import PartitionImage, TopicImage
from ottla.broker.turn.commands import Command, CreateTopic, DeleteTopic, Position
from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.machine import Compaction, Outbox, Proposals
from ottla.broker.turn.tickets import ControlTicket, Ticket
from ottla.log.types import Unpacked
from ottla.raft.types import (
    ENTRY_OVERHEAD_BYTES,
    Entry,
    EntryKind,
    GroupId,
    LogIndex,
    Micros,
    NodeId,
    Proposal,
    Snapshot,
)

log = logging.getLogger("ottla")

CONTROLLER_GROUP: GroupId = 0
MAY_COME_AGAIN = (PlaceTopic, DeleteTopic)
"""Commands with an origin in the log, because a second application would be wrong."""


def _nobody() -> Sequence[NodeId]:
    """The default for `unheard`: all nodes are heard."""
    return ()


class Controller:
    """See the module's docstring. A `Machine`; its node uses `topics`, `version` and `deleted`."""

    def __init__(
        self,
        cluster_id: str,
        nodes: Sequence[NodeId],
        config: ClusterConfig,
        *,
        compact_every: int = 1000,
        unheard: Callable[[], Sequence[NodeId]] = _nobody,
    ) -> None:
        """`nodes`: all nodes of the cluster, on which partitions may be placed. `unheard` returns
        those of them that this node has not heard lately."""
        assert compact_every > 0, f"a snapshot every {compact_every} entries"
        self.outbox = Outbox()
        self.leadership = Leadership(self._not_controller)
        self._touched: dict[str, None] | None = {}
        """Topics created or deleted since the last `take_touched`; None: any topic may be."""
        self.applied: LogIndex = 0
        """Index of the last entry applied."""
        self._cluster_id = cluster_id
        self._nodes = tuple(sorted(nodes))
        self._config = config
        self._compact_every = compact_every
        self.unheard = unheard
        """Called when a topic is placed."""
        self._compacted: LogIndex = 0
        self._catalog = Catalog(cluster_id)
        # Open tickets by number of arrival. The other collections have these numbers; a number that
        # is no longer in `_open` is answered.
        self._arrivals = 0
        self._open: dict[int, ControlTicket] = {}
        self._queue: deque[tuple[int, bytes]] = deque()
        self._handed_out: list[int] = []
        self._proposed: dict[LogIndex, int] = {}
        self._names = NameOrder()
        self._deadlines: list[tuple[Micros, int]] = []

    # ---- for the node

    @property
    def topics(self) -> Mapping[str, TopicImage]:
        """All topics by name, in the order of their creation. The mapping changes in place."""
        return self._catalog.topics

    @property
    def version(self) -> int:
        """Rises with every change; equal versions in one cluster mean equal topics."""
        return self._catalog.version

    @property
    def catalog(self) -> Catalog:
        """Everything decided so far."""
        return self._catalog

    def partition_of(self, group: GroupId) -> tuple[TopicImage, PartitionImage] | None:
        """The topic and the partition of a Raft group; None if there is none."""
        return self._catalog.partition_of(group)

    def deleted(self, group: GroupId) -> bool:
        """Whether this group's partition was deleted, so that its replica and log can be
        dropped."""
        return self._catalog.deleted(group)

    def take_touched(self) -> Sequence[str] | None:
        """Names of the topics created or deleted since the last call. None: check all topics."""
        touched, self._touched = self._touched, {}
        return None if touched is None else tuple(touched)

    # ---- tickets

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take a `ControlTicket`, whose command is one of `ottla.broker.turn.commands`."""
        control = cast(ControlTicket, ticket)
        leadership = self.leadership
        if not leadership.leading:
            self._not_controller(control)
            return
        self._arrivals += 1
        number = self._arrivals
        self._open[number] = control
        heappush(self._deadlines, (control.deadline, number))
        if leadership.synced:
            self._admit(number)
        else:
            leadership.wait(control, lambda _: self._admit(number))

    def tick(self, now: Micros) -> None:
        """Answer overdue tickets with REQUEST_TIMED_OUT."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, number = heappop(self._deadlines)
            self._close(number, Outcome(ErrorCode.REQUEST_TIMED_OUT))

    def deadline(self) -> Micros | None:
        """When the next open ticket is overdue; None if there is none."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._open:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def _admit(self, number: int) -> None:
        """Refuse, answer without the log, or queue one command; the catalog is synced."""
        ticket = self._open[number]
        try:
            with nothing_collected(aged=True, least=MANY_OBJECTS):  # of assignments
                command = check(ticket.command)
        except CommandError as error:
            self._close(number, refused(ErrorCode.INVALID_REQUEST, str(error)))
            return
        if isinstance(command, Position):
            # A node that has applied this index knows everything that is decided by now.
            ticket.index = self.applied
            self._close(number, Outcome())
            return
        decided = self._catalog.recent.find(ticket.origin)
        if decided is not None:
            ticket.index, outcome = decided
            self._close(number, outcome)
            return
        name = self._name_of(command)
        if name is not None and self._names.waits(number, name):
            return
        resolved = resolve(command, self._catalog, self._nodes, self._config, self.unheard())
        if isinstance(resolved, Outcome):
            self._close(number, resolved)
        elif isinstance(command, CreateTopic) and command.validate_only:
            self._close(number, Outcome(result=self._would_create(cast(PlaceTopic, resolved))))
        else:
            if ticket.origin is not None and isinstance(resolved, MAY_COME_AGAIN):
                resolved = replace(resolved, by=ticket.origin)
            self._queue.append((number, pack(resolved)))
            if name is not None:
                self._names.begin(number, name)

    def _name_of(self, command: Command) -> str | None:
        """The collision key of the topic that a command is about; None if there is no topic."""
        name = command.name if isinstance(command, CreateTopic | DeleteTopic) else None
        if isinstance(command, DeleteTopic) and command.topic_id is not None:
            topic = self._catalog.find(None, command.topic_id)
            name = None if isinstance(topic, Outcome) else topic.name
        return None if name is None else collision_key(name)

    def _pass_on(self, number: int) -> None:
        """This command is applied, or never will be: judge the commands that waited for it."""
        for waiting in self._names.end(number):
            if waiting in self._open:
                self._admit(waiting)

    def _would_create(self, resolved: PlaceTopic) -> dict[str, Unpacked]:
        """The answer to a creation that is only validated; no topic has its topic id."""
        return {
            "topic_id": topic_id_at(self._cluster_id, 0),
            "partitions": resolved.partitions,
            "replication_factor": resolved.replication_factor,
        }

    def _close(self, number: int, outcome: Outcome) -> None:
        """Answer a ticket, unless it is answered already."""
        ticket = self._open.pop(number, None)
        if ticket is not None and not ticket.done:
            self._answer(ticket, outcome)

    def _not_controller(self, ticket: Ticket) -> None:
        """Answer NOT_CONTROLLER: this node does not lead."""
        if not ticket.done:
            self._answer(cast(ControlTicket, ticket), Outcome(ErrorCode.NOT_CONTROLLER))

    def _answer(self, ticket: ControlTicket, outcome: Outcome) -> None:
        ticket.done = True
        ticket.error = outcome.error
        ticket.result = outcome.result
        self.outbox.now.append(ticket)

    # ---- the way into the log

    def has_pending(self) -> bool:
        """Whether commands wait to be proposed."""
        return len(self._queue) > 0

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        """Queued commands in order of arrival, up to the leader queue's budget in bytes."""
        budget = self._config.leader_queue_bytes - inflight_bytes
        items: list[Proposal] = []
        while self._queue and budget > 0:
            number, payload = self._queue.popleft()
            if number in self._open:
                self._handed_out.append(number)
                items.append(Proposal(EntryKind.COMMAND, payload))
                budget -= len(payload) + ENTRY_OVERHEAD_BYTES
            else:
                self._pass_on(number)
        return Proposals(self.leadership.term, items) if items else None

    def proposed(self, first: LogIndex | None) -> None:
        """The outcome of the last `take_proposals`: the index of its first command; None: they were
        refused and will never be in a log."""
        handed_out, self._handed_out = self._handed_out, []
        for place, number in enumerate(handed_out):
            if first is None:
                self._close(number, Outcome(ErrorCode.NOT_CONTROLLER))
                self._pass_on(number)
            else:
                ticket = self._open[number]
                ticket.index = first + place
                self._proposed[first + place] = number

    # ---- the log

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """Apply committed entries to the catalog, and answer their tickets."""
        for entry in entries:
            assert entry.index == self.applied + 1, f"apply of {entry.index} after {self.applied}"
            self.applied = entry.index
            if entry.kind is EntryKind.COMMAND:
                self._apply_command(entry)
        if self.leadership.opens(self.applied):
            self.leadership.open()
        if self.applied - self._compacted >= self._compact_every:
            self._compacted = self.applied
            self.outbox.compaction = Compaction(self.applied, self._catalog.encode())

    def _apply_command(self, entry: Entry) -> None:
        outcome = self._outcome_of(entry)
        name = outcome.result.get("name")
        if name is not None and self._touched is not None:
            self._touched[name] = None
        number = self._proposed.pop(entry.index, None)
        if number is not None:
            term = self.leadership.term
            assert entry.term == term, (
                f"entry {entry.index} of term {entry.term} took the place of a command proposed "
                f"in term {term}"
            )
            self._close(number, outcome)
            self._pass_on(number)

    def _outcome_of(self, entry: Entry) -> Outcome:
        """Apply an entry and return the outcome; a refusal if it is not a valid command."""
        try:
            command = logged(cast(bytes, entry.payload))
        except CommandError as why:
            text = f"The command at index {entry.index} of the controller's log is refused: {why}"
            log.warning("%s", text)
            return refused(ErrorCode.INVALID_REQUEST, text)
        return self._catalog.apply(entry.index, command)

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace the catalog. Raises `SnapshotFormatError` if another version wrote it."""
        self._catalog = Catalog.decode(self._cluster_id, snapshot.data)
        self._touched = None
        self.applied = self._compacted = snapshot.meta.index
        self.outbox.compaction = None

    # ---- role

    def resign(self) -> None:
        """This node no longer leads: answer all open tickets NOT_CONTROLLER."""
        self.leadership.fail()
        for number in tuple(self._open):
            self._close(number, Outcome(ErrorCode.NOT_CONTROLLER))
        self._queue.clear()
        self._proposed.clear()
        self._names.clear()
        self._deadlines.clear()
