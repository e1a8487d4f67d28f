"""Answers with tagged fields that nobody here knows: topics have no ids then, and that is all.

Between the reader and a real broker stands one that adds such a field to every answer about
metadata that can have any.
"""

import socket
import threading
from struct import Struct

from ottla import Cluster, Topic
from ottla.broker.client import API_KEYS
from ottla.sim.studies.topics.offsets import Bounds
from ottla.sim.studies.topics.wire import WireTopics
from studies_topics import batch, write

SIZE = Struct(">i")
NEXT = Struct(">hhi")
TAGGED_FROM = 9
UNKNOWN = b"\x01\x63\x00"
"""One field, tag 99, of no bytes."""


def frame(peer):
    """What comes next, without its size; nothing at the end."""
    with peer.makefile("rb", buffering=0) as lines:
        size = lines.read(4)
        return lines.read(SIZE.unpack(size)[0]) if size else b""


def passed_on(peer, broker):
    """Play the broker for one connection."""
    with peer, socket.create_connection(broker) as behind:
        while request := frame(peer):
            api, version, _ = NEXT.unpack_from(request)
            behind.sendall(SIZE.pack(len(request)) + request)
            answer = frame(behind)
            if api == API_KEYS["metadata"] and version >= TAGGED_FROM:
                answer = answer[:-1] + UNKNOWN
            peer.sendall(SIZE.pack(len(answer)) + answer)


def test_tagged_fields_that_are_not_known_cost_ids_and_nothing_else():
    with (
        Cluster(nodes=1, topics=[Topic("t")]) as running,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        write(running, "t", [batch(0, 1, 0, 5)])

        def serve():
            for _ in range(2):
                passed_on(server.accept()[0], running.addresses[1])

        threading.Thread(target=serve, daemon=True).start()
        topics = WireTopics([server.getsockname()], timeout=10)
        assert topics.bounds("t") == {0: Bounds(0, 5)}
        assert topics.topic_id("t") is None
        topics.close()
        plain = WireTopics([running.addresses[1]])
        assert plain.topic_id("t") is not None
        plain.close()
