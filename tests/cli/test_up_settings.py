"""The settings of a cluster that `ottla up` offers: they reach it, or are refused in one line.

What reaches it is asked of a cluster that stands in for the real one, and once of a real one. A
line that refuses says what to type.
"""

import asyncio
import json
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli_process import PROGRAM, ottla, running
from ottla.broker.client import Client
from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.cli import app


def told(up):
    """Host and port of the first node."""
    node = json.loads(up.ready)["nodes"][0]
    return node["host"], node["port"]


async def created(place, topic):
    """Partitions of a topic that nobody had named before."""
    client = await Client.connect(*place)
    answer = await client.call(
        "metadata", 4, topics=[{"name": topic}], allow_auto_topic_creation=True
    )
    client.close()
    return len(answer.topics[0].partitions)


@pytest.mark.slow
def test_new_topics_have_as_many_partitions_as_was_said():
    with running("--port", 0, "--json", "--default-partitions", 4) as up:
        assert asyncio.run(created(told(up), "new")) == 4
        assert up.stop(signal.SIGTERM) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["each-turn", "interval", "off"])
def test_every_flush_policy_serves(tmp_path, policy):
    arguments = ["--nodes", 1, "--topic", "t:2:1", "--data-dir", tmp_path, "--flush", policy]
    with running("--port", 0, "--json", *arguments) as up:
        assert asyncio.run(created(told(up), "t")) == 2
        assert up.stop(signal.SIGTERM) == (0, "", "")


class AskedError(Exception):
    """Stands in for the cluster that would be started."""


def test_all_of_them_reach_the_cluster(monkeypatch):
    asked: dict[str, object] = {}

    def cluster(nodes, **settings):
        asked.update(settings, nodes=nodes)
        raise AskedError

    monkeypatch.setattr("ottla.broker.cluster.async_cluster.AsyncCluster", cluster)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # these are the process's own, and stay
    monkeypatch.setattr("gc.disable", lambda: None)
    given = {"min-insync-replicas": 2, "election-timeout-ms": 2000, "default-partitions": 3}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    done = CliRunner().invoke(app, ["up", "--flush", "interval", *words])
    assert isinstance(done.exception, AskedError)
    config = ClusterConfig(
        flush=FlushPolicy.INTERVAL,
        min_insync_replicas=2,
        election_timeout_ms=2000,
        default_partitions=3,
    )
    names = [each.replace("-", "_") for each in (*given, "flush")]
    assert {name: asked[name] for name in names} == {name: getattr(config, name) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--flush", "sometimes"], "--flush 'sometimes': there are each-turn, interval, off"),
        (["--flush", ""], "--flush '': there are each-turn"),
        (["--min-insync-replicas", "0"], "'--min-insync-replicas': 0 is not in the range x>=1"),
        (["--min-insync-replicas", "4"], "--min-insync-replicas 4: there are 3 nodes"),
        (["--min-insync-replicas", "2", "--nodes", "1"], "--min-insync-replicas 2: there are 1"),
        (["--min-insync-replicas", "two"], "--min-insync-replicas"),
        (["--election-timeout-ms", "99"], "99 is not in the range 100<=x<=600000"),
        (["--election-timeout-ms", "1e3"], "--election-timeout-ms"),
        (["--election-timeout-ms", "600001"], "600001 is not in the range"),
        (["--default-partitions", "0"], "'--default-partitions': 0 is not in the range x>=1"),
        (["--default-partitions", "1000000"], "--default-partitions 1000000: a topic has at most"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_makes_no_sense_is_one_line(arguments, said):
    done = ottla("up", "--port", 0, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("ottla: ")
    assert said in line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_the_command(shell):
    """Which one is meant is found among the processes above: without a shell there is none."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    asked = shlex.join([sys.executable, "-c", PROGRAM, "--show-completion"])
    done = subprocess.run(
        [shell, "-c", f"{asked} && true"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_OTTLA_COMPLETE=complete_{shell}" in done.stdout
