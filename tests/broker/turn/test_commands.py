"""A topic as users write it, and the command that creates it."""

from __future__ import annotations

import pytest

from ottla import Topic
from ottla.broker.turn.commands import CreateTopic

CREATIONS = [
    (Topic("t"), CreateTopic("t", 1, 2)),
    (Topic("t", 5, 1, {"flush.ms": 7}), CreateTopic("t", 5, 1, configs={"flush.ms": "7"})),
    (Topic("t", -1, -1), CreateTopic("t")),
    (
        Topic("t", assignment=[[2, 3], [1]]),
        CreateTopic("t", assignments=((0, (2, 3)), (1, (1,)))),
    ),
    (
        Topic("t", 2, 3, {"flush.ms": 7}, [[1]]),
        CreateTopic("t", assignments=((0, (1,)),), configs={"flush.ms": "7"}),
    ),
]


@pytest.mark.parametrize(("topic", "creation"), CREATIONS, ids=str)
def test_a_topic_is_created_as_it_is_written(topic, creation):
    assert CreateTopic.of(topic, nodes=2, default_factor=3) == creation


def test_the_default_factor_counts_where_there_are_nodes_enough():
    assert CreateTopic.of(Topic("t"), nodes=5, default_factor=3).replication_factor == 3
