"""`Replica.follow`: the turn of an idle follower that is sent what comes next."""

from __future__ import annotations

from broker_core_ground import Lone
from broker_core_partition import batch, make_partition
from broker_core_replicas import GROUP, NOW, FirstJitter, config
from broker_core_world import NODES
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.replica import MOST_UNAPPLIED, Replica
from ottla.broker.turn.watcher import Watcher
from ottla.log.store import Write
from ottla.raft.core import RaftCore
from ottla.raft.messages import AppendEntries, AppendReply
from ottla.raft.raft_log import bootstrap
from ottla.raft.types import Entry, EntryKind, HardState


def follower() -> Replica:
    """Node 1, which follows node 2 in term 1 and has its first entry."""
    log, entries = bootstrap(NODES)
    machine = make_partition()
    machine.appended(entries)
    core = RaftCore(config(), hard_state=HardState(1), log=log, jitter=FirstJitter(), now=NOW)
    replica = Replica(GROUP, core, machine, entries)
    first = [Entry(2, 1, EntryKind.EMPTY, b"")]
    replica.submit(AppendEntries(GROUP, 2, 1, 1, 1, 0, 2, 1, first))
    effects = replica.turn(NOW)
    assert effects.persisted is not None
    replica.synced(*effects.persisted, NOW)
    replica.turn(NOW)
    return replica


def end_of(replica: Replica) -> int:
    """The last entry that the partition has seen."""
    assert isinstance(replica.machine, Partition)
    return replica.machine.last_index


def append(replica: Replica, *, commit: int) -> AppendEntries:
    """One more record from the leader."""
    last = replica.core.last_index
    data = batch()
    data.stamp(last - 2, 1)
    entry = Entry(last + 1, 1, EntryKind.BATCH, data)
    return AppendEntries(GROUP, 2, 1, 1, last, 1, last + 1, commit, [entry])


def test_it_takes_what_comes_next_and_leaves_the_commit_to_the_next_turn() -> None:
    replica = follower()
    assert replica.follow(append(replica, commit=2), NOW) == AppendReply(GROUP, 1, 2, 1, True, 3)
    assert (end_of(replica), replica.applied) == (3, 1)
    effects = replica.turn(NOW)
    assert (replica.applied, effects.writes, effects.messages_after) == (2, (), ())


def test_much_that_is_committed_is_applied_at_once() -> None:
    replica = follower()
    for _ in range(MOST_UNAPPLIED):
        assert replica.follow(append(replica, commit=replica.core.last_index), NOW) is not None
        assert replica.applied == 1
    assert replica.follow(append(replica, commit=replica.core.last_index), NOW) is not None
    assert replica.applied == replica.core.commit == MOST_UNAPPLIED + 2
    assert end_of(replica) == MOST_UNAPPLIED + 3


def test_the_node_is_told_of_what_is_applied_at_once() -> None:
    """It was told with the next turn only, which a run of the simulator may end before (seed 33
    with `records=1000 batch_records=1 load_ms=1000 fault_every_ms=400`)."""
    lone, told = Lone((), NODES), list[int]()
    replica = follower()
    log = [*bootstrap(NODES)[1], Entry(2, 1, EntryKind.EMPTY, b"")]
    lone.runner.write([Write(GROUP, first=1, entries=log)])
    assert lone.store.begin_sync() is None
    lone.runner.add(replica)
    lone.ground.run()
    lone.runner.watch(Watcher(applied=lambda _: told.append(replica.applied)))
    taken = lone.runner.turns
    for number in range(MOST_UNAPPLIED + 1):
        assert told == []
        lone.runner.receive(append(replica, commit=replica.core.last_index))
        assert lone.runner.turns == taken + number + 1
    assert told == [MOST_UNAPPLIED + 2]


def test_with_something_in_the_inbox_it_takes_nothing() -> None:
    replica = follower()
    message = append(replica, commit=2)
    replica.submit(message)
    assert replica.follow(message, NOW) is None
    assert replica.core.last_index == 2
