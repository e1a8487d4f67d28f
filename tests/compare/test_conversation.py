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

        async def dial():
            reader, writer = await asyncio.open_connection(host, port)
            writers.append(writer)
            return reader, writer

        async with server:
            return await Conversation(case, dial, Start("mine", {}, {}, 0)).play()

    played = asyncio.run(converse())
    assert [each.outcome for each in played.replies] == [Outcome.CLOSED] * 2
    assert len(writers) == 2
    assert [each.is_closing() for each in writers] == [True, True]
