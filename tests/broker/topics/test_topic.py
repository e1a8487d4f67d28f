"""`Topic`: what users write, and what the controller is asked."""

import pytest

from ottla import Cluster, Topic
from ottla.broker.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("orders", Topic("orders")),
        ("orders:3", Topic("orders", 3)),
        ("orders:3:2", Topic("orders", 3, 2)),
    ],
)
def test_a_topic_is_read_from_text(text, topic):
    assert Topic.parse(text) == topic


@pytest.mark.parametrize(
    "text", ["", ":1:1", "t:x:1", "t:0:1", "t:1:0", "t:-1:1", "t:1:1:1", "t::"]
)
def test_what_is_no_topic_is_refused(text):
    with pytest.raises(ConfigError, match="is not NAME:PARTITIONS:RF"):
        Topic.parse(text)


def test_an_assignment_places_every_replica():
    placed = Topic("placed", assignment=[[2, 3], [3, 1]])
    with Cluster(nodes=3, topics=[placed]) as cluster:
        partitions = cluster.describe().topics["placed"]
    assert [each.replicas for each in partitions] == [(2, 3), (3, 1)]
