"""The simulated network: latency, cuts in one direction and both, resets, refusals, windows.

That connections behave as sockets do is the business of test_asyncio_streams.py; here is what only
a simulated network can do. Times are exact: virtual, and whole microseconds.
"""

import asyncio
from typing import Any

import pytest

from ottla.sim.asyncio_runs.network import StreamNetwork
from ottla.sim.asyncio_runs.run import run

SERVER = "server"


async def _connect(loop, at="client", port=1):
    """A connection; returns the client's reader and writer, then the server's."""
    accepted = loop.create_future()
    server = await asyncio.start_server(
        lambda *ends: accepted.set_result(ends), SERVER, port, limit=1 << 20
    )
    with loop.network.at(at):
        ours = await asyncio.open_connection(SERVER, port)
    theirs = await accepted
    server.close()
    return (*ours, *theirs)


def test_each_direction_takes_its_own_time():
    async def main(loop):
        loop.network.slow("client", SERVER, 10_000)
        loop.network.slow(SERVER, "client", 1_000)
        reader, writer, there, back = await _connect(loop)
        connected = loop.now()
        writer.write(b"ping")
        assert await there.readexactly(4) == b"ping"
        pinged = loop.now()
        back.write(b"pong")
        assert await reader.readexactly(4) == b"pong"
        return connected, pinged - connected, loop.now() - pinged

    assert run(main).result == (11_000, 10_000, 1_000)


def test_the_more_exact_rule_wins():
    async def main(loop):
        network = loop.network
        network.slow("*", "*", 1_000)
        network.slow("*", SERVER, 2_000)
        network.slow("client", f"{SERVER}:7", 5_000)
        spans = []
        for port in (7, 8):
            before = loop.now()
            await _connect(loop, port=port)
            spans.append(loop.now() - before)
        return spans

    assert run(main).result == [5_000 + 1_000, 2_000 + 1_000]


def test_jitter_delays_and_never_overtakes():
    async def main(loop):
        _, writer, there, _ = await _connect(loop)
        for number in range(500):
            writer.write(b"%03d" % number)
            await asyncio.sleep(0.0001)
        writer.close()
        got = await there.read()
        return [int(got[at : at + 3]) for at in range(0, len(got), 3)], loop.now()

    results = [run(main, seed=seed, latency=100, jitter=5_000).result for seed in (1, 2)]
    assert all(order == list(range(500)) for order, _ in results)
    assert results[0][1] != results[1][1]


def test_pieces_are_cut_in_two():
    async def main(loop):
        sizes = []

        class Sizes(asyncio.Protocol):
            def data_received(self, data):
                sizes.append(len(data))

        await loop.create_server(Sizes, SERVER, 1)
        transport, _ = await loop.create_connection(asyncio.Protocol, SERVER, 1)
        for _ in range(100):
            transport.write(bytes(1000))
            await asyncio.sleep(0.01)
        return sizes

    assert run(main).result == [1000] * 100
    cut = run(main, chop_ppm=500_000, jitter=1000).result
    assert sum(cut) == 100_000
    assert len(cut) > 130


def test_what_is_sent_into_a_partition_arrives_in_order_when_it_heals():
    async def main(loop):
        network = loop.network
        _, writer, there, _ = await _connect(loop)
        writer.write(b"1")
        # What is under way when the way is cut is sent again, too.
        network.partition("client", SERVER)
        writer.write(b"2")
        await asyncio.sleep(60)
        writer.write(b"3")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there.read(1), 1)
        network.heal()
        writer.write(b"4")
        return await there.readexactly(4), loop.time()

    result, time = run(main, jitter=2000).result
    assert result == b"1234"
    assert 61 < time < 61.1


def test_a_way_that_is_cut_in_one_direction_is_open_in_the_other():
    async def main(loop):
        reader, writer, there, back = await _connect(loop)
        loop.network.cut("client", SERVER)
        writer.write(b"lost in the cut")
        back.write(b"heard")
        assert await reader.readexactly(5) == b"heard"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there.read(1), 1)
        loop.network.heal(SERVER, "client")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there.read(1), 1)
        loop.network.heal("client", SERVER)
        return await there.readexactly(4)

    assert run(main).result == b"lost"


def test_a_way_without_the_way_back_stops_at_the_window():
    """Nobody hears that the bytes were read."""

    async def main(loop):
        _, writer, there, _ = await _connect(loop)
        loop.network.cut(SERVER, "client")
        writer.write(bytes(10_000))
        got = await there.readexactly(4096)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there.readexactly(1), 10)
        left = writer.transport.get_write_buffer_size()
        loop.network.heal()
        got += await there.readexactly(10_000 - 4096)
        return left, len(got)

    assert run(main, window=4096).result == (10_000 - 4096, 10_000)


