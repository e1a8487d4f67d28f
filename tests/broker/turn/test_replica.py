"""One turn of a replica: what leaves together, in which order, and what waits for the disk.

Expectations from docs/explanation/architecture.md (the turn) and `effects.py`. Most
tests hand a lone replica its messages; the last two watch a world of three.
"""

from __future__ import annotations

from broker_core_clients import Connection
from broker_core_partition import NONE, TIMED_OUT, batch, make_partition
from broker_core_replicas import (
    GROUP,
    NOW,
    FirstJitter,
    alone,
    config,
    produce,
    serving,
    synced,
)
from broker_core_world import MS, NODES, SECOND, Options, World
from ottla.broker.errors import ErrorCode
from ottla.broker.partition.commands import encode_command
from ottla.broker.turn.effects import EntriesRead
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import (
    DeleteRecordsTicket,
    ListOffsetsTicket,
    ProduceTicket,
    answer,
)
from ottla.log.build import build_batch
from ottla.raft.core import RaftCore
from ottla.raft.messages import AppendEntries, AppendReply, SnapshotReply
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.types import Entry, EntryKind, HardState


def appends(effects):
    return [each for each in effects.messages if isinstance(each, AppendEntries)]


def test_a_turn_sends_one_append_per_follower_and_writes_once():
    replica = serving()
    for number in range(10):
        produce(replica, batch(7, number))
        produce(replica, batch())
    effects = replica.turn(NOW)
    assert [(each.to, each.prev_index, each.last_index) for each in appends(effects)] == [
        (2, 2, 22),
        (3, 2, 22),
    ]
    (write,) = effects.writes
    assert (write.first, len(write.entries), write.truncate) == (3, 20, False)
    assert effects.persisted == (22, 1)


def test_acks_1_is_answered_after_the_append_and_acks_all_by_the_turn_that_sees_the_commit():
    replica = serving()
    quick, safe = produce(replica, batch(7, 0), acks=1), produce(replica, batch(8, 0))
    effects = replica.turn(NOW)
    assert (list(effects.answers), list(effects.answers_after_append)) == ([], [quick])
    synced(replica, effects)
    assert replica.turn(NOW).answers == ()
    replica.submit(AppendReply(GROUP, 2, 1, 1, True, 4))
    assert list(replica.turn(NOW).answers) == [safe]


def test_the_own_disk_counts_only_when_it_has_synced():
    replica = serving()
    ticket = produce(replica, batch(7, 0))
    replica.turn(NOW)
    replica.submit(AppendReply(GROUP, 2, 1, 1, True, 3))
    assert replica.turn(NOW).answers == (), "one follower's disk is no majority"
    replica.submit(AppendReply(GROUP, 3, 1, 1, True, 3))
    assert list(replica.turn(NOW).answers) == [ticket], "two followers' disks are"
    other = produce(replica, batch(7, 1))
    effects = replica.turn(NOW)
    assert not other.done
    synced(replica, effects)
    assert replica.turn(NOW).answers == (), "the own disk alone is no majority"


def test_a_vote_and_the_term_it_is_of_are_one_write_and_the_vote_waits_for_it():
    replica = alone()
    effects = replica.turn(NOW)
    assert effects.writes[0].entries[0].kind is EntryKind.EMPTY
    candidate = make_candidate()
    effects = candidate.turn(NOW)
    assert effects.writes[-1].hard_state == HardState(1, 1)
    assert not effects.messages
    assert {each.to for each in effects.messages_after} == {2, 3}


def make_candidate():
    machine = make_partition()
    log, entries = bootstrap(NODES)
    machine.appended(entries)
    core = RaftCore(config(), hard_state=HardState(), log=log, jitter=FirstJitter(), now=NOW)
    core.campaign(NOW)
    return Replica(GROUP, core, machine, entries)


def test_no_patience_at_all_hears_the_real_offset():
    replica = serving()
    produce(replica, batch(8, 0, 5))
    ticket = produce(replica, batch(7, 0), deadline=NOW)
    effects = replica.turn(NOW)
    assert list(effects.answers) == [ticket]
    assert (ticket.error, ticket.base_offset) == (TIMED_OUT, 5)


