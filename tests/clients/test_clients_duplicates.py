"""Real clients whose answers are lost send again, and nothing is stored twice.

Followers that do not answer leave a batch appended and not committed; then the leader's client
connections are cut. What the client sends again finds its original

* still in flight: it is parked until the followers are back (`duplicates_parked`). They are
  isolated, not paused: a client that asks a paused node for metadata waits until it gives up.
* or finished: it is answered (`duplicates_answered`). Here they are paused, since what a resumed
  node finds in its inbox is committed at once, before any client is back.

The election timeout is long: the leader must not resign meanwhile.
"""

import pytest

from clients_audit import audit
from clients_patience import until
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients
LEADER, FOLLOWERS = 1, (2, 3)


@pytest.fixture(params=WRITERS)
def scene(request):
    topic = Topic("t", assignment=[[LEADER, *FOLLOWERS]])
    with Cluster(nodes=3, topics=[topic], election_timeout_ms=10_000, heartbeat_ms=50) as cluster:
        writer = WRITERS[request.param]("w", cluster.bootstrap_servers, "t", 1, strict=True)
        with writing(writer):
            yield cluster, writer
        audit(cluster, "t", [writer])
        assert cluster.counters.step_downs == 0, "the history was meant to have one leader"


def cut_after_append(cluster, silence):
    for node in FOLLOWERS:
        silence(node)
    until("append without commit", lambda: is_ahead(cluster))
    assert cluster.cut_connections(LEADER) > 0


def is_ahead(cluster):
    (partition,) = cluster.describe().topics["t"]
    return partition.members[LEADER].log_end_offset > partition.high_watermark


def test_a_batch_sent_again_while_in_flight_is_parked(scene):
    cluster, writer = scene
    cut_after_append(cluster, cluster.isolate)
    until("parked duplicate", lambda: cluster.counters.duplicates_parked > 0)
    cluster.heal()
    progress([writer])


def test_a_batch_sent_again_after_its_commit_gets_its_offset(scene):
    cluster, writer = scene
    cut_after_append(cluster, cluster.pause)
    for node in FOLLOWERS:
        cluster.resume(node)
    until("answered duplicate", lambda: cluster.counters.duplicates_answered > 0)
    progress([writer])
