"""Answers with tagged fields that nobody here knows: they are passed over.

Between the reader and a real broker stands one that adds such a field to every answer about
metadata that can have any.
"""

import pytest

from ottla import Cluster, Topic
from ottla.broker.wire.client_requests import API_KEYS
from ottla.sim.studies.topics.offsets import Bounds
from ottla.sim.studies.topics.wire import WireTopics
from studies_between import between
from studies_topics import batch, write

TAGGED_FROM = 9
UNKNOWN = b"\x01\x63\x00"
"""One field, tag 99, of no bytes."""


def tagged(api, version, answer):
    if api == API_KEYS["metadata"] and version >= TAGGED_FROM:
        return answer[:-1] + UNKNOWN
    return answer


@pytest.mark.slow
def test_tagged_fields_that_are_not_known_cost_nothing():
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        with between(running.addresses[1], tagged) as address:
            topics = WireTopics([address], timeout=10)
            assert topics.bounds("t") == {0: Bounds(0, 5)}
            tagged_id = topics.topic_id("t")
            topics.close()
        plain = WireTopics([running.addresses[1]])
        assert tagged_id == plain.topic_id("t") is not None
        plain.close()
