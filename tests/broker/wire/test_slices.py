"""Large requests take many turns of the loop, in which others are served, and keep their order.

How much a turn does is counted in test_slices.py; here it is whole requests over real sockets,
beside a client that asks for little.
"""

import asyncio
from functools import cache

import pytest

from broker_wire import api_versions, default_host, frame, produce_frame, run
from broker_wire_fetch import fetch, offsets, only
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.slices import SLICE_UNITS, TURN_UNITS, Slices
from ottla.broker.wire.answers import (
    FetchAnswer,
    PartitionFetched,
    PartitionProduced,
    ProduceAnswer,
    TopicFetched,
    TopicProduced,
)
from ottla.broker.wire.api.create_topics import COMMAND_UNITS
from ottla.broker.wire.api.fetch import WATCH_STEP, WATCHES_AT_ONCE
from ottla.broker.wire.translation import fetch_answer, produce_answer
from ottla.broker.wire.translation.fetch_answer import BATCHES_A_UNIT
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch

MANY = 20 * TURN_UNITS
OK = ErrorCode.NONE


def metadata():
    """So many names that nobody knows."""
    topics = [{"topic_id": None, "name": f"x{n}"} for n in range(MANY)]
    asked = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    return frame("metadata", 12, topics=topics, **asked)


def produce():
    """An unknown topic of so many partitions."""
    data = [{"index": n, "records": b"x" * 70} for n in range(MANY)]
    topics = [{"name": "nobody", "partition_data": data}]
    return frame("produce", 9, transactional_id=None, acks=-1, timeout=100, topic_data=topics)


def list_offsets():
    """Of so many partitions that nobody knows."""
    wanted = [{"partition_index": n, "timestamp": -1} for n in range(MANY)]
    topics = [{"name": "nobody", "partitions": wanted}]
    return frame("list_offsets", 6, replica_id=-1, isolation_level=0, topics=topics)


def fetch_nobody():
    """Of so many partitions that nobody knows, and one that is there."""
    wanted = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 9} for n in range(MANY)]
    topics = [{"topic": "nobody", "partitions": wanted}]
    fields = {"max_wait": 0, "min_bytes": 1, "max_bytes": 99, "forgotten_topics_data": []}
    return frame("fetch", 12, topics=topics, **fields)


def epochs():
    """Of so many partitions that nobody knows."""
    wanted = [{"partition": n, "leader_epoch": 0, "current_leader_epoch": -1} for n in range(MANY)]
    topics = [{"topic": "nobody", "partitions": wanted}]
    return frame("offset_for_leader_epoch", 4, replica_id=-1, topics=topics)


def delete_records():
    """Of so many partitions that nobody knows."""
    wanted = [{"partition_index": n, "offset": -1} for n in range(MANY)]
    topics = [{"name": "nobody", "partitions": wanted}]
    return frame("delete_records", 2, timeout=100, topics=topics)


