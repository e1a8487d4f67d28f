"""Whom the simulator's clients ask for metadata, and whom they leave: Java's rules, librdkafka's.

Brokers answer as told (`sim_fake_brokers`); paths take half a millisecond each way. What comes of
it where a node is cut off is for scenario sim-S63.
"""

from __future__ import annotations

import pytest

from ottla.broker.wire.requests import ProduceRequest
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.librdkafka_nodes import LibrdkafkaConsumer
from ottla.sim.clients.mutants import MutatedLibrdkafkaConsumer, mutated
from ottla.sim.clients.producer_java import JavaProducer
from ottla.sim.clients.producer_librdkafka import LibrdkafkaProducer
from ottla.sim.clients.workload import CONSUMERS, make_clients
from ottla.sim.mutants.mutant import Mutant
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World
from sim_fake_brokers import CONFIG, FakeBrokers

NOBODY = (0, 1)
TWO = CONFIG.with_(partitions=2, idempotent=False)
LATER_THE_SECOND = {"client": dict.fromkeys(range(2, 100), 1)}
"""Choices: node 1 to begin with, then the second of any two."""


def connected_to_both(model, tape=None):
    """A producer that is connected to node 1, who leads partition 0, and to 2, who leads the other;
    and their open requests."""
    brokers = FakeBrokers(TWO, tape=tape)
    brokers.leaders = {0: (1, 1), 1: (2, 1)}
    client = model(brokers.surroundings(), 7, TWO.acks)
    client.start()
    client.hand(0, 0)
    client.hand(1, 1)
    asked = {each.node: each for each in brokers.take(2)}
    assert sorted(client.links) == [1, 2]
    brokers.metadata_asked.clear()
    return brokers, client, asked


def ask(brokers, client, ms=100):
    """Have it ask for metadata once; whom it asked."""
    before = len(brokers.metadata_asked)
    client.view.refresh()
    brokers.run(ms)
    return brokers.metadata_asked[before:]


def test_librdkafka_asks_whom_it_asked_last():
    brokers, client, asked = connected_to_both(LibrdkafkaProducer)
    for each in asked.values():
        each.produced()
    brokers.run(1_500)
    client.hand(2, 1)
    brokers.next().produced()
    found = [node for _ in range(20) for node in ask(brokers, client)]
    assert found == [2] * 20


def test_librdkafka_counts_idle_time_in_seconds_and_asks_any_among_equals():
    for stream, wanted in ((0, 1), (1, 2)):
        tape = Tape({"client": dict.fromkeys(range(2, 100), stream)})
        brokers, client, asked = connected_to_both(LibrdkafkaProducer, tape)
        for each in asked.values():
            each.produced()
        assert ask(brokers, client) == [wanted]


@pytest.mark.parametrize("start", [0, 1])
def test_java_asks_whom_it_has_asked_least(start):
    tape = Tape({"client": dict.fromkeys(range(100), start)})
    brokers, client, asked = connected_to_both(JavaProducer, tape)
    asked[2].produced()
    brokers.run(5)
    client.view.refresh()
    brokers.run(60)
    assert brokers.metadata_asked == [2]


@pytest.mark.parametrize("room", [True, False])
def test_java_asks_nobody_whose_connection_has_no_room_and_connects_to_another(room):
    config = TWO.with_(partitions=1, in_flight=2 if room else 1)
    brokers = FakeBrokers(config)
    client = JavaProducer(brokers.surroundings(), 7, config.acks)
    client.start()
    client.hand(0, 0)
    brokers.next()
    brokers.metadata_asked.clear()
    client.view.refresh()
    brokers.run(100)
    assert (brokers.metadata_asked[0] == 1) is room
    assert (sorted(client.links) == [1]) is room


def test_java_connects_first_to_who_was_tried_the_longest_time_ago():
    brokers = FakeBrokers(CONFIG)
    client = JavaProducer(brokers.surroundings(), 7, CONFIG.acks)
    for node in (1, 2, 3, 1):
        assert client.least_loaded() is None
        assert list(client.links) == [node]
        client.stop()
        brokers.run(5)


