"""What reading Redpanda's sources made doubtful (RP-SUSPECTS), asked of the partition.

The other suspects are in `tests/idempotency/test_suspects.py`; `docs/explanation/suspects.md` is
the list with the answers.
"""

from __future__ import annotations

import pytest

from broker_core_clients import parsed
from broker_core_partition import (
    ELSEWHERE,
    FULL,
    GAP,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    batch,
    make_partition,
    outcome,
)
from broker_core_world import ELECTION, MS, NODES, SECOND, World
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import DeleteRecordsTicket, ProduceTicket
from ottla.log.build import build_batch, seal
from ottla.log.types import RecordBatch

SOON = 1000


def led():
    """A world with a leader that serves."""
    world = World(1)
    world.until(world.leader, 5 * SECOND, "a leader")
    life = world.leader()
    assert life is not None
    return world, life


def send(life, data: RecordBatch, within):
    now = life.world.kernel.now
    ticket = ProduceTicket(data, -1, lambda _: None, now + within)
    life.ticket(ticket)
    return ticket


# ---- S1: a queued batch times out, is skipped, and its successor is appended


@pytest.mark.parametrize("where", ["queue", "mutex", "log"])
def test_s1_a_batch_that_times_out_in_the_queue_leaves_no_hole(where):
    driver = PartitionDriver(make_partition(queue_bytes=1))
    driver.serve()
    if where == "mutex":
        driver.produce(7, 0)
    sequence = 1 if where == "mutex" else 0
    a = driver.produce(7, sequence, within=SOON)
    b = driver.produce(7, sequence + 1)
    driver.propose(inflight=0 if where == "log" else FULL)
    driver.sleep(SOON)
    assert outcome(a)[0] is TIMED_OUT
    driver.settle()
    assert driver.ranges() == [(7, each) for each in range(sequence + 2)]
    assert outcome(b) == (NONE, sequence + 1)


def test_s1_nor_does_a_failed_one():
    driver = PartitionDriver()
    driver.serve()
    driver.produce(7, 0)
    driver.settle()
    a, b = driver.produce(7, 1, within=SOON), driver.produce(7, 2)
    assert driver.propose(inflight=FULL) == []
    driver.sleep(SOON)
    driver.propose(refuse=True)
    driver.settle()
    late = driver.produce(7, 2)
    driver.barrier(confirmed=True)
    assert [outcome(each)[0] for each in (a, b, late)] == [TIMED_OUT, ELSEWHERE, GAP]
    assert driver.ranges() == [(7, 0)]


# ---- S6: a client's short timeout costs the leader its leadership


@pytest.mark.parametrize("within", [0, -1, MS])
def test_s6_a_clients_timeout_costs_no_leadership(within):
    world, life = led()
    term = life.replica.core.term
    for peer in NODES:
        if peer != life.node:
            world.options.slow.add(peer)
    tickets = [send(life, batch(7, sequence), within) for sequence in range(5)]
    world.kernel.run(ELECTION)
    assert {each.error for each in tickets} == {TIMED_OUT}
    assert (world.leader(), life.replica.core.term) == (life, term)
    world.options.slow.clear()
    world.until(lambda: life.machine.state.high_watermark == 5, 5 * SECOND, "the data stays")
    assert world.counters.step_downs == 0


# ---- S7: malformed requests cost the leader its leadership


def flipped(data: bytes, at: int, value: bytes) -> RecordBatch:
    return parsed(seal(data[:at] + value + data[at + len(value) :]))