def test_a_lone_replica_commits_with_its_own_disk():
    replica = alone(voters=(1,))
    assert not replica.leading, "its vote is not on its disk"
    synced(replica, replica.turn(NOW))
    replica.turn(NOW)
    ticket = produce(replica, batch(7, 0))
    effects = replica.turn(NOW)
    assert not ticket.done
    synced(replica, effects)
    assert list(replica.turn(NOW).answers) == [ticket]
    assert ticket.error is NONE


# ---- reads are effects


def remembered():
    """A follower that starts with a log it has not applied: nothing of it is at hand."""
    machine = make_partition()
    entries = list(bootstrap(NODES)[1])
    for index in range(2, 6):
        data = batch(7, index - 2)
        data.stamp(index - 2, 1)
        entries.append(Entry(index, 1, EntryKind.BATCH, data))
    machine.appended(entries)
    core = RaftCore(
        config(),
        hard_state=HardState(1),
        log=RaftLog.restore(None, entries),
        jitter=FirstJitter(),
        now=NOW,
    )
    return Replica(GROUP, core, machine), entries


def test_a_replica_that_starts_anew_knows_the_term_on_its_disk():
    """It took its term for 0 until somebody was elected, and told readers of an older epoch that
    theirs was too new."""
    replica, _ = remembered()
    told: list[ListOffsetsTicket] = []
    for epoch in (0, 1, 2):
        replica.submit(ListOffsetsTicket(-1, epoch, told.append, NOW + SECOND))
    answer(replica.turn(NOW).answers, 1)
    assert [each.error for each in told] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]


def heartbeat(commit):
    return AppendEntries(GROUP, 2, 1, 1, 5, 1, 5, commit)


def test_what_is_committed_and_not_at_hand_is_asked_for_once_and_applied_when_it_comes():
    replica, entries = remembered()
    replica.submit(heartbeat(4))
    effects = replica.turn(NOW)
    assert effects.read == (1, 4)
    replica.submit(heartbeat(5))
    assert replica.turn(NOW).read is None
    replica.submit(EntriesRead(entries[:2]))
    effects = replica.turn(NOW)
    assert replica.applied == 2
    assert effects.read == (3, 5)
    replica.submit(EntriesRead(entries[2:]))
    replica.turn(NOW)
    assert (replica.applied, replica.machine.state.high_watermark) == (5, 4)


def test_a_read_that_a_truncation_overtook_is_cut_at_the_commit():
    replica, entries = remembered()
    replica.submit(heartbeat(3))
    assert replica.turn(NOW).read == (1, 3)
    replica.submit(EntriesRead(entries))
    replica.turn(NOW)
    assert replica.applied == 3


def test_new_entries_behind_what_must_be_read_wait_for_it():
    replica, entries = remembered()
    data = batch(7, 4)
    data.stamp(4, 1)
    new = Entry(6, 1, EntryKind.BATCH, data)
    replica.submit(AppendEntries(GROUP, 2, 1, 1, 5, 1, 6, 6, [new]))
    effects = replica.turn(NOW)
    assert effects.read == (1, 5)
    replica.submit(EntriesRead(entries))
    replica.turn(NOW)
    assert replica.applied == 6


# ---- compaction


def test_compaction_waits_until_its_entries_are_durable():
    replica, entries = remembered()
    replica.submit(heartbeat(5))
    replica.turn(NOW)
    replica.submit(EntriesRead(entries))
    replica.turn(NOW)
    data = batch(7, 4)
    data.stamp(4, 1)
    decision = encode_command("delete_records", 5)
    new = [Entry(6, 1, EntryKind.BATCH, data), Entry(7, 1, EntryKind.COMMAND, decision)]
    replica.submit(AppendEntries(GROUP, 2, 1, 1, 5, 1, 7, 7, new))
    effects = replica.turn(NOW)
    assert replica.applied == 7
    assert [each.snapshot for each in effects.writes] == [None]
    synced(replica, effects)
    (write,) = replica.turn(NOW).writes
    assert write.snapshot is not None
    assert (write.snapshot.meta.index, write.compact_to, write.reset) == (7, 7, False)
    assert replica.core.first_index == 8


# ---- who is in sync


