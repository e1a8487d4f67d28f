"""`ottla up`: says when it is ready, serves, stops cleanly, and finds its data again.

Every test runs the real command in a process of its own, on free ports, and talks to it over TCP
with the raw client.
"""

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import lmdb
import pytest

from awaiting import await_that
from cli_process import WITHIN, ottla, running
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.log.keys import FORMAT_KEY


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def produce(place, topic, value):
    client = await Client.connect(*place)
    answer = await client.produce(topic, 0, [value])
    client.close()
    return answer


async def metadata_error(place, topic):
    client = await Client.connect(*place)
    answer = await client.metadata([topic], create=True)
    client.close()
    return ErrorCode(answer.topics[0].error_code), len(answer.topics[0].partitions)


@pytest.mark.slow
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGINT])
def test_ready_means_that_a_produce_succeeds_and_a_signal_ends_it(with_signal):
    with running("--nodes", 1, "--port", 0, "--topic", "t:1:1") as up:
        word, _, place = up.ready.partition(" bootstrap=")
        assert word == "ready"
        answer = asyncio.run(produce(address(place), "t", b"first"))
        assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 0)
        assert up.stop(with_signal) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        (">/dev/full", "standard output: No space left on device"),
        (">&-", "standard output is closed"),
    ],
)
def test_where_the_ready_line_cannot_be_said_is_one_line(redirected, said):
    """It was a traceback; with the stream closed, uvloop ended the process."""
    command = f"exec {sys.executable} -m ottla up --nodes 1 --port 0 {redirected}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"ottla: {said}\n")


@pytest.mark.slow
def test_a_service_without_standard_error_serves():
    command = f"exec {sys.executable} -m ottla up --nodes 1 --port 0 --topic t 2>&-"
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        word, _, place = up.stdout.readline().strip().partition(" bootstrap=")
        try:
            assert word == "ready"
            assert asyncio.run(metadata_error(address(place), "t"))[0] is ErrorCode.NONE
        finally:
            up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0


@pytest.mark.slow
def test_json_names_nodes_ports_and_topics():
    with running("--port", 0, "--json", "--topic", "a:2:3", "--topic", "b:1:1") as up:
        ready = json.loads(up.ready)
        assert up.stop(signal.SIGTERM) == (0, "", "")
    assert [each["node"] for each in ready["nodes"]] == [1, 2, 3]
    assert ready["bootstrap"] == f"127.0.0.1:{ready['nodes'][0]['port']}"
    assert ready["topics"] == [
        {"name": "a", "partitions": 2, "replication_factor": 3},
        {"name": "b", "partitions": 1, "replication_factor": 1},
    ]
    assert ready["profile"] == "reference"


@pytest.mark.slow
def test_a_profile_is_chosen_by_name():
    """Before the fix of Redpanda's issue 5054: a produce request has its answer all the same."""
    with running("--port", 0, "--json", "--profile", "redpanda-22.1.3", "--topic", "t:1:3") as up:
        ready = json.loads(up.ready)
        answer = asyncio.run(produce(address(ready["bootstrap"]), "t", b"first"))
        assert up.stop(signal.SIGTERM) == (0, "", "")
    assert ready["profile"] == "redpanda-22.1.3"
    assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.slow
def test_unknown_topics_are_created_unless_told_otherwise():
    with running("--port", 0) as up:
        place = address(up.ready.partition("=")[2])
        assert asyncio.run(metadata_error(place, "new")) == (ErrorCode.NONE, 1)
    with running("--port", 0, "--no-auto-create") as up:
        place = address(up.ready.partition("=")[2])
        error, _ = asyncio.run(metadata_error(place, "new"))
        assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.slow
def test_a_data_folder_is_found_again_and_has_one_user_at_a_time(tmp_path):
    arguments = ["--nodes", 1, "--port", 0, "--data-dir", tmp_path / "data", "--topic", "t:1:1"]
    with running(*arguments) as up:
        place = address(up.ready.partition("=")[2])
        assert asyncio.run(produce(place, "t", b"kept")).base_offset == 0
        second = ottla("up", *arguments)
        assert (second.returncode, second.stdout) == (2, "")
        assert "in use by another process" in second.stderr
        assert up.stop(signal.SIGTERM)[0] == 0
    with running(*arguments) as up:
        place = address(up.ready.partition("=")[2])
        assert asyncio.run(produce(place, "t", b"more")).base_offset == 1


