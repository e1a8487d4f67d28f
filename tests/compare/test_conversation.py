"""A conversation with a broker that closes connections leaves none of them open here."""

import asyncio

from compare_kit import written
from ottla.compare.case import Outcome
from ottla.compare.conversation import Conversation, Start

TWICE = "[[steps]]\nraw = '00'\nexpect = 'closed'\n" * 2


def test_a_connection_that_the_broker_closed_is_closed_here_too(tmp_path):
    """Each connection that a case opened anew left the one before half open."""
    case, writers = written(tmp_path, TWICE), []

    async def hang_up(reader, writer):
        await reader.readexactly(1)
        writer.close()

    async def converse():
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()

        async def dial(_):
            reader, writer = await asyncio.open_connection(host, port)
            writers.append(writer)
            return reader, writer

        async with server:
            return await Conversation(case, dial, Start("mine", {}, {}, 0)).play()

    played = asyncio.run(converse())
    assert [each.outcome for each in played.replies] == [Outcome.CLOSED] * 2
    assert len(writers) == 2
    assert [each.is_closing() for each in writers] == [True, True]


def test_what_was_answered_before_a_connection_closed_is_not_lost(tmp_path):
    """The question about versions left in a write of its own: it failed where the broker had closed
    meanwhile, and asyncio dropped the answer that had come before."""
    steps = "[[steps]]\nmetadata = {}\n[[steps]]\nraw = '00'\npipelined = true\nexpect = 'closed'\n"
    case, writes = written(tmp_path, steps), []

    class Counted:
        def __init__(self, writer):
            self._writer = writer

        def write(self, data):
            writes.append(data)
            self._writer.write(data)

        def close(self):
            self._writer.close()

    async def answer_and_close(reader, writer):
        size = int.from_bytes(await reader.readexactly(4))
        request = await reader.readexactly(size)
        writer.write((4).to_bytes(4) + request[4:8])
        writer.close()

    async def converse():
        server = await asyncio.start_server(answer_and_close, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()

        async def dial(_):
            reader, writer = await asyncio.open_connection(host, port)
            return reader, Counted(writer)

        async with server:
            return await Conversation(case, dial, Start("mine", {}, {"t": "t"}, 0)).play()

    played = asyncio.run(converse())
    assert [each.outcome for each in played.replies] == [Outcome.ANSWERED, Outcome.CLOSED]
    assert len(writes) == 1
