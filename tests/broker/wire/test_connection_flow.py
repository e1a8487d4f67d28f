"""Flow: limits in flight, slow and silent clients, idle connections, pausing a whole node.

Real sockets, because what they buffer is part of the question; times are as short as a busy
machine allows.
"""

import asyncio
import gc
import resource
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from broker_wire import Wire, api_versions, default_host, frame, produce_frame, run
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.produce import MANY_RECORDS
from ottla.broker.wire.connection import WRITE_HIGH_WATER
from ottla.log.build import Codec, build_batch

E = ErrorCode


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_both_event_loops_carry_it(loop):
    async def main():
        async with Wire(default_host()) as wire:
            client = await wire.client()
            batches = [build_batch([bytes([n]) * (n * 40_000 + 1)]) for n in range(12)]
            await asyncio.gather(*(client.send_batch("t", 0, batch) for batch in batches))
            found = await client.fetch("t", 0, 0, max_bytes=1 << 30)
            assert [batch.data[16:] for batch in found.batches] == [b[16:] for b in batches]
            raw = await wire.raw()
            raw.write(b"garbage that is no request")
            assert await raw.is_closed()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(main(), 10))


LONG = build_batch([b"v"] * (MANY_RECORDS + 1), codec=Codec.GZIP)


@pytest.mark.parametrize("acks", [-1, 0])
def test_nothing_begins_behind_a_batch_that_takes_long_to_look_into(acks):
    """One peer had 72 of them at work at once, and its partition took nothing else for minutes."""

    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame(records=LONG, acks=acks) * 3 + api_versions())
        for number in range(1, 4):
            while not wire.host.held:
                await wire.tick()
            for _ in range(5):
                await wire.tick()
            assert wire.host.submitted == number
            wire.host.complete(wire.host.held[0])
            if acks:
                await raw.frame()
        await raw.frame()

    run(test, default_host(hold=True))


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_requests_are_begun_than_the_limit_and_none_is_lost(limit):
    async def test(wire):
        client = await wire.client()
        futures = [client.send_batch("t", 0, build_batch([b"v"])) for _ in range(20)]
        most = done = 0
        while done < 20:
            await wire.tick()
            most = max(most, len(wire.host.held))
            if len(wire.host.held) == min(limit, 20 - done):
                wire.host.complete(wire.host.held[0])
                done += 1
        answers = await asyncio.gather(*futures)
        offsets = [a.responses[0].partition_responses[0].base_offset for a in answers]
        assert (most, offsets) == (limit, list(range(20)))

    run(test, default_host(hold=True, max_inflight_requests=limit))


@pytest.mark.parametrize(("profile", "begun"), [("kafka-4.3", 1), ("reference", 3)])
def test_in_kafka_a_connection_has_one_request_at_a_time(profile, begun):
    """A request of another kind waits, too, and what the setting allows is ignored."""

    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame() * 3 + api_versions())
        while not wire.host.held:
            await wire.tick()
        for _ in range(5):
            await wire.tick()
        assert len(wire.host.held) == begun
        for _ in range(3):
            while not wire.host.held:
                await wire.tick()
            wire.host.complete(wire.host.held[0])
            await raw.frame()
        await raw.frame()

    run(test, default_host(hold=True, profile=profile, max_inflight_requests=3))


def test_no_more_bytes_are_begun_than_the_limit_but_for_one_large_request():
    async def test(wire):
        client = await wire.client()
        small, large = build_batch([b"v" * 900]), build_batch([b"v" * 50_000])
        futures = [client.send_batch("t", 0, batch) for batch in [small, small, large, small]]
        for expected in (2, 2, 1, 1):  # 1 KB and 1 KB are below 1.5 KB, 2 KB are not
            while len(wire.host.held) < expected:
                await wire.tick()
            await wire.tick()
            assert len(wire.host.held) == expected
            wire.host.complete(wire.host.held[0])
        await asyncio.gather(*futures)

    run(test, default_host(hold=True, max_inflight_bytes=1500))


def test_a_connection_at_its_limit_is_read_no_further_and_harms_no_other():
    async def test(wire):
        raw, other = await wire.raw(), await wire.client()
        raw.writer.transport.set_write_buffer_limits(high=1)
        raw.write(produce_frame() * 2)
        await wire.tick()
        sent = 0
        chunk = produce_frame(records=build_batch([bytes(100_000)])) * 5
        while sent < 400:
            raw.write(chunk)
            sent += 1
            try:
                await asyncio.wait_for(raw.writer.drain(), 0.2)
            except TimeoutError:
                break
        assert sent < 400, "the sockets took 200 MB from a client nobody reads"
        assert (await other.call("api_versions", 0)).error_code == E.NONE
        assert len(wire.host.held) == 2

    run(test, default_host(hold=True, max_inflight_requests=2))


def test_a_client_that_never_reads_does_not_fill_the_memory():
    async def test(wire):
        client = await wire.client()
        await client.produce("t", 0, [bytes(1 << 20)])
        raw = await wire.raw()
        raw.writer.transport.pause_reading()
        request = fetch_frame()
        before = wire.host.submitted
        for _ in range(60):
            raw.write(request)
        await asyncio.sleep(0.3)
        begun = wire.host.submitted - before
        assert begun < 40, f"{begun} MB of answers begun for a client that reads none"
        assert (await client.call("api_versions", 0)).error_code == E.NONE
        raw.writer.transport.resume_reading()
        for _ in range(60):
            assert len(await raw.frame()) > WRITE_HIGH_WATER

    run(test)