GOOD = build_batch([b"v"] * 3, producer_id=7, producer_epoch=0, base_sequence=0)
MALFORMED = {
    "no records": (flipped(GOOD, 57, bytes(4)), ErrorCode.INVALID_RECORD),
    "negative delta": (flipped(GOOD, 23, b"\xff" * 4), ErrorCode.INVALID_RECORD),
    "negative sequence": (flipped(GOOD, 53, b"\xff" * 4), ErrorCode.INVALID_RECORD),
    "control": (flipped(GOOD, 21, b"\x00\x20"), ErrorCode.INVALID_RECORD),
    "unknown codec": (flipped(GOOD, 21, b"\x00\x07"), ErrorCode.UNKNOWN_SERVER_ERROR),
    "wrong crc": (parsed(GOOD[:17] + bytes(4) + GOOD[21:]), ErrorCode.CORRUPT_MESSAGE),
    "too large": (batch(7, 0, 2000), ErrorCode.MESSAGE_TOO_LARGE),
    "stale epoch": (batch(9, 0, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_s7_a_malformed_batch_costs_no_leadership(kind):
    bad, code = MALFORMED[kind]
    driver = PartitionDriver()
    driver.serve()
    driver.produce(9, 0, epoch=1)
    driver.settle()
    refused = driver.send(bad)
    driver.settle()
    assert outcome(refused)[0] is code
    leadership = driver.machine.leadership
    assert (leadership.leading, leadership.synced) == (True, True)
    assert driver.ranges() == [(9, 0)]
    straddling = driver.produce(7, 2**31 - 2, 5)
    driver.settle()
    assert outcome(straddling) == (NONE, 1), "a batch across the wrap is well formed"


# ---- S10: replicas hydrated by a Raft snapshot know no producers


def test_s10_a_replica_restored_from_a_snapshot_knows_the_producers():
    driver = PartitionDriver()
    driver.serve()
    for sequence in range(3):
        driver.produce(7, sequence)
    driver.settle()
    driver.delete_records(-1)
    driver.settle()
    compaction = driver.compactions[-1]
    fresh = PartitionDriver(make_partition())
    fresh.log = driver.log[: compaction.index]
    fresh.restore(compaction)
    fresh.serve(2)
    for sequence in range(3):
        assert outcome(fresh.produce(7, sequence)) == (NONE, sequence)
    gap = fresh.produce(7, 4)
    fresh.barrier(confirmed=True)
    assert outcome(gap)[0] is GAP


def test_s10_so_does_one_that_a_leader_sent_its_snapshot_to():
    world, life = led()
    behind = next(node for node in NODES if node != life.node)
    world.crash(behind)
    tickets = [send(life, batch(7, sequence), SECOND) for sequence in range(8)]
    world.until(lambda: all(each.done for each in tickets), SECOND, "stored")
    assert {each.error for each in tickets} == {NONE}
    life.ticket(_delete_all(life))
    world.until(lambda: life.replica.core.first_index > 5, SECOND, "compacted")
    world.start(behind)
    other = world.lives[behind]
    world.until(lambda: other.machine.applied == life.machine.applied, 5 * SECOND, "caught up")
    assert other.replica.core.first_index == life.replica.core.first_index
    assert other.machine.table.digest() == life.machine.table.digest()


def _delete_all(life):
    return DeleteRecordsTicket(-1, lambda _: None, life.world.kernel.now + SECOND)


# ---- S13: a delayed step-down unseats a newer term of the same node


def test_s13_a_step_down_ends_only_the_term_it_was_meant_for():
    """Nothing is kept to be done later: `step_down` ends the leadership of its own instant."""
    world, life = led()
    term = life.replica.core.term
    life.step_down()
    life.step_down()
    world.kernel.run(MS)
    assert not life.machine.leadership.leading
    assert life.replica.core.term == term, "no term is skipped by resigning"
    for other in world.alive():
        if other is not life:
            other.pause()
    world.kernel.run(ELECTION)
    for other in world.alive():
        if other is not life:
            other.resume()
    world.until(lambda: _leads(life), 30 * SECOND, "it leads again")
    again = life.replica.core.term
    assert again > term
    world.kernel.run(5 * ELECTION)
    assert (world.leader(), life.replica.core.term) == (life, again)


def _leads(life):
    found = life.world.leader()
    if found is not None and found is not life:
        found.replica.core.transfer(life.node, life.world.kernel.now)
        found.mark()
    return found is life