LATER = NOW + 3600 * SECOND
"""Nobody was heard of for so long that nobody else is in sync."""


def in_sync_after(*replies):
    """Who is in sync at `LATER`, when all of the leader's log is committed and these come in."""
    replica = serving()
    produce(replica, batch(7, 0))
    synced(replica, replica.turn(NOW))
    replica.submit(AppendReply(GROUP, 2, 1, 1, True, 3))
    replica.turn(NOW)
    for reply in replies:
        replica.submit(reply)
    replica.turn(LATER)
    return replica.machine.state.in_sync.in_sync(LATER)


def test_a_follower_is_in_sync_once_it_acknowledges_the_end_of_the_log():
    assert in_sync_after() == (1,)
    assert in_sync_after(AppendReply(GROUP, 3, 1, 1, True, 3)) == (1, 3)
    assert in_sync_after(AppendReply(GROUP, 3, 1, 1, True, 4)) == (1,), "more than there is"
    assert in_sync_after(AppendReply(GROUP, 3, 1, 0, True, 3)) == (1,), "of another term"


def test_a_snapshot_that_is_the_whole_log_brings_its_follower_in_sync():
    """It did not, until the next entry; where all replicas must be in sync no entry ever came: the
    leader answered NOT_ENOUGH_REPLICAS for good (seed 246347902 with min_insync=3 replicas=3)."""
    assert in_sync_after(SnapshotReply(GROUP, 3, 1, 1, 3, 0, True)) == (1, 3)
    assert in_sync_after(SnapshotReply(GROUP, 3, 1, 1, 3, 9, False)) == (1,), "not all of it yet"
    assert in_sync_after(SnapshotReply(GROUP, 3, 1, 1, 4, 0, True)) == (1,), "more than there is"
    assert in_sync_after(SnapshotReply(GROUP, 3, 1, 0, 3, 0, True)) == (1,), "of another term"


# ---- what was stored and is replaced


def test_replaced_entries_are_named_in_order():
    replica = serving()
    kept = [produce(replica, batch(7, number), acks=1) for number in range(2)]
    effects = replica.turn(NOW)
    synced(replica, effects)
    lost = [each.payload for each in effects.writes[0].entries]
    other = Entry(3, 2, EntryKind.EMPTY, b"")
    replica.submit(AppendEntries(GROUP, 2, 1, 2, 2, 1, 3, 2, [other]))
    effects = replica.turn(NOW)
    assert [each.payload for each in effects.dropped] == lost
    assert (effects.writes[-1].first, effects.writes[-1].truncate) == (3, True)
    assert [each.done for each in kept] == [True, True]


# ---- the whole of it


def test_group_commit_a_slow_disk_takes_fewer_syncs_than_requests():
    world = World(3, Options(leader_queue_bytes=1 << 20))
    world.until(world.leader, 5 * SECOND, "a leader")
    life = world.leader()
    assert life is not None
    answers: list[ProduceTicket] = []
    connection = Connection(world, life.node)
    for number in range(200):
        data = build_batch([b"v"], producer_id=7, producer_epoch=0, base_sequence=number)
        connection.produce(data, -1, SECOND, answers.append)
    before = world.disks[life.node].synced_appends
    world.until(lambda: len(answers) == 200, 5 * SECOND, "answers")
    assert {each.error for each in answers} == {NONE}
    assert [each.base_offset for each in answers] == list(range(200))
    assert world.disks[life.node].synced_appends - before < 100


def test_a_log_start_in_the_world_makes_every_replica_compact():
    world = World(4)
    world.until(world.leader, 5 * SECOND, "a leader")
    life = world.leader()
    assert life is not None
    connection = Connection(world, life.node)
    answers: list[ProduceTicket] = []
    for _ in range(20):
        connection.produce(build_batch([b"v"]), -1, SECOND, answers.append)
    world.until(lambda: len(answers) == 20, 5 * SECOND, "answers")
    life.ticket(DeleteRecordsTicket(-1, lambda _: None, world.kernel.now + SECOND))
    world.kernel.run(500 * MS)
    firsts = {each.replica.core.first_index for each in world.alive()}
    assert len(firsts) == 1
    assert firsts.pop() > 20
