"""Simulated connections behave as sockets do: the same programs on a real loop and on ours.

Each program is a coroutine that returns what it saw; asyncio's own loop, over the loopback, says
what that must be. Nothing in them depends on how fast bytes travel.
"""

import asyncio
from typing import Any

import pytest

from ottla.sim.asyncio_runs.policies import fifo, pct, shuffled, starving
from ottla.sim.asyncio_runs.run import run

HOST = "127.0.0.1"
BIG = bytes(range(256)) * 8192


async def _serve(handle):
    """A server with one kind of client; returns it and its port."""
    server = await asyncio.start_server(handle, HOST, 0)
    return server, server.sockets[0].getsockname()[1]


async def echoes():
    """Bytes go there and come back, more than any buffer holds."""

    async def echo(reader, writer):
        while data := await reader.read(10_000):
            writer.write(data)
            await writer.drain()
        writer.close()

    server, port = await _serve(echo)
    reader, writer = await asyncio.open_connection(HOST, port)

    async def send():
        writer.write(BIG)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    got = await reader.read()
    await sending
    writer.close()
    await writer.wait_closed()
    server.close()
    return got == BIG


async def half_close():
    """One side has said everything; the other goes on."""

    async def handle(reader, writer):
        told = await reader.read()
        writer.write(b"you said " + told)
        writer.close()

    server, port = await _serve(handle)
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"all")
    writer.write_eof()
    with pytest.raises(RuntimeError, match="write_eof"):
        writer.write(b"more")
    got = await reader.read()
    writer.close()
    await writer.wait_closed()
    server.close()
    return got, writer.can_write_eof()


async def refused():
    """Nobody listens any more."""
    server, port = await _serve(lambda *_: None)
    server.close()
    await server.wait_closed()
    try:
        await asyncio.open_connection(HOST, port)
    except ConnectionRefusedError as error:
        return error.errno


async def in_use():
    """Someone listens there already."""
    server, port = await _serve(lambda *_: None)
    try:
        await asyncio.start_server(lambda *_: None, HOST, port)
    except OSError as error:
        return error.errno
    finally:
        server.close()


class Note(asyncio.Protocol):
    """Writes down what it hears of."""

    def __init__(self):
        self.heard = []
        self.lost = asyncio.get_running_loop().create_future()
        self.bytes = asyncio.get_running_loop().create_future()
        self.keep_open = False

    def connection_made(self, transport):
        self.transport = transport
        self.heard.append("made")

    def data_received(self, data):
        self.heard.append(data)
        if not self.bytes.done():
            self.bytes.set_result(None)

    def eof_received(self):
        self.heard.append("eof")
        return self.keep_open

    def connection_lost(self, exc):
        self.heard.append(f"lost {type(exc).__name__}")
        self.lost.set_result(None)


async def _pair():
    """Two connected protocols, the server's first."""
    loop = asyncio.get_running_loop()
    made = loop.create_future()

    def accept():
        note = Note()
        loop.call_soon(made.set_result, note)
        return note

    server = await loop.create_server(accept, HOST, 0)
    _, client = await loop.create_connection(Note, HOST, server.sockets[0].getsockname()[1])
    return server, await made, client


async def closed_by_one():
    """Close ends both sides, without an error."""
    server, there, here = await _pair()
    here.transport.write(b"bye")
    here.transport.close()
    await asyncio.gather(there.lost, here.lost)
    server.close()
    return there.heard, here.heard, here.transport.is_closing(), there.transport.is_closing()


async def aborted():
    """asyncio closes the socket: the other side hears of an end, not of a reset."""
    server, there, here = await _pair()
    there.transport.abort()
    await asyncio.gather(there.lost, here.lost)
    server.close()
    return there.heard, here.heard


