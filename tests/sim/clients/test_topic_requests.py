"""Topic requests: what is asked and answered becomes rows, and the end says what nodes have."""

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.topic_requests import CREATE, DELETE, LATE, TopicRequest, TopicRequests
from ottla.sim.ending.topics import agreed, note_topics
from ottla.sim.invariants.judge import judge
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import SECOND, World


def booted(**settings):
    world = World(RunConfig(**settings), Drawn(1))
    world.boot()
    return world


def asked(world, *requests):
    """What is answered, one request after the other: node, what, topic."""
    heard: list[str] = []
    for number, (node, what, topic) in enumerate(requests, 1):
        TopicRequest(world, node, what, topic, heard.append)
        world.until(lambda number=number: len(heard) == number, 10 * SECOND, "an answer")
    return heard


def told(world):
    return [(row.op, row.code) for row in world.history.rows if row.kind == "topic"]


def test_what_is_asked_and_how_it_is_answered_are_rows():
    world = booted()
    requests = [(1, CREATE, 1), (2, CREATE, 1), (3, DELETE, 1), (1, DELETE, 1), (2, CREATE, 1)]
    codes = ["created", "TOPIC_ALREADY_EXISTS", "deleted", "UNKNOWN_TOPIC_OR_PARTITION", "created"]
    assert asked(world, *requests) == codes
    assert told(world)[1::2] == [(1, code) for code in codes]


def test_a_node_that_is_down_refuses_and_a_frozen_one_is_late():
    world = booted(nodes=3)
    world.crash(3)
    world.freeze(2)
    assert asked(world, (3, CREATE, 1), (2, CREATE, 2)) == ["refused", LATE]


def test_the_end_is_awaited_and_noted_by_node():
    world = booted(nodes=3, replicas=3)
    asked(world, (1, CREATE, 1), (1, CREATE, 2), (1, DELETE, 2))
    world.until(lambda: agreed(world), 10 * SECOND, "agreement")
    before = len(told(world))
    note_topics(world)
    assert told(world)[before:] == [(None, "listed"), (1, "known")] * 3
    assert "sim-I48" not in judge(world.history.rows).broken


def test_what_is_missing_or_left_is_noted():
    world = booted(nodes=3, replicas=3, mutants="M48")
    asked(world, (1, CREATE, 1), (1, DELETE, 1), (1, CREATE, 2))
    world.kernel.run(world.kernel.now + SECOND)
    assert not agreed(world)
    note_topics(world)
    assert (None, "leftover") in told(world)
    assert "sim-I48" in judge(world.history.rows).broken


def test_a_partition_that_nobody_leads_is_noted():
    world = booted(nodes=3, replicas=3)
    asked(world, (1, CREATE, 2))
    world.until(lambda: agreed(world), 10 * SECOND, "agreement")
    (image,) = world.lives[1].node.topics()["topic-2"].partitions
    for life in world.lives.values():
        life.node.runner.remove(image.group)
    assert not agreed(world)
    note_topics(world)
    assert [code for op, code in told(world) if op == 2][-4:] == ["unserved"] * 3 + ["unled"]


@pytest.mark.slow
def test_one_run_of_two_asks_for_topics():
    outcomes = [run(seed, RunConfig(load_ms=1_000, records=5)) for seed in range(20)]
    asking = [
        each for each in outcomes if any(row.kind == "topic" and row.client for row in each.rows)
    ]
    assert 4 <= len(asking) <= 16
    codes = {row.code for each in asking for row in each.rows if row.kind == "topic"}
    assert {"created", "deleted", "known", "listed"} <= codes


def test_nothing_is_asked_while_an_answer_is_waited_for():
    world = booted(nodes=3)
    requests = TopicRequests(world)
    for _ in range(3):
        requests.strike()
    assert len(told(world)) == 1
