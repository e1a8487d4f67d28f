"""A paused node as clients see it who arrive meanwhile: silent, and nothing they sent is lost.

On the loop that `Cluster` takes, uvloop's where there is one: it starts to read a new connection
after `connection_made`, whatever that asked for.
"""

import asyncio
import socket
import struct
import time
from collections.abc import Callable

from ottla import Cluster
from ottla.broker.turn.commands import Position

API_VERSIONS = struct.Struct(">ihhih")


def ask(client, number):
    client.sendall(API_VERSIONS.pack(10, 18, 0, number, -1))


def answer(client):
    """Correlation id of the next answer; None when the broker hung up."""
    head = client.recv(4, socket.MSG_WAITALL)
    if not head:
        return None
    body = client.recv(*struct.unpack(">i", head), socket.MSG_WAITALL)
    return int.from_bytes(body[:4])


def test_who_connects_meanwhile_and_sends_in_pieces_is_answered_afterwards():
    with Cluster(nodes=1) as cluster:
        cluster.pause(1)
        with socket.create_connection(cluster.addresses[1], timeout=10) as client:
            for number in range(3):
                ask(client, number)
                time.sleep(0.02)  # each is to arrive on its own
            client.settimeout(0.05)
            try:
                early = answer(client)
            except TimeoutError:
                early = "silence"
            assert early == "silence"
            client.settimeout(10)
            cluster.resume(1)
            assert [answer(client) for _ in range(3)] == [0, 1, 2]


def test_who_connects_meanwhile_and_leaves_again_is_no_error(caplog):
    with Cluster(nodes=1) as cluster:
        cluster.pause(1)
        with socket.create_connection(cluster.addresses[1], timeout=10) as client:
            ask(client, 0)
        time.sleep(0.05)
        cluster.resume(1)
        with socket.create_connection(cluster.addresses[1], timeout=10) as client:
            ask(client, 1)
            assert answer(client) == 1
    assert caplog.records == []


def test_a_paused_leader_is_not_the_leader_one_waits_for():
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("t")
        old = cluster.leader("t")
        cluster.pause(old)
        assert cluster.leader("t") != old
        cluster.resume(old)


def test_a_paused_node_does_nothing_of_its_own_accord_either(monkeypatch):
    """Its own timers went on: a command to the controller timed out, or was sent once more."""

    async def story():
        async with Cluster(nodes=1) as cluster:
            node = cluster.node(1)
            rings: list[Callable[[], None]] = []
            outcomes: list[int] = []

            def call_at(_, call):
                rings.append(call)
                return call

            with monkeypatch.context() as patch:
                patch.setattr(node, "call_at", call_at)
                node.control(Position(), lambda *_: outcomes.append(1), node.now())
            cluster.pause(1)
            (overdue,) = rings
            overdue()
            assert outcomes == []
            cluster.resume(1)
            assert outcomes == [1]

    asyncio.run(story())