def create_topics():
    """The same name so often, for nothing."""
    counts = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [{"name": f"x{n // 2}", **counts} for n in range(MANY * 3 // 4)]
    return frame("create_topics", 7, topics=topics, timeout=100, validate_only=True)


def delete_topics():
    """So many entries that name nothing."""
    topics = [{"name": None, "topic_id": None}] * MANY
    return frame("delete_topics", 6, topics=topics, timeout=100)


def find_coordinator():
    """Of so many groups."""
    keys = [f"g{n}" for n in range(MANY)]
    return frame("find_coordinator", 4, key_type=0, coordinator_keys=keys)


def offset_commit():
    """Of so many partitions."""
    offsets = {"committed_offset": 7, "committed_metadata": "", "committed_leader_epoch": -1}
    parts = [{"partition_index": n, **offsets} for n in range(MANY)]
    member = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    topics = [{"name": "t", "partitions": parts}]
    return frame("offset_commit", 8, group_id="g", **member, topics=topics)


def offset_fetch():
    """Of so many groups."""
    topics = [{"name": "t", "partition_indexes": [0]}]
    groups = [{"group_id": f"g{n}", "topics": topics} for n in range(MANY // 2 - MANY // 8)]
    return frame("offset_fetch", 8, groups=groups, require_stable=False)


def describe_groups():
    """So many of them."""
    groups = [f"g{n}" for n in range(MANY)]
    return frame("describe_groups", 5, groups=groups, include_authorized_operations=False)


def describe_newer_groups():
    """So many of them."""
    groups = [f"g{n}" for n in range(MANY)]
    asked = {"include_authorized_operations": False}
    return frame("consumer_group_describe", 0, group_ids=groups, **asked)


def delete_groups():
    """So many of them."""
    return frame("delete_groups", 2, groups_names=[f"g{n}" for n in range(MANY)])


LARGE = [
    # Each is encoded once: that takes as long as the answer does.
    cache(large)
    for large in (
        metadata,
        produce,
        list_offsets,
        fetch_nobody,
        epochs,
        delete_records,
        create_topics,
        delete_topics,
        find_coordinator,
        offset_commit,
        offset_fetch,
        describe_groups,
        describe_newer_groups,
        delete_groups,
    )
]


class Counted(Slices):
    """Keeps what the steps of each turn of the loop cost."""

    def __init__(self):
        super().__init__(self.soon)
        self.turns: list[list[int]] = [[]]

    def soon(self, call):
        def turn():
            self.turns.append([])
            call()

        asyncio.get_running_loop().call_soon(turn)

    def run(self, job):
        job.steps = self.counted(job.steps)
        return super().run(job)

    def counted(self, steps):
        for cost in steps:
            self.turns[-1].append(cost)
            yield cost


@pytest.mark.parametrize("large", LARGE)
def test_no_turn_does_more_than_its_units(large):
    """Counted, not timed: each step says what it costs, and none of them is much."""

    async def test(wire):
        raw = await wire.raw()
        raw.write(large())
        assert len(await raw.frame()) > MANY
        turns = wire.host.slices.turns
        assert sum(map(sum, turns)) >= MANY
        assert max(map(max, filter(None, turns))) <= COMMAND_UNITS + 1
        assert max(map(sum, turns)) <= TURN_UNITS + SLICE_UNITS + COMMAND_UNITS

    host = default_host()
    host.slices = Counted()
    run(test, host)


FETCH = {"max_wait": 0, "min_bytes": 1, "max_bytes": 9, "forgotten_topics_data": []}
EMPTY = [
    ("produce", 9, "name", {"transactional_id": None, "acks": -1, "timeout": 100}),
    ("fetch", 12, "topic", FETCH),
    ("list_offsets", 6, "name", {"replica_id": -1, "isolation_level": 0}),
    ("delete_records", 2, "name", {"timeout": 100}),
    ("offset_for_leader_epoch", 4, "topic", {"replica_id": -1}),
]
"""API, version, how a topic is named, what else the request must have."""


@pytest.mark.parametrize(("api", "version", "name", "fields"), EMPTY)
def test_topics_without_partitions_take_their_turns_too(api, version, name, fields):
    """19,900 of them in one Produce were looked at in one turn: 90 ms."""
    topics, partitions = "topics", "partitions"
    if api == "produce":
        topics, partitions = "topic_data", "partition_data"

    async def test(wire):
        raw = await wire.raw()
        empty = [{name: f"t{n}", partitions: []} for n in range(MANY)]
        raw.write(frame(api, version, **{topics: empty}, **fields))
        await raw.frame()
        turns = wire.host.slices.turns
        assert sum(map(sum, turns)) >= MANY
        assert max(map(sum, turns)) <= TURN_UNITS + SLICE_UNITS

    host = default_host()
    host.slices = Counted()
    run(test, host)


def test_few_watches_of_one_fetch_end_together():
    """Each wakes its replica: 333 of them that ended within 80 ms were one turn of 60 ms."""
    many = 5 * WATCHES_AT_ONCE

    async def test(wire):
        raw = await wire.raw()
        parts = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 9} for n in range(many)]
        fields = {"max_wait": 60_000, "min_bytes": 1, "max_bytes": 99, "forgotten_topics_data": []}
        topics = [{"topic": "wide", "partitions": parts}]
        raw.write(frame("fetch", 12, topics=topics, **fields))
        replicas = [wire.host.replicas["wide", n] for n in range(many)]
        while not all(each.watches for each in replicas):
            await wire.tick()
        ends = [watch.deadline for each in replicas for watch in each.watches]
        assert ends == sorted(ends)
        for n in range(5):
            together = ends[n * WATCHES_AT_ONCE : (n + 1) * WATCHES_AT_ONCE]
            assert together == [ends[0] + n * WATCH_STEP] * WATCHES_AT_ONCE

    host = default_host()
    host.add_topic("wide", many)
    run(test, host)


@pytest.mark.parametrize("version", [4, 12])
def test_an_answer_to_a_fetch_is_packed_in_steps(version):
    batch = read_batch(build_batch([b"v"]))
    assert isinstance(batch, RecordBatch)
    batches = [batch] * (4 * BATCHES_A_UNIT + 1)
    parts = [PartitionFetched(0, OK, batches=batches), PartitionFetched(1, OK)]
    pieces: list[bytes | memoryview] = []
    answer = FetchAnswer([TopicFetched("t", parts)])
    steps = list(fetch_answer.pack_in_steps(version, answer, pieces))
    assert steps == [1] * (4 + len(parts) + 1)


@pytest.mark.parametrize("version", [4, 12])
@pytest.mark.parametrize(("size", "most"), [(1, 100), (4000, 100), (8200, 2010)])
def test_small_batches_become_few_pieces_and_large_ones_are_not_copied(version, size, most):
    """Thirty clients that fetched 20,000 batches each made turns of 100 ms: a million pieces were
    counted and handed on one by one."""
    batch = read_batch(build_batch([bytes(size)]))
    assert isinstance(batch, RecordBatch)
    batches = [batch] * 999
    pieces: list[bytes | memoryview] = []
    answer = FetchAnswer([TopicFetched("t", [PartitionFetched(0, OK, batches=batches)])])
    list(fetch_answer.pack_in_steps(version, answer, pieces))
    assert len(pieces) <= most + 10
    assert b"".join(pieces).count(batch.stamped()) == 999
    assert (sum(isinstance(each, memoryview) for each in pieces) == 999) == (size > 8192)


@pytest.mark.parametrize("version", range(3, 13))
def test_an_answer_to_a_produce_is_packed_in_steps(version):
    parts = [PartitionProduced(n, OK) for n in range(50)]
    answer = ProduceAnswer([TopicProduced(name, parts) for name in ("t", "u")])
    pieces: list[bytes | memoryview] = []
    steps = list(produce_answer.pack_in_steps(version, answer, pieces))
    assert steps == [1] * (2 * 50 + 2)
    assert len(pieces) == 1


@pytest.mark.parametrize("large", LARGE)
def test_others_are_served_while_a_large_request_is_at_work(large):
    """300,000 names took 8 s in one turn; whoever asked meanwhile waited for all of it."""

    async def test(wire):
        attacker, other = await wire.raw(), await wire.raw()
        attacker.write(large())
        answer = asyncio.ensure_future(attacker.frame())
        served = 0
        while not answer.done():
            other.write(api_versions())
            await other.frame()
            served += 1
        assert served >= 5
        assert len(answer.result()) > MANY

    run(test)


@pytest.mark.parametrize("large", LARGE)
def test_what_is_sent_behind_a_large_request_is_begun_and_answered_behind_it(large):
    async def test(wire):
        raw = await wire.raw()
        raw.write(large() + produce_frame(records=build_batch([b"v"])) + api_versions())
        assert len(await raw.frame()) > MANY
        assert wire.host.submitted == 1
        await raw.frame()
        await raw.frame()

    run(test)


@pytest.mark.parametrize("large", LARGE)
def test_a_client_that_goes_away_takes_its_large_request_along(large):
    async def test(wire):
        raw, other = await wire.raw(), await wire.raw()
        raw.write(large())
        for _ in range(5):
            await wire.tick()
        raw.writer.transport.abort()
        for _ in range(3):
            other.write(api_versions())
            await other.frame()
        assert not wire.failures

    run(test)


def test_a_node_that_is_paused_in_the_midst_goes_on_where_it_was():
    async def test(wire):
        raw = await wire.raw()
        raw.write(metadata())
        for _ in range(5):
            await wire.tick()
        wire.server.pause()
        wire.host.slices.hold(wire.host)
        for _ in range(5):
            await wire.tick()
        wire.host.slices.release(wire.host)
        wire.server.resume()
        assert len(await raw.frame()) > MANY

    run(test)


def test_a_fetch_gives_no_more_batches_than_one_turn_can_bear(monkeypatch):
    monkeypatch.setattr("ottla.broker.wire.api.fetch.MOST_BATCHES", 10)

    async def test(wire):
        client = await wire.client()
        for _ in range(25):
            wire.host.replicas["t", 0].append(read_batch(build_batch([b"v"])))
        for first in (0, 10):
            part = only(await fetch(client, ("t", 0, first), min_bytes=1 << 19, wait=8000))
            assert part.error_code == ErrorCode.NONE
            assert offsets(part) == list(range(first, first + 10))

    run(test)
