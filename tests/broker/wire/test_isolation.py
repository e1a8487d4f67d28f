"""One connection's failure is its own: whoever is served in the same breath notices nothing.

A server sends for all connections of a burst in one loop, and pauses, resumes and stops them in
one. What fails there for one of them used to leave the loop, and those behind it hung for ever.
"""

import asyncio

import pytest

from broker_wire import frame, run
from broker_wire_fetch import fetch, offsets, only
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.wire import routes
from ottla.broker.wire.api.fetch import MOST_BYTES
from ottla.broker.wire.framing import PORTION_BYTES
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch

DESCRIBE_CLUSTER = 60
ASKS = frame("describe_cluster", 0, include_cluster_authorized_operations=False)


@pytest.fixture
def answers(monkeypatch):
    """`answers(handle)`: who answers DescribeCluster here."""
    handler = routes.handler

    def put(handle):
        monkeypatch.setattr(
            routes, "handler", lambda key: handle if key == DESCRIBE_CLUSTER else handler(key)
        )

    return put


async def told(wire, what):
    """The one failure that the loop's owner heard of."""
    while not wire.failures:
        await wire.tick()
    (failure,) = wire.failures
    wire.failures.clear()
    assert what in failure["message"]
    return failure["exception"]


def test_an_answer_that_no_frame_can_hold_ends_its_own_connection_only(answers):
    """A Fetch of 2 GiB raised out of the loop that flushes all: an innocent reader hung."""
    held = []
    answers(lambda _, call: held.append(call))

    async def test(wire):
        guilty, innocent = await wire.raw(), await wire.raw()
        guilty.write(ASKS)
        innocent.write(ASKS)
        while len(held) < 2:
            await wire.tick()
        if held[0].link.transport.get_extra_info("peername") == peer(innocent):
            held.reverse()
        piece = bytes(1 << 20)
        held[0].answer_parts([piece] * 2048)
        held[1].answer_parts([b"fine"])
        assert (await innocent.frame()).endswith(b"fine")
        assert await guilty.is_closed()
        await told(wire, "connection failed")

    run(test)


def peer(raw):
    """A client's own address."""
    return raw.writer.get_extra_info("sockname")


class Broken:
    """A transport that fails at whatever is asked of it for all connections at once."""

    def __init__(self, transport):
        self.transport = transport

    def __getattr__(self, name):
        if name in {"write", "pause_reading", "resume_reading"}:
            raise ValueError("this one is broken")
        return getattr(self.transport, name)


@pytest.mark.parametrize("step", ["pause", "resume", "stop"])
def test_what_a_server_does_to_all_clients_it_does_to_all_though_one_fails(answers, step):
    held = []
    answers(lambda _, call: held.append(call))

    async def test(wire):
        raws = [await wire.raw() for _ in range(3)]
        for number, raw in enumerate(raws):
            raw.write(ASKS)
            while len(held) <= number:
                await wire.tick()
        if step == "resume":
            wire.server.pause()
        held[0].link.transport = Broken(held[0].link.transport)
        for call in held:
            call.answer_bytes(b"fine")
        if step == "pause":
            wire.server.pause()
            assert not any(call.link.transport.is_reading() for call in held[1:])
            await told(wire, "connection failed")
            wire.server.resume()
        elif step == "resume":
            wire.server.resume()
            await told(wire, "connection failed")
        else:
            wire.server.stop(politely=True)
            await told(wire, "connection failed")
        for raw in raws[1:]:
            assert (await raw.frame()).endswith(b"fine")
        assert await raws[0].is_closed()

    run(test)


def test_requests_of_a_lost_client_are_all_given_up_though_one_fails(answers):
    held, gone = [], []

    def keep(_, call):
        held.append(call)
        call.on_cancel(
            lambda: gone.append(call) if len(held) > 1 and call is not held[0] else 1 / 0
        )

    answers(keep)

    async def test(wire):
        raw = await wire.raw()
        raw.write(ASKS * 2)
        while len(held) < 2:
            await wire.tick()
        raw.close()
        assert isinstance(await told(wire, "given up"), ZeroDivisionError)
        assert gone == held[1:]

    run(test)


@pytest.mark.slow
def test_a_fetch_of_everything_is_answered_with_what_kafka_would_give():
    """max_bytes 2**31 - 1: Kafka gives `fetch.max.bytes`; here it was all there is, in one go."""

    async def test(wire):
        client = await wire.client()
        replica = wire.host.replicas["t", 0]
        for _ in range(80):
            replica.append(read_batch(build_batch([bytes(1_000_000)])))
        most = 2**31 - 1
        part = only(await fetch(client, ("t", 0, 0, most), max_bytes=most))
        assert len(part.records) == MOST_BYTES
        assert len(offsets(part)) == MOST_BYTES // 1_000_071
        # As with a smaller max_bytes, what is wanted at least is never more than what is given.
        part = only(
            await fetch(client, ("t", 0, 0, most), max_bytes=most, min_bytes=most, wait=8000)
        )
        assert len(part.records) == MOST_BYTES

    run(test)


def test_a_partition_named_a_thousand_times_gives_no_more():
    """The answer's size did not fit its int32, and the connection stayed open and silent."""

    async def main():
        failures = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
        async with Cluster(nodes=1) as cluster:
            await cluster.create_topic("t")
            client = await Client.connect(*cluster.addresses[1])
            for _ in range(3):
                await client.send_batch("t", 0, build_batch([bytes(1_000_000)]))
            named = [("t", 0, 0, 3_100_000)] * 1000
            answer = await fetch(client, *named, max_bytes=2**31 - 1)
            assert sum(len(p.records or b"") for t in answer.responses for p in t.partitions) <= (
                MOST_BYTES
            )
            client.close()
        assert not failures

    asyncio.run(asyncio.wait_for(main(), 30))


class Counting:
    """A transport that remembers how much it was given at once."""

    def __init__(self, transport):
        self.transport = transport
        self.given = []

    def __getattr__(self, name):
        return getattr(self.transport, name)

    def write(self, data):
        self.given.append(len(data))
        self.transport.write(data)

    def writelines(self, data):
        self.given.append(sum(map(len, data)))
        self.transport.writelines(data)


@pytest.mark.parametrize("pieces", [1, 40, 5000])
def test_a_large_answer_is_handed_to_the_transport_in_portions(answers, pieces):
    """CPython's transports before 3.12 copy what they get twice: 55 MiB took 150 ms in one turn."""
    held = []
    answers(lambda _, call: held.append(call))

    async def test(wire):
        raw = await wire.raw()
        raw.write(ASKS * 2)
        while len(held) < 2:
            await wire.tick()
        transport = held[0].link.transport = Counting(held[0].link.transport)
        size = 20_000_000 // pieces
        held[0].answer_parts([bytes(size)] * pieces)
        held[1].answer_bytes(b"behind it")
        assert len(await raw.frame()) > size * pieces
        assert (await raw.frame()).endswith(b"behind it")
        assert max(transport.given) <= PORTION_BYTES + size

    run(test)
