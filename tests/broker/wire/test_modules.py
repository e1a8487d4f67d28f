"""Modules that requests need are had even where a peer has used up all descriptors."""

import pytest

from broker_children import run_program

pytest.importorskip("resource", reason="no limits of descriptors here")

FLOOD = """
import resource, socket, struct
from ottla import Cluster

resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))

def ask(client, key, body=b""):
    frame = struct.pack(">hhih", key, 0, 7, -1) + body
    client.sendall(struct.pack(">i", len(frame)) + frame)
    return len(client.recv(4)) == 4

with Cluster(nodes=1) as cluster:
    clients = [socket.create_connection(cluster.addresses[1], 5) for _ in range(3)]
    ask(clients[2], 18)  # The others were accepted before it.
    flood = []
    try:
        while True:
            flood.append(socket.create_connection(cluster.addresses[1], 1))
    except OSError:
        pass
    metadata, producer_id = struct.pack(">i", 0), struct.pack(">hi", -1, 0)
    print(ask(clients[0], 3, metadata), ask(clients[1], 22, producer_id))
    for each in flood:
        each.close()
"""
TWICE = """
import os
from ottla.broker.wire.modules import give_up_spare, keep_spare

def open_now():
    return sorted(os.listdir("/proc/self/fd"))

before = open_now()
keep_spare()
keep_spare()
assert len(open_now()) == len(before) + 1
give_up_spare()
assert len(open_now()) == len(before) + 1
give_up_spare()
print(open_now() == before)
"""


@pytest.mark.slow
def test_a_flood_of_connections_costs_no_other_client_its_first_request():
    """The module of its schema could not be opened, and the client was cut off."""
    assert run_program(FLOOD) == "True True"


def test_listeners_of_a_process_share_one_spare_descriptor():
    assert run_program(TWICE) == "True"