def test_a_server_can_be_cut_off_by_its_address():
    async def main(loop):
        server = await asyncio.start_server(lambda *_: None, SERVER, 7)
        loop.network.partition("*", f"{SERVER}:7")
        opening = asyncio.ensure_future(asyncio.open_connection(SERVER, 7))
        await asyncio.sleep(5)
        assert not opening.done()
        # Another port of the same host is not affected.
        await _connect(loop, port=8)
        loop.network.heal()
        await opening
        server.close()
        return loop.time() < 5.1

    assert run(main).result


def test_a_connection_that_nobody_answers_fails_as_on_linux():
    async def main(loop):
        loop.network.partition("client", SERVER)
        with pytest.raises(TimeoutError) as failed:
            await asyncio.open_connection(SERVER, 1)
        return failed.value.errno, loop.time()

    assert run(main).result == (110, 127.0)


def test_a_connection_whose_path_stays_cut_times_out_in_the_end():
    async def main(loop):
        reader, writer, _, _ = await _connect(loop)
        loop.network.cut("client", SERVER)
        writer.write(b"anyone?")
        with pytest.raises(TimeoutError):
            await reader.read()
        return round(loop.time())

    assert run(main).result == 925


def test_a_connection_to_nobody_is_refused_one_round_trip_later():
    async def main(loop):
        with pytest.raises(ConnectionRefusedError) as failed:
            await asyncio.open_connection(SERVER, 1)
        return failed.value.errno, loop.now()

    assert run(main, latency=300).result == (111, 600)


def test_who_loses_patience_while_connecting_leaves_no_connection_behind():
    async def main(loop):
        heard = []

        class Note(asyncio.Protocol):
            def connection_made(self, transport):
                heard.append("made")

            def connection_lost(self, exc):
                heard.append(type(exc).__name__)

        await loop.create_server(Note, SERVER, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.open_connection(SERVER, 1), 0.015)
        await asyncio.sleep(1)
        return heard, loop.network.connections

    assert run(main, latency=10_000).result == (["made", "ConnectionResetError"], 0)


def test_a_reset_ends_both_sides_and_what_was_under_way():
    async def main(loop):
        reader, writer, there, _ = await _connect(loop)
        bystanders = await _connect(loop, at="bystander", port=2)
        writer.write(b"under way")
        assert loop.network.reset("client", SERVER) == 2
        for each in (reader, there):
            with pytest.raises(ConnectionResetError):
                await each.read()
        await asyncio.sleep(1)
        return loop.network.connections, bystanders[1].transport.is_closing()

    assert run(main).result == (2, False)


def test_nor_is_what_was_under_way_read_later_by_who_had_paused():
    heard = []

    class Paused(asyncio.Protocol):
        def connection_made(self, transport):
            transport.pause_reading()
            heard.append(transport)

        def data_received(self, data):
            heard.append(data)

        def connection_lost(self, exc):
            heard.append(type(exc))

    async def main(loop):
        await loop.create_server(Paused, SERVER, 1)
        ours, _ = await loop.create_connection(asyncio.Protocol, SERVER, 1)
        await asyncio.sleep(1)
        ours.write(b"under way")
        ours.write_eof()
        loop.network.reset("client", SERVER)
        await asyncio.sleep(1)
        heard.pop().resume_reading()
        await asyncio.sleep(1)
        return heard

    assert run(main).result == [ConnectionResetError]


def test_a_port_belongs_to_one_listener_and_port_0_to_none():
    async def main(_):
        servers = [await asyncio.start_server(lambda *_: None, SERVER, 0) for _ in range(3)]
        names = [each.sockets[0].getsockname() for each in servers]
        with pytest.raises(OSError, match="already in use"):
            await asyncio.start_server(lambda *_: None, *names[0])
        servers[0].close()
        await asyncio.start_server(lambda *_: None, *names[0])
        return names

    assert run(main).result == [(SERVER, 32768), (SERVER, 32769), (SERVER, 32770)]


def test_ends_know_both_addresses():
    async def main(loop):
        _, writer, _, back = await _connect(loop, at="somewhere", port=9)
        return [
            [each.get_extra_info(name) for name in ("sockname", "peername")]
            for each in (writer, back)
        ]

    (own, peer), (theirs, us) = run(main).result
    assert own == us == ("somewhere", 32768)
    assert peer == theirs == (SERVER, 9)


def test_servers_serve_until_they_are_cancelled():
    async def main(_):
        server: Any = await asyncio.start_server(lambda *_: None, SERVER, 1, start_serving=False)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(SERVER, 1)
        serving = asyncio.ensure_future(server.serve_forever())
        _, writer = await _open()
        assert server.is_serving()
        server.abort_clients()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        writer.close()
        return server.is_serving()

    async def _open():
        await asyncio.sleep(0)
        return await asyncio.open_connection(SERVER, 1)

    assert run(main).result is False


def test_a_network_belongs_to_the_loop_it_was_made_for():
    async def main(loop):
        assert isinstance(loop.network, StreamNetwork)
        assert loop.network.loop is loop

    run(main)