def test_java_keeps_a_connection_to_who_is_not_named_and_asks_nothing_there():
    brokers, client, asked = connected_to_both(JavaProducer)
    brokers.names = {1: (2, 3), 2: (2, 3)}
    brokers.leaders = {0: NOBODY, 1: (2, 1)}
    ask(brokers, client)
    found = [node for _ in range(5) for node in ask(brokers, client)]
    assert set(found) <= {2, 3}
    assert 1 in client.links
    asked[1].produced()
    brokers.run(5)
    assert [end[:2] for end in brokers.ends()] == [("ok", 0)]


def test_librdkafka_leaves_who_is_not_named_and_sends_what_was_open_there_to_the_new_leader():
    brokers, client, asked = connected_to_both(LibrdkafkaProducer, Tape(LATER_THE_SECOND))
    brokers.names = {1: (2, 3), 2: (2, 3)}
    brokers.leaders = {0: (2, 2), 1: (2, 1)}
    asked[2].produced()
    assert ask(brokers, client)[0] == 2
    assert [(row.node, row.code) for row in brokers.rows("close")] == [(1, "not named any more")]
    assert sorted(client.links) == [2]
    assert [(row.node, row.op, row.code) for row in brokers.rows("error")] == [
        (1, 0, "DISCONNECTED")
    ]
    brokers.asked.remove(asked[1])
    (again,) = [each for each in brokers.take(1) if isinstance(each.request, ProduceRequest)]
    assert (again.node, again.values) == (2, [0])
    again.produced()
    brokers.run(5)
    assert sorted(end[1] for end in brokers.ends() if end[0] == "ok") == [0, 1]


def test_librdkafka_leaves_even_who_says_that_it_is_not_there():
    brokers = FakeBrokers(CONFIG.with_(idempotent=False), tape=Tape())
    brokers.names = {1: (2, 3)}
    brokers.believes = {1: {0: NOBODY}}
    brokers.leaders = {0: (3, 2)}
    client = LibrdkafkaProducer(brokers.surroundings(), 7, -1)
    client.start()
    client.hand(0, 0)
    assert brokers.next().node == 3
    assert brokers.metadata_asked[0] == 1
    assert 1 not in client.links


def test_a_leader_that_is_not_named_is_none():
    for model in (JavaProducer, LibrdkafkaProducer):
        brokers, client, asked = connected_to_both(model, Tape(LATER_THE_SECOND))
        asked[2].produced()
        brokers.names = {1: (2, 3), 2: (2, 3)}
        brokers.believes = {1: {}, 2: {}}
        assert client.view.leader(0) == 1
        ask(brokers, client)
        assert (client.view.leader(0), client.view.epoch(0)) == (0, 1)


def test_librdkafka_connects_to_another_each_second_while_none_is_up():
    brokers = FakeBrokers(CONFIG.with_(request_timeout_ms=30_000))
    brokers.silent = [1, 2]
    client = LibrdkafkaProducer(brokers.surroundings(), 7, -1)
    client.start()
    brokers.run(900)
    assert sorted(client.links) == [1]
    brokers.run(1_000)
    assert sorted(client.links) == [1, 2]
    brokers.run(1_000)
    assert brokers.metadata_asked == [3]


def test_librdkafka_asks_anybody_that_is_up_for_a_producer_id():
    for later, node in (({}, 1), (LATER_THE_SECOND, 2)):
        brokers, client, asked = connected_to_both(LibrdkafkaProducer, Tape(later))
        asked[3 - node].produced()
        brokers.run(2_000)
        client.hand(2, 2 - node)
        brokers.run(10)
        link = client.link_for_id()
        assert link is not None
        assert link.node == node


def test_consumers_follow_the_model_of_the_producers():
    made = {}
    for model in CONSUMERS:
        config = RunConfig(client_model=model, consumers=2)
        clients = make_clients(World(config, Replayed(Tape())))
        made[model] = [type(each) for each in clients.consumers]
    assert made == {
        "java": [Consumer, Consumer],
        "librdkafka": [LibrdkafkaConsumer, LibrdkafkaConsumer],
        "both": [Consumer, LibrdkafkaConsumer],
    }
    kinds = mutated(LibrdkafkaConsumer, frozenset({Mutant.SKIPS_UNFETCHED}))
    assert kinds is MutatedLibrdkafkaConsumer