@pytest.mark.slow
def test_a_flood_of_small_requests_leaves_the_others_their_turn():
    """Many fit into one receive, and each that is decoded the general way costs its while."""

    async def test(wire):
        begun = 0
        brokers = wire.host.brokers

        def counted(asked):
            nonlocal begun
            begun += 1
            return brokers(asked)

        wire.host.brokers = counted
        flood, other = await wire.raw(), await wire.raw()
        flood.write(frame("metadata", 0, topics=[{"name": "t"}]) * 2000)
        other.write(api_versions())
        await other.frame()
        assert begun < 1000, "the flood was answered first"
        for _ in range(2000):
            await flood.frame()
        assert begun >= 2000

    run(test)


def fetch_frame():
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 21}
    return frame(
        "fetch",
        9,
        max_wait=0,
        min_bytes=1,
        max_bytes=1 << 21,
        topics=[{"topic": "t", "partitions": [wanted]}],
        forgotten_topics_data=[],
    )


@pytest.mark.parametrize("first", [b"", b"\0\0", produce_frame()[:-5], api_versions()])
def test_idle_connections_are_closed_after_their_time(first):
    async def test(wire):
        raw = await wire.raw()
        raw.write(first)
        start = time.monotonic()
        if first == api_versions():
            await raw.frame()
        assert await raw.is_closed()
        assert 0.14 < time.monotonic() - start < 1
        assert wire.server.connections == 0

    run(test, default_host(connections_max_idle_ms=150))


def test_who_is_active_or_waited_for_is_not_idle():
    async def test(wire):
        busy, waiting = await wire.client(), await wire.client()
        future = waiting.send_batch("t", 0, build_batch([b"v"]))
        for _ in range(14):
            await asyncio.sleep(0.05)
            await busy.call("api_versions", 0)
        assert not future.done()
        wire.host.complete(wire.host.held[0])
        assert (await future).responses
        await asyncio.wait_for(waiting.closed, 30)

    run(test, default_host(hold=True, connections_max_idle_ms=500))


@pytest.mark.slow
def test_a_thousand_idle_connections_cost_little_and_harm_nobody():
    async def main():
        async with Wire(default_host()) as wire:
            client = await wire.client()
            gc.collect()
            before = resident_kib()
            address = wire.server.address
            idle = [socket.create_connection(address) for _ in range(500)]
            for each in idle:
                each.sendall(api_versions())
            while wire.server.connections < 501:
                await wire.tick()
            for _ in range(20):
                await client.produce("t", 0, [b"v"])
            gc.collect()
            grown = resident_kib() - before
            for each in idle:
                assert each.recv(4096)
                each.close()
            assert grown < 500 * 16, f"{grown} KiB for 500 idle connections"

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    asyncio.run(asyncio.wait_for(main(), 20))


def resident_kib():
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * (resource.getpagesize() // 1024)


def test_a_paused_node_reads_and_answers_nothing_until_it_is_resumed():
    async def test(wire):
        client, late = await wire.client(), await wire.client()
        first = client.send_batch("t", 0, build_batch([b"1"]))
        while not wire.host.held:
            await wire.tick()
        wire.server.pause()
        wire.host.complete(wire.host.held[0])
        second = late.send_batch("t", 0, build_batch([b"2"]))
        newcomer = await wire.client()
        third = newcomer.send("api_versions", 0)
        await asyncio.sleep(0.05)
        assert not any(future.done() for future in (first, second, third))
        assert wire.host.held == []
        wire.server.resume()
        assert (await first).responses
        assert (await third).error_code == E.NONE
        while not wire.host.held:
            await wire.tick()
        wire.host.complete(wire.host.held[0])
        assert (await second).responses

    run(test, default_host(hold=True))


def test_cutting_connections_drops_clients_and_keeps_the_listener():
    async def test(wire):
        clients = [await wire.client() for _ in range(3)]
        await asyncio.gather(*(client.call("api_versions", 0) for client in clients))
        assert wire.server.cut_connections() == 3
        await asyncio.gather(*(client.closed for client in clients))
        assert wire.server.connections == 0
        again = await wire.client()
        assert (await again.call("api_versions", 0)).error_code == E.NONE

    run(test)


def test_a_stopped_listener_frees_its_port():
    async def test(wire):
        client = await wire.client()
        host, port = wire.server.address
        wire.server.stop()
        await client.closed
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection(host, port)
        await wire.server.start(wire.port)
        again = await wire.client()
        assert (await again.call("api_versions", 0)).error_code == E.NONE

    run(test)


# Found by a stress of real producers: a node was killed between accepting a client and hearing of
# it. The dead node went on to serve it, and never answered a produce request.
@pytest.mark.parametrize("rounds", range(6))
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_no_client_outlives_a_stop_however_far_its_connection_has_come(loop, rounds):
    async def main():
        async with Wire(default_host()) as wire:
            with socket.create_connection(wire.server.address) as client:
                client.sendall(api_versions())
                client.setblocking(False)
                for _ in range(rounds):
                    await asyncio.sleep(0)
                wire.server.stop()
                with suppress(ConnectionResetError):
                    while await asyncio.wait_for(wire.server.loop.sock_recv(client, 4096), 5):
                        pass
            await wire.tick()  # The client hears of it before the loop says so here.
            assert wire.server.connections == 0

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def test_a_bug_in_a_handler_closes_one_connection_and_is_reported():
    async def test(wire):
        client, other = await wire.client(), await wire.client()

        wire.host.cluster_id = object()
        with pytest.raises(ConnectionResetError):
            await client.metadata(["t"])
        wire.host.cluster_id = "fake"
        assert (await other.metadata(["t"])).topics
        (failure,) = wire.failures
        assert failure["message"] == "API 3 version 12 failed"
        wire.failures.clear()

    run(test)
