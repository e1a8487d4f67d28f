"""Connections that share a bound for half frames: who is read, who goes on, who goes.

The rules themselves are in `test_half_frames.py`; here they meet sockets, pipelines that are full,
a node that is paused, and requests at work.
"""

import asyncio
from struct import pack

import pytest

from broker_wire import api_versions, default_host, frame, produce_frame, run
from ottla.broker.wire import half_frames
from ottla.broker.wire.receiving import FIRST_BUFFER_BYTES, WHOLE_FROM_BYTES
from ottla.log.build import build_batch

K = 1 << 10
LIMIT = 4 * FIRST_BUFFER_BYTES
TIGHT = {"max_request_bytes": LIMIT, "queued_max_request_bytes": LIMIT}


def begun(size, rest):
    """A Produce frame of `size` bytes, without its last `rest`."""
    return pack(">ihhih", size - 4, 0, 9, 1, -1).ljust(size - rest, b"\0")


async def until(wire, what):
    while not what():
        await wire.tick()


def test_a_connection_that_waits_for_memory_is_not_read_and_harms_no_other():
    async def test(wire):
        halves = wire.server.half_frames
        holders = [await wire.raw() for _ in range(4)]
        for each in holders:
            each.write(begun(LIMIT, LIMIT - 10 * K))
        await until(wire, lambda: halves.held == LIMIT)
        late, other = await wire.raw(), await wire.client()
        good = produce_frame(records=build_batch([bytes(100 * K)]))
        late.write(good[: 60 * K])
        await until(wire, lambda: halves.waiting)
        waits = halves.held
        assert waits <= LIMIT + 2 * FIRST_BUFFER_BYTES
        for _ in range(5):
            await other.produce("t", 1, [bytes(5 * K)])
        assert (halves.held, halves.waiting) == (waits, 1)
        late.write(good[60 * K :])
        await asyncio.sleep(0.02)
        assert halves.held == waits, "its socket is not read"
        for each in holders[:2]:
            each.close()
        assert len(await late.frame()) > 0
        await until(wire, lambda: halves.held == 2 * FIRST_BUFFER_BYTES)
        assert halves.waiting == 0

    run(test, default_host(**TIGHT))


def test_frames_that_each_have_a_part_are_all_answered_one_after_the_other():
    async def test(wire):
        raws = [await wire.raw() for _ in range(12)]
        good = produce_frame(records=build_batch([bytes(200 * K)]))
        for each in raws:
            each.write(good[: 60 * K])
        for _ in range(5):
            await wire.tick()
        for each in reversed(raws):
            each.write(good[60 * K :])
        for each in raws:
            assert len(await each.frame()) > 0
        assert (wire.server.half_frames.held, wire.server.half_frames.waiting) == (0, 0)

    run(test, default_host(**TIGHT))


@pytest.mark.slow
def test_a_half_frame_that_takes_too_long_goes_with_a_line_in_the_log(monkeypatch, caplog):
    monkeypatch.setattr(half_frames, "PATIENCE_SECONDS", 0.3)

    async def test(wire):
        slow = [await wire.raw() for _ in range(5)]
        for each in slow:
            each.write(api_versions() + begun(LIMIT, LIMIT - 50 * K))
            await each.frame()
        waits = await wire.raw()
        waits.write(produce_frame(records=build_batch([bytes(200 * K)])))
        assert len(await waits.frame()) > 0
        assert await slow[0].is_closed()
        texts = [each.getMessage() for each in caplog.records]
        assert any("bytes of a frame after" in text for text in texts), texts
        assert any("queued_max_request_bytes is 262144" in text for text in texts), texts

    run(test, default_host(**TIGHT))


def test_nobody_goes_while_nobody_waits(monkeypatch):
    monkeypatch.setattr(half_frames, "PATIENCE_SECONDS", 0.01)

    async def test(wire):
        slow = await wire.raw()
        slow.write(begun(LIMIT, 10))
        await asyncio.sleep(0.1)
        assert not await slow.is_closed(within=0.1)

    run(test, default_host(**TIGHT))


def test_a_whole_frame_that_may_not_begin_counts_and_its_connection_stays(monkeypatch):
    monkeypatch.setattr(half_frames, "PATIENCE_SECONDS", 0.05)

    async def test(wire):
        halves = wire.server.half_frames
        waits = await wire.raw()
        one = produce_frame(records=build_batch([bytes(10 * K)]))
        waits.write(one * 4)
        await until(wire, lambda: wire.host.held and halves.held > 30 * K)
        others = [await wire.raw() for _ in range(3)]
        for each in others:
            each.write(begun(LIMIT, 100))
        await until(wire, lambda: halves.waiting)
        await asyncio.sleep(0.2)
        for _ in range(4):
            await until(wire, lambda: wire.host.held)
            wire.host.complete(wire.host.held[0])
            assert len(await waits.frame()) > 0
        for each in others:
            each.close()
        await until(wire, lambda: halves.held == 0)

    run(test, default_host(hold=True, max_inflight_requests=1, **TIGHT))


def test_what_a_paused_node_does_not_read_is_not_late(monkeypatch):
    monkeypatch.setattr(half_frames, "PATIENCE_SECONDS", 0.2)

    async def test(wire):
        halves = wire.server.half_frames
        good = produce_frame(records=build_batch([bytes(200 * K)]))
        honest = [await wire.raw() for _ in range(6)]
        for each in honest:
            each.write(good[: 60 * K])
        await until(wire, lambda: halves.waiting == 5)
        wire.server.pause()
        for each in honest:
            each.write(good[60 * K :])
        await asyncio.sleep(0.5)
        wire.server.resume()
        for each in honest:
            assert len(await each.frame()) > 0

    run(test, default_host(**TIGHT))


@pytest.mark.parametrize("partitions", [6, 200])
def test_a_large_request_at_work_counts_until_it_is_answered(partitions):
    """Its frame and what is copied out of it are memory, too."""

    async def test(wire):
        halves = wire.server.half_frames
        raw = await wire.raw()
        batch = build_batch([bytes(5 * WHOLE_FROM_BYTES // partitions)])
        data = [{"index": n, "records": batch} for n in range(partitions)]
        topics = [{"name": "t", "partition_data": data}]
        large = frame("produce", 9, transactional_id=None, acks=-1, timeout=100, topic_data=topics)
        raw.write(large)
        await until(wire, lambda: len(wire.host.held) == 3)
        assert halves.held == len(large) - 4
        for each in wire.host.held[:]:
            wire.host.complete(each)
        assert len(await raw.frame()) > 0
        assert halves.held == 0
        raw.write(large)
        await until(wire, lambda: len(wire.host.held) == 3)
        raw.close()
        await until(wire, lambda: halves.held == 0)

    run(test, default_host(hold=True))
