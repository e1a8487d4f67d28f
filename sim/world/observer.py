"""The observer: turns what nodes do at their seams into rows of the history.

It looks from outside: at what a store was given and when that became durable, and at roles and
commit indexes after a turn. The broker does not know that it is watched, and nothing here decides.

For each node and group it keeps a `LogView`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.turn.watcher import Watcher
from ottla.idempotency.decisions import Decision
from ottla.idempotency.snapshot import digest_of
from ottla.log.record_batch import identity
from ottla.log.store import StoredGroup
from ottla.log.types import BatchIdentity
from ottla.raft.messages import RequestVote, VoteReply
from ottla.raft.quorum import majority
from ottla.raft.roles import Role
from ottla.raft.types import Entry, GroupId, LogIndex, NodeId, Term
from ottla.sim.history.history import CONTROLLER_PARTITION, History
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.final_logs import final_rows
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.in_sync_model import in_sync_model
from ottla.sim.world.life import Life
from ottla.sim.world.log_view import NOTHING, LogView, Seen, Written
from ottla.sim.world.metadata_watch import MetadataWatch
from ottla.sim.world.one_state_model import Remnant
from ottla.sim.world.reference_model import MODELLED, Opinion, Replay
from ottla.sim.world.remnants import Remnants, replay_of
from ottla.sim.world.submitted import NOBODYS, TicketWatcher, whose
from ottla.sim.world.witness import opinion_of

DecisionWatcher: TypeAlias = Callable[[NodeId, int, BatchIdentity, Term, Decision], None]
"""Called with node, partition, batch, term, and what is to be done with the batch."""
VOTING = (RequestVote, VoteReply)
"""Messages that may carry a vote."""


class Observer:
    """All views, and the rows that follow from watching them."""

    tickets: TicketWatcher | None = None
    """Set while a run is traced (`sim/tracing/tracer.py`). No row of the history needs it."""

    def __init__(self, history: History, config: RunConfig):
        self.history = history
        self.config = config
        self.partitions = {CONTROLLER_GROUP: CONTROLLER_PARTITION}
        """Number of the partition by group, as the controller placed them."""
        self.views: dict[tuple[NodeId, GroupId], LogView] = {}
        self.decision_watchers: list[DecisionWatcher] = []
        """Called with every decision before its row is added."""
        self.in_sync = in_sync_model(history, self.partitions, config)
        """How many replicas are in sync; None if one is enough everywhere."""
        self.metadata = MetadataWatch(history, self.partitions)
        """What nodes say of their logs and leaders."""
        self._replays: dict[GroupId, Replay] = {}
        """By group, the reference model's state of the committed log."""
        self.remnants = Remnants()
        """What replicas keep that began with a snapshot and must not keep all of it."""
        self.written = Written()

    def view(self, node: NodeId, group: GroupId) -> LogView:
        """The view of that node's log of that group."""
        found = self.views.get((node, group))
        if found is None:
            found = self.views[node, group] = LogView()
        return found

    def knows(self, life: Life, group: GroupId) -> bool:
        """Whether the group is one of the topic's partitions, or the controller's."""
        if group not in self.partitions:
            placed = life.view.placed(group)
            if placed is None or placed[0].name != TOPIC:
                return False
            self.partitions[group] = placed[1].partition
        return True

    # ---- a life's own events

    def watch(self, life: Life) -> None:
        """From now on, hear of changes of its replicas."""

        def applied(group: GroupId) -> None:
            if self.knows(life, group):
                self.moved(life, group)

        life.node.watch(Watcher(applied=applied, role_changed=partial(self.role_changed, life)))

    def started(self, life: Life) -> None:
        """A life begins: its views show what its disk still holds."""
        node, kept = life.node_id, {each.group: each for each in life.store.groups()}
        for (owner, group), view in self.views.items():
            if owner == node:
                stored = kept.get(group)
                first = 1 if stored is None else stored.first_index
                if first < view.first:
                    view.put_back(first, NOTHING if stored is None else self._base(stored))
                view.cut((stored.last_index if stored else 0) + 1)
                view.commit = view.applied = 0 if stored is None else stored.first_index - 1
                view.led, view.stated, view.log_start = 0, None, 0
                if stored is not None:
                    view.term, view.vote = stored.hard_state.term, stored.hard_state.vote
        for group, stored in kept.items():
            if group not in self.partitions:
                continue
            self.history.add(
                "start",
                node=node,
                inc=life.inc,
                partition=self.partitions[group],
                term=stored.hard_state.term,
                log_index=stored.last_index,
            )
            self._given_back(life, group)
        life.store.watch.started()

    def _base(self, stored: StoredGroup) -> Seen:
        """What stands for everything before the first entry of that log."""
        meta = stored.snapshot
        return NOTHING if meta is None else self.written.at(stored.group, meta.index, meta.term)

    def _given_back(self, life: Life, group: GroupId) -> None:
        """A loss of power that undoes a truncation or a snapshot brings entries back; so does an
        old copy of a disk."""
        view = self.view(life.node_id, group)
        for entry in life.store.scan(group):
            index = entry.index
            if index > view.last or (index >= view.first and view.at(index).term != entry.term):
                view.cut(index)
                view.extend(entry)
                self.entry_row("append", life, group, index, 0)

    def crashed(self, life: Life, code: str, lost: int) -> None:
        """A life ended; its `LogWatch` says what its disk still holds."""
        images = life.disk.medium.images
        for group in sorted(self.partitions.keys() & images.keys()):
            view, end = self.view(life.node_id, group), life.disk.log_end(group)
            self.history.add(
                "crash",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[group],
                log_index=end,
                off=view.at(min(end, view.last)).next_off,
                code=code,
                aux=lost,
            )

    def role_changed(self, life: Life, group: GroupId) -> None:
        """A replica has another role, term or leader: add a row if it ceased to lead."""
        if not self.knows(life, group):
            return
        view, replica = self.view(life.node_id, group), life.view.replica(group)
        assert replica is not None, "its role has changed"
        soft = replica.soft
        if view.led and soft.role is not Role.LEADER:
            self.history.add(
                "stepdown",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[group],
                term=view.led,
                code=soft.role.name.lower(),
            )
            view.led = 0

    def moved(self, life: Life, group: GroupId) -> None:
        """A replica has applied something: commit, apply and state rows."""
        view, replica = self.view(life.node_id, group), life.view.replica(group)
        assert replica is not None, "it has applied something"
        partition, commit, done = replica.partition, replica.commit, replica.applied
        add, number, node, inc = self.history.add, self.partitions[group], life.node_id, life.inc
        if commit > view.commit:
            view.commit = commit
            add(
                "commit",
                node=node,
                inc=inc,
                partition=number,
                term=replica.term,
                log_index=commit,
                hw=None if partition is None else view.at(min(commit, view.last)).next_off,
                aux=int(replica.role is Role.LEADER),
                quorum=majority(len(replica.voters)),
            )
            if self.in_sync is not None and replica.role is Role.LEADER:
                self.in_sync.committed(life, group, view.at(min(commit, view.last)).next_off)
        for index in range(max(view.applied, view.first - 1) + 1, done + 1):
            seen = view.at(index)
            self.entry_row("apply", life, group, index, seen.start)
            if seen.expires:
                self._expire_rows(life, group, index, seen)
        view.applied = done
        if partition is None:
            return
        if partition.log_start_offset != view.log_start:
            view.log_start = self.metadata.add_log_start(life, replica)
        if partition.producers_applied > done:
            return
        # With every answer too, not only after applying, because nothing else may change the state.
        stated = (done, partition.producers_seen())
        if stated != view.stated:
            view.stated = stated
            index, told = stated[0], digest_of(stated[1]) >> 1
            told = self.remnants.told(group, index, told, life)
            add("state", node=node, inc=inc, partition=number, log_index=index, state_hash=told)

    def _expire_rows(self, life: Life, group: GroupId, index: LogIndex, seen: Seen) -> None:
        for pid in seen.expires:
            self.history.add(
                "expire",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[group],
                log_index=index,
                off=seen.next_off,
                pid=pid,
                aux=self.written.applied(group, index, seen.term),
            )

    def decided(
        self,
        life: Life,
        partition: Partition,
        ticket: ProduceTicket,
        decision: Decision,
        model: Opinion | None,
    ) -> None:
        """A leader has decided about a batch. If the model disagrees, a second row says so."""
        who = identity(ticket.batch)
        assert who is not None, "it was decided about"
        if not self.knows(life, partition.settings.group):
            return
        number, term = self.partitions[partition.settings.group], partition.leadership.term
        for watcher in self.decision_watchers:
            watcher(life.node_id, number, who, term, decision)
        said = opinion_of(decision)
        opinions = [(life.node_id, life.inc, said, whose(ticket))]
        if model is not None and model != said:
            opinions.append((MODEL_NODE, 0, model, NOBODYS))
        for node, inc, opinion, (client, connection, arrival) in opinions:
            self.history.add(
                "decide",
                node=node,
                inc=inc,
                client=client,
                op=connection,
                partition=number,
                term=term,
                log_index=partition.state.applied,
                pid=who.producer_id,
                epoch=who.epoch,
                seq=who.first_sequence,
                seq_last=who.last_sequence,
                code=opinion.code,
                off=opinion.off,
                aux=arrival,
            )

    def committed(self, life: Life, partition: Partition, entries: Sequence[Entry]) -> None:
        """A replica applies these entries. The model applies each once, and its new state gets a
        row."""
        group = partition.settings.group
        if partition.settings.profile.rulebook.name not in MODELLED or group not in self.partitions:
            return
        replay = self._replays.get(group)
        if replay is None:
            replay = self._replays[group] = replay_of(partition.settings.profile.rulebook.name)
        before = replay.applied
        self.remnants.replay(group, replay, entries)
        if replay.applied > before:
            self.history.add(
                "state",
                node=MODEL_NODE,
                inc=0,
                partition=self.partitions[group],
                log_index=replay.applied,
                state_hash=replay.digest(),
            )
        self.remnants.applied(life, group, entries)

    def restored(self, life: Life, partition: Partition, remnant: Remnant) -> None:
        """A replica began with a snapshot, and keeps only a part of it."""
        self.remnants.add(life, partition.settings.group, remnant)

    def said(self, life: Life, message: RequestVote | VoteReply) -> None:
        """A message leaves a node: a vote in it can be counted from now on."""
        if isinstance(message, VoteReply):
            candidate = message.to if message.granted and not message.pre else None
        else:
            candidate = None if message.pre else message.sender
        if candidate is not None and self.knows(life, message.group):
            self.history.add(
                "vote",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[message.group],
                term=message.term,
                cand=candidate,
                aux=1,
            )

    def final(
        self, lives: Mapping[NodeId, Life], placement: Collection[int], decoder: Decoder
    ) -> None:
        """Rows for all logs at the end, record by record, in the order of nodes and groups, and for
        what nodes say of them. `placement`: the partitions that were placed."""
        for life in lives.values():
            self.metadata.add_final(life, placement)
        for (node, group), view in sorted(self.views.items(), key=lambda each: each[0]):
            if self.partitions[group] >= 0 and node in lives:
                for entry in lives[node].store.scan(group):
                    for row in final_rows(entry, view, decoder):
                        self.history.add(
                            "final", node=node, partition=self.partitions[group], **row
                        )

    def entry_row(
        self, kind: str, life: Life, group: GroupId, index: LogIndex, aux: int | None
    ) -> None:
        """A row about one entry, *append* or *apply*."""
        seen = self.view(life.node_id, group).at(index)
        self.history.add(
            kind,
            node=life.node_id,
            inc=life.inc,
            partition=self.partitions[group],
            term=seen.term,
            log_index=index,
            off=seen.off,
            pid=seen.pid,
            epoch=seen.epoch,
            seq=seen.seq,
            seq_last=seen.seq_last,
            chain=seen.chain,
            hw=seen.next_off,
            aux=aux,
        )
