"""What a request makes goes when nobody holds it any more, and brings no full look about.

Python finds what refers to itself only by looking through objects, and those that are old only by
looking through all there are: 20 ms in a small process, hundreds beside thousands of replicas, in
one turn of the loop. What counts here is objects and looks, never time.
"""

import asyncio
import gc
import json
import socket
from collections import Counter
from types import FunctionType, GeneratorType, MethodType

import pytest

from bench.turns import NODES, TOPIC, Plan, attacks, frame, prepared
from broker_children import run_program
from ottla.broker.cluster.cluster import Cluster
from ottla.broker.event_loop.collecting import nothing_collected

OURS = ("ottla.", "kio.")


def kind(each):
    if isinstance(each, FunctionType):
        return f"{each.__module__}.{each.__qualname__}"
    if isinstance(each, GeneratorType):
        return f"{each.gi_frame and each.gi_frame.f_globals['__name__']}.{each.__qualname__}"
    if isinstance(each, MethodType):
        return f"{type(each.__self__).__module__}.{each.__qualname__}"
    return f"{type(each).__module__}.{type(each).__qualname__}"


def garbage():
    """How much there is of each kind of ours that refers to itself and is held by nobody."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
    finally:
        gc.set_debug(0)
    found = Counter(each for each in map(kind, gc.garbage) if each.startswith(OURS))
    gc.garbage.clear()
    return found


def leave_a_fetch(address):
    """A client that goes while its Fetch waits for records."""
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
    fields = {"max_wait": 300, "min_bytes": 1 << 30, "max_bytes": 1 << 30}
    topics = [{"topic": TOPIC, "partitions": wanted}]
    with socket.create_connection(address) as connection:
        connection.sendall(frame("fetch", 12, **fields, topics=topics, forgotten_topics_data=[]))


async def left_by(plan):
    async with Cluster(NODES, election_timeout_ms=5_000) as cluster:
        await prepared(cluster, plan)
        gc.collect()
        for _, attack, topic in attacks(plan):
            address = cluster.addresses[await cluster.leader(topic)]
            await asyncio.to_thread(attack, address)
        address = cluster.addresses[await cluster.leader(TOPIC)]
        await asyncio.to_thread(leave_a_fetch, address)
        await asyncio.sleep(0.5)
        return garbage()


@pytest.mark.slow
def test_nothing_that_is_left_of_a_request_refers_to_itself():
    """Of each name in a DeleteTopics there were 19 objects, of each partition that was deleted 35,
    of each timer that had rung five."""
    with nothing_collected():
        assert asyncio.run(left_by(Plan(elements=60, partitions=6, clients=2))) == {}


FULL_LOOKS = """
import asyncio, gc, json, logging
from bench.turns import NODES, Plan, attacks, prepared
from ottla.broker.cluster.cluster import Cluster

logging.disable()
gc.set_threshold(200, 3, 1)  # it looks where more, and larger, requests would make it look
plan = Plan(elements=4_000, partitions=40, clients=3)
looks = []
gc.callbacks.append(lambda phase, about: looks.append((phase, about["generation"])))

async def main():
    found = {}
    async with Cluster(NODES, election_timeout_ms=5_000) as cluster:
        await prepared(cluster, plan)
        for name, attack, topic in attacks(plan):
            address = cluster.addresses[await cluster.leader(topic)]
            gc.collect()
            looks.clear()
            await asyncio.to_thread(attack, address)
            found[name] = looks.count(("stop", 2))
    print(json.dumps(found))

asyncio.run(main())
"""


@pytest.mark.slow
def test_no_large_request_brings_a_full_look_about():
    """In a process of its own: how much is too much depends on how much there is."""
    looks = json.loads(run_program(FULL_LOOKS, seconds=300))
    assert len(looks) > 30
    assert {name: count for name, count in looks.items() if count} == {}


NEW_TOPICS = """
import asyncio, gc, json
from ottla import Cluster
from ottla.broker.event_loop import collecting
from ottla.testing import Client

gc.set_threshold(200, 3, 1)
collecting.MOST_PASSED = 10_000  # as many objects, in proportion, as with 2,000 topics
looks = []
gc.callbacks.append(lambda phase, about: looks.append((phase, about["generation"])))

async def main():
    async with Cluster(nodes=3, election_timeout_ms=5_000) as cluster:
        node = cluster.describe().controller
        client = await Client.connect(*cluster.addresses[node])
        new = [
            {"name": f"t{number}", "num_partitions": 1, "replication_factor": 3,
             "assignments": [], "configs": []}
            for number in range(200)
        ]
        gc.collect()
        looks.clear()
        await client.call("CreateTopics", 5, topics=new, timeout=60_000, validate_only=False)
        await cluster.leader("t199", timeout=60.0)
        print(json.dumps(looks.count(("stop", 2))))
        client.close()

asyncio.run(main())
"""


@pytest.mark.slow
def test_many_new_topics_bring_no_full_look_about():
    """What the elections of 2,000 topics left counted as objects of others: a full collection of
    600 ms came in the middle."""
    assert json.loads(run_program(NEW_TOPICS, seconds=300)) == 0
