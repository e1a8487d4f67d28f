"""Java, Go and Node clients, unmodified: some thousand idempotent records through a leader's death,
and what they say where they would need a group or a transaction.

Each program lies beside this file and is built when its test runs, from its language's own package
registry. It writes the numbers 0, 1, 2... to one partition, says `half` when half of them are
acknowledged, reads everything back and says `ok` when it found each number once and in order. At
`half` the leader is killed here; afterwards another client reads the log and counts again.

A language that is not installed, or whose packages cannot be fetched, is skipped with the reason.
"""

import re
import shutil
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import pytest

from clients_confluent import ConfluentKit
from clients_kits import Record
from ottla import Cluster, Topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]
HERE = Path(__file__).parent
RECORDS = 5000
BUILD_SECONDS, RUN_SECONDS = 600, 60


def built(language, where, *steps):
    """Copy the sources and run the steps. Skips when a tool or a package is missing."""
    for tool, *_ in steps:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    shutil.copytree(HERE / language, where)
    for step in steps:
        done = subprocess.run(
            step, cwd=where, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
        output = done.stdout + done.stderr
        if done.returncode and step is steps[0]:
            pytest.skip(f"cannot fetch with {' '.join(step)}: {output[-500:]}")
        assert done.returncode == 0, output
    return where


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    fetch = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
    compile_ = ("javac", "-cp", "lib/*", "-d", "classes", "Main.java", "Refused.java")
    where = built("java", tmp_path_factory.mktemp("java") / "it", fetch, compile_)
    return ["java", "-cp", f"{where}/classes:{where}/lib/*"]


@pytest.fixture(scope="module")
def go(tmp_path_factory):
    fetch, compile_ = ("go", "mod", "download"), ("go", "build", "-o", "main", ".")
    return [str(built("go", tmp_path_factory.mktemp("go") / "it", fetch, compile_) / "main")]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    fetch = ("npm", "install", "--no-audit", "--no-fund", "--silent")
    where = built("node", tmp_path_factory.mktemp("node") / "it", fetch, ("node", "--version"))
    return ["node", str(where)]


def survives(command, before=()):
    topic = Topic("t", assignment=[[2, 3, 1]])
    with Cluster(nodes=3, topics=[topic]) as cluster:
        arguments = [*before, cluster.bootstrap_servers, "t", str(RECORDS)]
        program = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        timer = threading.Timer(RUN_SECONDS, program.kill)
        timer.start()
        errors: deque[str] = deque(maxlen=20)
        listener = threading.Thread(target=lambda: errors.extend(program.stderr or ()))
        listener.start()
        said = []
        assert program.stdout is not None
        for line in program.stdout:
            said.append(line.strip())
            if said[-1] == "half":
                killed = cluster.leader("t", 0)
                cluster.kill(killed)
                assert cluster.leader("t", 0) != killed
                cluster.restart(killed)
        listener.join()
        timer.cancel()
        assert program.wait() == 0, (said[-5:], *errors)
        assert said == ["half", f"ok {RECORDS}"]
        found = ConfluentKit().fetch(cluster.bootstrap_servers, "t", 0, 0, RECORDS)
        assert [record.value for record in found] == [b"%d" % n for n in range(RECORDS)]
        assert cluster.describe().topics["t"][0].high_watermark == RECORDS


def test_java_client(java):
    survives([*java, "Main"])


@pytest.mark.parametrize("client", ["franz-go", "sarama"])
def test_go_clients(go, client):
    survives(go, [client])


def test_kafkajs(node):
    program, folder = node
    survives([program, f"{folder}/main.js"])


# --- what does not exist is refused at once -------------------------------------------------------

QUICK_MS = 5000
"""A client takes less than a second where it has a processor for itself."""
NO_GROUPS = "The version of API is not supported"
NO_GROUPS_TEXT = "Ottla has no consumer groups yet"
NO_TRANSACTIONS = re.compile("[Tt]ransactional I[Dd] authorization failed")


def refused(command):
    """What a program said of each case; none took longer than `QUICK_MS`."""
    with Cluster(nodes=3, topics=[Topic("t")]) as cluster:
        ConfluentKit().produce(cluster.bootstrap_servers, "t", [Record(b"v")])
        given = [each.format(cluster.bootstrap_servers) for each in command]
        done = subprocess.run(
            given, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        sys.stdout.write(done.stdout)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert {name: took for name, took, _ in lines if int(took) >= QUICK_MS} == {}
    return {name: said for name, _, said in lines}


def test_java_hears_that_there_are_no_groups_and_no_transactions(java):
    said = refused([*java, "Refused", "{}", "t"])
    assert said["subscribe-classic"].startswith(f"UnsupportedVersionException: {NO_GROUPS}")
    assert said["subscribe-consumer"].startswith(f"InvalidRequestException: {NO_GROUPS_TEXT}")
    assert said["read"] == "1"
    assert NO_GROUPS in said["commit"]
    assert {said[each] for each in said if each.startswith("close")} == {"nothing"}
    assert said["list"].startswith("UnsupportedVersionException: Error listing groups")
    assert NO_GROUPS_TEXT in said["describe"]
    assert NO_TRANSACTIONS.search(said["transaction"])


def test_franz_go_hears_that_there_are_no_groups_and_no_transactions(go):
    said = refused([*go, "franz-go", "{}", "t", "0"])
    assert NO_GROUPS in said["subscribe"]
    assert NO_TRANSACTIONS.search(said["transaction"])
    assert said["close"] == said["close-producer"] == "<nil>"


def test_kafkajs_hears_that_there_are_no_groups_and_no_transactions(node):
    program, folder = node
    said = refused([program, f"{folder}/refused.js", "{}", "t"])
    assert NO_GROUPS in said["subscribe"]
    assert NO_GROUPS in said["list"]
    # It asks for a group's coordinator or a transaction's alike, and says so.
    assert "Failed to find group coordinator" in said["transaction"]
    assert said["close"] == said["close-producer"] == "nothing"