@pytest.mark.slow
def test_a_folder_of_something_else_is_refused(tmp_path):
    node = tmp_path / "data" / "node-1"
    with running("--nodes", 2, "--port", 0, "--data-dir", tmp_path / "data") as up:
        assert up.stop(signal.SIGTERM)[0] == 0
    shutil.rmtree(tmp_path / "data" / "node-2")
    shutil.copytree(node, tmp_path / "data" / "node-2")
    done = ottla("up", "--nodes", 2, "--port", 0, "--data-dir", tmp_path / "data")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "belongs to node 1, not 2" in line


@pytest.mark.slow
def test_a_folder_of_another_version_is_refused(tmp_path):
    arguments = ["--nodes", 1, "--port", 0, "--data-dir", tmp_path]
    with running(*arguments) as up:
        assert up.stop(signal.SIGTERM)[0] == 0
    with lmdb.open(str(tmp_path / "node-1")) as environment, environment.begin(write=True) as txn:
        txn.put(FORMAT_KEY, b"99")
    done = ottla("up", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "format 99, this program reads" in line
    assert "choose another folder" in line


@pytest.mark.slow
def test_it_starts_without_a_node_whose_folder_is_damaged_if_told_to(tmp_path):
    arguments = ["--nodes", 3, "--port", 0, "--data-dir", tmp_path, "--topic", "t:1:3"]
    with running(*arguments) as up:
        assert up.stop(signal.SIGTERM)[0] == 0
    os.truncate(tmp_path / "node-2" / "data.mdb", 0)
    done = ottla("up", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"node 2, {tmp_path}/node-2: was used, and its data.mdb is empty" in line
    assert "ottla up --without-node 2" in line
    with running(*arguments, "--without-node", 2) as up:
        place = address(up.ready.partition("=")[2])
        assert asyncio.run(metadata_error(place, "t")) == (ErrorCode.NONE, 1)
        _, _, err = up.stop(signal.SIGTERM)
    assert err.startswith(
        "ottla: node 2 was left out at the start, and the cluster runs without it"
    )
    done = ottla("up", *arguments, "--without-node", 2, "--without-node", 1)
    assert done.stderr.endswith("1 of 3 nodes are not a majority; name fewer nodes\n")


async def produce_until_refused(place):
    """Write until the node stops; what it said last, None when it only hung up."""
    client = await Client.connect(*place)
    answer = await client.produce("t", 0, [b"x" * 100_000])
    try:
        while answer is not None and answer.error is ErrorCode.NONE:
            answer = await client.produce("t", 0, [b"x" * 100_000])
    except ConnectionError:
        return None
    client.close()
    return answer and answer.error


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no way to fill a process's disk")
@pytest.mark.parametrize("nodes", [1, 3])
def test_when_every_disk_has_failed_it_says_so_and_ends(tmp_path, nodes):
    arguments = ["--port", 0, "--data-dir", tmp_path, "--topic", f"t:1:{nodes}"]
    with running("--nodes", nodes, *arguments) as up:
        full = max(each.stat().st_size for each in tmp_path.glob("node-*/data.mdb"))
        resource.prlimit(up.process.pid, resource.RLIMIT_FSIZE, (full, full))
        told = asyncio.run(produce_until_refused(address(up.ready.partition("=")[2])))
        status, out, err = up.ended()
    assert (status, out) == (1, "")
    *stops, last = err.splitlines()
    assert last == "ottla: every node has stopped, nothing is served any more"
    for node, line in enumerate(sorted(stops), 1):
        # LMDB calls it an input/output error when a part of what it wrote had room.
        assert line.startswith(f"ottla: node {node} stops: {tmp_path / f'node-{node}'}: ")
    assert len(stops) == nodes
    if nodes == 1:
        assert told is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("delay", [0.2, 0.5, 1.0])
def test_a_signal_while_it_starts_is_no_accident(delay):
    """Before Python runs our first line the signal's default ends the process; later we do."""
    with running("--nodes", 1, "--port", 0, wait=False) as up:
        time.sleep(delay)
        status, _, err = up.stop(signal.SIGTERM)
    assert status in {0, -signal.SIGTERM}
    assert err == ""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only /proc says who catches what"
)
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_start_that_takes_long(with_signal):
    """Twenty large topics take seconds; who is told to stop before they are there never says that
    it is ready."""
    topics = [word for each in range(20) for word in ("--topic", f"t{each}:400:3")]
    with running("--port", 0, *topics, wait=False) as up:
        await_that(partial(catches, up.process.pid, signal.SIGTERM), WITHIN, "it listens to none")
        assert up.stop(with_signal) == (0, "", "")


def catches(pid: int, which: int) -> bool:
    """Whether a process has a handler for a signal, from when on it is no accident."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    mask = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(mask >> which - 1 & 1)
