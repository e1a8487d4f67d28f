"""Disks that hang, fail or are full, by `Cluster.break_disk`: what the cluster makes of them."""

import logging
import time

import pytest

from ottla import Cluster, OttlaError
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ConfigError, NodeStateError

QUICK = ClusterConfig(election_timeout_ms=100, heartbeat_ms=20, sync_stall_ms=100)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="ottla")


def until(condition):
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited 20 s")


def state(cluster, node):
    return cluster.describe().nodes[node].state


@pytest.mark.parametrize("fault", [DiskFault.FAILED, DiskFault.FULL])
def test_a_node_that_stopped_by_its_disk_comes_back_on_it_by_a_restart(fault):
    with Cluster(nodes=1) as cluster:
        cluster.create_topic("kept")
        cluster.break_disk(1, fault)
        with pytest.raises(OttlaError):
            cluster.create_topic("refused")
        assert state(cluster, 1) == "failed"
        cluster.restart(1)
        cluster.create_topic("later")
        # What the failed sync did not cover is not there, as after a crash.
        assert sorted(cluster.describe().topics) == ["kept", "later"]
        assert [event.kind for event in cluster.events if event.kind.startswith("disk")] == [
            f"disk {fault}"
        ]


def test_a_leader_whose_disk_hangs_resigns_and_may_lead_again_when_it_does_not():
    with Cluster(nodes=3, config=QUICK) as cluster:
        cluster.create_topic("t")
        old = cluster.leader("t")
        cluster.break_disk(old, DiskFault.STALLED)
        cluster.create_topic("more", partitions=3)  # something to sync for everybody
        until(lambda: cluster.leader("t") != old)
        assert state(cluster, old) == "running"
        cluster.mend_disk(old)
        cluster.transfer_leadership("t", 0, to=old)


@pytest.mark.parametrize("end", ["stop", "kill", "restart"])
def test_a_disk_that_hangs_holds_up_nobody_who_ends_its_node(end):
    with Cluster(nodes=1) as cluster:
        cluster.break_disk(1, DiskFault.STALLED)
        with pytest.raises(OttlaError):
            cluster.create_topic("t", timeout=0.05)
        if end != "stop":
            getattr(cluster, end)(1)
        if end == "kill":
            cluster.restart(1)
        if end != "stop":
            cluster.create_topic("u")


def test_what_was_mended_in_time_never_broke():
    with Cluster(nodes=1) as cluster:
        cluster.break_disk(1, DiskFault.FAILED)
        cluster.mend_disk(1)
        cluster.create_topic("t")
        assert state(cluster, 1) == "running"


def test_what_has_failed_is_not_to_be_paused_or_broken_again():
    with Cluster(nodes=1) as cluster:
        cluster.break_disk(1, DiskFault.FAILED)
        with pytest.raises(OttlaError):
            cluster.create_topic("t")
        again = (cluster.pause, cluster.resume, cluster.isolate, cluster.mend_disk)
        for call in again:
            with pytest.raises(NodeStateError, match=r"node 1 has failed; restart\(1\) brings"):
                call(1)


def test_a_disk_that_is_real_is_not_broken(tmp_path):
    with Cluster(nodes=1, data_dir=tmp_path) as cluster:
        with pytest.raises(ConfigError, match="without data_dir"):
            cluster.break_disk(1, DiskFault.FULL)
        assert state(cluster, 1) == "running"
