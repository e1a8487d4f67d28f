"""What a cluster is made of: values that make no sense are refused when it is made, in one line.

Type checkers find the same mistakes: a misspelt setting is told before anything runs. What methods
take is in `test_arguments.py`, numbers in `test_arguments_numbers.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Literal, get_type_hints

import pytest

from ottla import Cluster, Topic
from ottla.broker.config import ClusterConfig, FlushPolicy, Settings, with_settings
from ottla.broker.errors import ConfigError, NodeStateError


def test_a_plain_name_is_a_topic():
    with Cluster(nodes=1, topics=["orders", "audit:2", Topic("log")]) as cluster:
        topics = cluster.describe().topics
        assert {name: len(each) for name, each in topics.items()} == {
            "orders": 1,
            "audit": 2,
            "log": 1,
        }


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"topics": "orders"}, "topics is 'orders'; a list of topics or names is wanted"),
        ({"topics": [7]}, r"topics\[0\] is 7; a Topic or a name is wanted"),
        ({"topics": ["a", Topic("a")]}, "topics: 'a' is named twice"),
        ({"topics": ["a:b"]}, "topic 'a:b' is not NAME:PARTITIONS:RF"),
        ({"min_insync_replica": 2}, "no such setting: min_insync_replica; did you mean min_insync"),
        ({"node": 3}, "no such setting: node; did you mean nodes"),
        ({"x": 3}, "no such setting: x; there are election_timeout_ms, heartbeat_ms, "),
        ({"config": {}}, "config is {}; a ClusterConfig is wanted"),
        ({"nodes": True}, "True nodes asked for; 1 to 7 are possible"),
        ({"nodes": 3.0}, "3.0 nodes asked for; 1 to 7 are possible"),
        ({"port": "9092"}, "port is '9092'; a whole number from 0 to 65535 is wanted"),
        ({"port": 65_535}, "port is 65535: node 3 would need port 65537"),
        ({"host": "a\0b"}, r"host is 'a\\x00b'; the name or address of this machine is wanted"),
        ({"data_dir": ""}, "data_dir is ''; the path of a folder is wanted"),
        ({"flush": "never"}, "flush: there is no never; there are each-turn, interval, off"),
    ],
)
def test_what_a_cluster_is_made_of_is_looked_at_when_it_is_made(settings, said):
    with pytest.raises(ConfigError, match=said):
        Cluster(**settings)


def test_type_checkers_are_told_of_the_same_settings():
    told, there = get_type_hints(Settings), get_type_hints(ClusterConfig)
    assert list(told) == list(there)
    assert told.pop("flush") == there.pop("flush") | Literal["each-turn", "interval", "off"]
    assert told == there


TYPED = """\
from ottla import Cluster, DiskFault, Topic
from ottla.testing import Client

cluster = Cluster(nodes=3, topics=["orders"], flush="off", min_insync_replicas=2)
cluster.create_topic("t", configs={"min.insync.replicas": 2, "preallocate": True})
cluster.break_disk(1, "stalled")
cluster.break_disk(1, DiskFault.FULL)
connecting = Client.connect("127.0.0.1", 9092)
Topic("t", configs={"flush.ms": 5})
"""
MISTYPED = """\
from ottla import Cluster

Cluster(min_insync_replica=2)
Cluster(flush="never")
Cluster(heartbeat_ms="20")
Cluster(nodes=1).break_disk(1, "stuck")
"""


@pytest.mark.slow
def test_mypy_finds_a_setting_that_is_misspelt(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(TYPED, encoding="utf-8")
    wrong.write_text(MISTYPED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary"]
    run = subprocess.run(
        [*command, right, wrong], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    places = [":".join(line.split(":")[:2]) for line in errors]
    assert places == [f"wrong.py:{number}" for number in (3, 4, 5, 6)], run.stdout + run.stderr
    assert 'Unexpected keyword argument "min_insync_replica" for "Cluster"' in run.stdout


def test_a_flush_policy_may_be_a_word():
    assert with_settings(None, {"flush": "off"}).flush is FlushPolicy.OFF


@pytest.mark.parametrize("what", ["bootstrap_servers", "addresses"])
def test_a_cluster_that_was_not_started_has_no_addresses(what):
    """It had an empty text, and clients waited for nobody."""
    with pytest.raises(NodeStateError, match="has not been started, so it has no addresses"):
        getattr(Cluster(nodes=1), what)


def test_nor_can_its_nodes_be_restarted():
    async def main():
        async with Cluster(nodes=1) as cluster:
            pass
        for call in (cluster.restart, cluster.kill):
            with pytest.raises(NodeStateError, match="not running: start it first"):
                await call(1)

    asyncio.run(main())


def test_a_relative_folder_needs_a_working_directory(tmp_path, monkeypatch):
    """A `FileNotFoundError` named nothing."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match=r"data_dir is 'x'; the working directory: No such file"):
        Cluster(data_dir="x")
    Cluster(data_dir=tmp_path / "x")