async def aborted_while_writing_is_paused():
    """What has not left is dropped, and nobody is told to write on."""
    heard: list[str] = []

    class Writes(Note):
        def pause_writing(self):
            heard.append("pause")

        def resume_writing(self):
            heard.append("resume")

    loop = asyncio.get_running_loop()
    made = loop.create_future()

    def accept():
        note = Note()
        loop.call_soon(made.set_result, note)
        return note

    server = await loop.create_server(accept, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    transport, client = await loop.create_connection(Writes, HOST, port)
    there = await made
    there.transport.pause_reading()
    for _ in range(12):
        transport.write(BIG)
    transport.abort()
    await client.lost
    there.transport.resume_reading()
    await there.lost
    server.close()
    got = sum(len(each) for each in there.heard if isinstance(each, bytes))
    return heard, client.heard, got < 12 * len(BIG), there.heard[-1]


async def closed_with_unread_bytes():
    """Who closes without having read everything resets the other."""
    server, there, here = await _pair()
    there.transport.pause_reading()
    here.transport.write(b"unread")
    await _until(lambda: not here.transport.get_write_buffer_size())
    await _travelled()
    there.transport.close()
    await asyncio.gather(there.lost, here.lost)
    server.close()
    return there.heard, here.heard


async def what_came_before_a_reset_is_read():
    """It lies there, be reading paused; then comes the reset."""
    server, there, here = await _pair()
    there.transport.pause_reading()
    here.transport.pause_reading()
    there.transport.write(b"never read")
    here.transport.write(b"before")
    await _travelled()
    here.transport.close()
    await _travelled()
    there.transport.resume_reading()
    await asyncio.gather(there.lost, here.lost)
    server.close()
    return there.heard, here.heard


async def written_to_the_dead():
    """Bytes for a socket that is gone are answered by a reset, which the next write notices."""
    server, there, here = await _pair()
    here.keep_open = True
    there.transport.close()
    await there.lost
    await _until(lambda: "eof" in here.heard)
    while not here.lost.done():
        here.transport.write(b"anyone?")
        await _travelled()
    server.close()
    return here.heard


async def nothing_is_heard_while_reading_is_paused():
    """Not even the end."""
    server, there, here = await _pair()
    here.transport.pause_reading()
    there.transport.write(b"one")
    there.transport.close()
    await there.lost
    await _travelled()
    before = list(here.heard), here.transport.is_reading()
    here.transport.resume_reading()
    await here.lost
    server.close()
    return before, here.heard


async def the_buffer_of_a_protocol_is_filled():
    """`BufferedProtocol`: pieces no larger than the buffer it offers, in order."""
    loop = asyncio.get_running_loop()

    class Buffered(asyncio.BufferedProtocol):
        def __init__(self):
            self.got, self.sizes = bytearray(), []
            self.room = bytearray(1000)
            self.over = loop.create_future()

        def get_buffer(self, sizehint):
            assert sizehint == -1
            return self.room

        def buffer_updated(self, nbytes):
            self.sizes.append(nbytes)
            self.got += self.room[:nbytes]

        def connection_lost(self, exc):
            self.over.set_result(None)

    made = loop.create_future()

    def accept():
        made.set_result(Buffered())
        return made.result()

    server = await loop.create_server(accept, HOST, 0)
    _, writer = await asyncio.open_connection(HOST, server.sockets[0].getsockname()[1])
    writer.writelines([BIG[:5000], memoryview(BIG)[5000:50_000]])
    writer.close()
    buffered = await made
    await buffered.over
    server.close()
    return buffered.got == BIG[:50_000], max(buffered.sizes) <= 1000


async def writing_is_paused_and_resumed():
    """By the watermarks, while the other side does not read."""
    heard: list[Any] = []

    class Writes(Note):
        def pause_writing(self):
            heard.append("pause")

        def resume_writing(self):
            heard.append(("resume", self.transport.get_write_buffer_size() <= 1000))

    loop = asyncio.get_running_loop()
    made = loop.create_future()

    def accept():
        note = Note()
        loop.call_soon(made.set_result, note)
        return note

    server = await loop.create_server(accept, HOST, 0)
    transport, client = await loop.create_connection(
        Writes, HOST, server.sockets[0].getsockname()[1]
    )
    there = await made
    there.transport.pause_reading()
    transport.set_write_buffer_limits(high=4000)
    for _ in range(12):
        transport.write(BIG)
    before = list(heard)
    there.transport.resume_reading()
    transport.close()
    await asyncio.gather(there.lost, client.lost)
    server.close()
    got = sum(len(each) for each in there.heard if isinstance(each, bytes))
    return before, heard, transport.get_write_buffer_limits(), got == 12 * len(BIG)


async def the_factory_of_a_listener_breaks():
    """The client is turned away; nobody else notices."""
    loop = asyncio.get_running_loop()

    def accept():
        raise ConnectionAbortedError("not now")

    server = await loop.create_server(accept, HOST, 0)
    _, client = await loop.create_connection(Note, HOST, server.sockets[0].getsockname()[1])
    await client.lost
    server.close()
    return client.heard[-1].split()[0]


async def a_listener_that_closes_keeps_its_clients():
    """Only new ones are refused."""
    server, there, here = await _pair()
    server.close()
    here.transport.write(b"still")
    await there.bytes
    closing = asyncio.ensure_future(server.wait_closed())
    here.transport.close()
    await asyncio.gather(there.lost, here.lost)
    await closing
    return there.heard, server.is_serving(), server.sockets


async def _until(condition):
    while not condition():  # noqa: ASYNC110 - a real socket sets no event
        await asyncio.sleep(0.0005)


async def _travelled():
    """Long enough for whatever is under way between two sockets of this machine."""
    await asyncio.sleep(0.05)


PROGRAMS = (
    echoes,
    half_close,
    refused,
    in_use,
    closed_by_one,
    aborted,
    aborted_while_writing_is_paused,
    closed_with_unread_bytes,
    what_came_before_a_reset_is_read,
    written_to_the_dead,
    nothing_is_heard_while_reading_is_paused,
    the_buffer_of_a_protocol_is_filled,
    writing_is_paused_and_resumed,
    a_listener_that_closes_keeps_its_clients,
)
POLICIES = (fifo, shuffled, pct(3, 1000), starving)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_the_same_is_seen_on_real_sockets_and_on_simulated_ones(program):
    real = asyncio.run(program())
    for policy in POLICIES:
        outcome = run(lambda _: program(), policy=policy, seed=1, jitter=300, chop_ppm=2000)
        assert outcome.result == real


def test_a_listener_whose_factory_breaks_refuses():
    """A real one closes the connection just after it was made; here it is never made."""
    with pytest.raises(ConnectionRefusedError):
        run(lambda _: the_factory_of_a_listener_breaks())
    assert asyncio.run(the_factory_of_a_listener_breaks()) == "lost"
