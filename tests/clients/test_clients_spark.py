"""Spark's own Kafka source and sink, as Spark ships them, against a cluster: batch and streams.

The connector is no part of PySpark: Maven fetches it, and a session with its jars needs a JVM of
its own, so everything here runs in one process beside the test, which prints what it found as JSON.
Where Maven or Java is missing, or the jars cannot be fetched, the tests skip with the reason.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clients_confluent import ConfluentKit
from ottla import Cluster, Topic
from studies_spark import need_spark

pytestmark = [pytest.mark.clients, pytest.mark.slow(seconds=60)]
ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "spark"
NEEDED = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""Of what Maven brings, the jars that PySpark has not got itself."""
FETCH_SECONDS, RUN_SECONDS = 600, 300
RECORDS = 2000


@pytest.fixture(scope="module")
def jars(tmp_path_factory):
    need_spark()
    if shutil.which("mvn") is None:
        pytest.skip("mvn is not installed")
    folder = tmp_path_factory.mktemp("jars")
    shutil.copy(HERE / "pom.xml", folder)
    only = ("-DincludeScope=runtime", "-DoutputDirectory=lib")
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", *only]
    done = subprocess.run(
        fetch, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot fetch the connector: {(done.stdout + done.stderr)[-500:]}")
    found = [path for path in (folder / "lib").glob("*.jar") if path.name.startswith(NEEDED)]
    assert len(found) == len(NEEDED), found
    return ",".join(map(str, found))


class Program:
    """One of the programs `tests/lib/spark_kafka_*.py`, run against a cluster."""

    def __init__(self, name, jars, cluster, folder):
        script = ROOT / "tests" / "lib" / f"spark_kafka_{name}.py"
        command = [sys.executable, str(script), cluster.bootstrap_servers, str(folder)]
        self._errors = folder / "errors.txt"
        with self._errors.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [*command, str(RECORDS), jars],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            )
        self._timer = threading.Timer(RUN_SECONDS, self.process.kill)
        self._timer.start()

    def says(self):
        """The next thing it found; fails the test with its last words when it died."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(self._errors.read_text(encoding="utf-8")[-3000:])
        return json.loads(line)

    def end(self):
        self._timer.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def program(jars, tmp_path):
    running = []

    def start(name, cluster):
        running.append(Program(name, jars, cluster, tmp_path))
        return running[-1]

    yield start
    for each in running:
        each.end()


def test_batches_are_written_and_read(program):
    with Cluster(nodes=3, topics=[Topic("t", partitions=3)]) as cluster:
        batch = program("batch", cluster)
        assert batch.says() == {"written": RECORDS}
        assert batch.says() == {"read": RECORDS, "values": RECORDS, "partitions": 3}
        assert batch.says() == {"headers": [{"key": "h", "value": "1"}]}
        assert batch.says() == {"from offsets": 3 * 7}
        assert batch.says() == {"from a time": RECORDS}
        assert batch.says() == {"in more pieces than partitions": RECORDS}
        assert batch.says() == {"by a pattern": RECORDS}
        ends = [each.high_watermark for each in cluster.describe().topics["t"]]
        assert sum(ends) == RECORDS, "its producer is idempotent: nothing is there twice"


@pytest.mark.nightly
def test_a_stream_copies_a_topic_through_leader_kills_and_from_its_checkpoint(program):
    topics = [Topic("t", partitions=3), Topic("copy", partitions=3)]
    with Cluster(nodes=3, topics=topics) as cluster:
        stream = program("stream", cluster)
        assert stream.says() == {"written": RECORDS}
        for partition, moment in enumerate(("first", "second")):
            assert stream.says() == {"copying": moment}
            leader = cluster.leader("t", partition)
            cluster.kill(leader)
            assert stream.says() == {"goes on": moment}
            cluster.restart(leader)
        assert stream.says() == {"copied": 2 * RECORDS}
        copies = []
        for partition in range(3):
            end = cluster.describe().topics["copy"][partition].high_watermark
            kit = ConfluentKit()
            copies += kit.fetch_from_start(cluster.bootstrap_servers, "copy", partition, end)
        values = [int(each.value or b"-1") for each in copies]
        assert set(values) == set(range(2 * RECORDS))
