"""The audit through what it is for: leaders killed while it reads, and itself killed, signal 9.

Each audit here is a process of its own, with a JVM of its own, as a user runs it; what it must come
to is known from what was written.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from clients_kits import quiet
from ottla import Cluster, Topic
from studies_spark import need_spark
from studies_topics import anomalous, batch, write

pytestmark = pytest.mark.slow
WITHIN = 300
SUMMARY = re.compile(r"t: ([\d,]+) records of (\d+) producers? .*: (\d.*)")


@pytest.fixture(autouse=True)
def needed():
    need_spark()


class Audit:
    """`ottla study audit` in the background, in a process group of its own: a JVM is part of it."""

    def __init__(self, cluster, checkpoint, *arguments):
        command = [sys.executable, "-m", "ottla", "study", "audit", "--topic", "t"]
        where = ["--bootstrap", cluster.bootstrap_servers, "--checkpoint", str(checkpoint)]
        self.process = subprocess.Popen(
            [*command, *where, "--master", "local[2]", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill(self):
        """Signal 9, to all of it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def ended(self):
        """Its status and its lines, once it has ended by itself."""
        try:
            out, err = self.process.communicate(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.said = out + err
        assert self.process.returncode in {0, 1, 143}, err
        return self.process.returncode, out.splitlines()


def committed(checkpoint):
    """How many micro-batches Spark has committed."""
    return sum(1 for path in (checkpoint / "stream" / "commits").glob("[0-9]*"))


def write_with_confluent(cluster, stop, count):
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "logger": quiet,
        }
    )
    while not stop.is_set():
        producer.produce("t", b"confluent", partition=count[0] % 2)
        count[0] += 1
        producer.poll(0.005)
    assert producer.flush(60) == 0


async def write_with_aiokafka(cluster, stop, count):
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=True, linger_ms=5
    )
    await producer.start()
    under_way = []
    while not stop.is_set():
        under_way.append(await producer.send("t", b"aiokafka", partition=count[0] % 2))
        count[0] += 1
        await asyncio.sleep(0.005)
    await asyncio.gather(*under_way)
    await producer.stop()


@pytest.mark.slow(seconds=100)
def test_it_counts_nothing_twice_while_leaders_are_killed(tmp_path):
    stop, sent = threading.Event(), ([0], [0])
    with Cluster(nodes=3, topics=[Topic("t", partitions=2)]) as cluster:
        writers = [
            threading.Thread(target=write_with_confluent, args=(cluster, stop, sent[0])),
            threading.Thread(
                target=lambda: asyncio.run(write_with_aiokafka(cluster, stop, sent[1]))
            ),
        ]
        for writer in writers:
            writer.start()
        audit = Audit(cluster, tmp_path, "--batch", 1000)
        until = time.monotonic() + WITHIN
        for round_ in range(2):  # the leader of each partition
            while committed(tmp_path) <= round_ and time.monotonic() < until:
                time.sleep(0.1)
            leader = cluster.leader("t", round_ % 2)
            cluster.kill(leader)
            time.sleep(1.0)
            cluster.restart(leader)
        seen = committed(tmp_path)
        stop.set()
        for writer in writers:
            writer.join()
        audit.process.send_signal(signal.SIGTERM)
        assert audit.ended()[0] == 143, audit.said
        status, lines = Audit(cluster, tmp_path, "--once").ended()
        ends = [each.high_watermark for each in cluster.describe().topics["t"]]
    assert seen >= 2, "the audit read while leaders were killed"
    assert status == 0
    found = SUMMARY.fullmatch(lines[-1])
    assert found, lines
    assert int(found[1].replace(",", "")) == sum(ends) == sent[0][0] + sent[1][0]
    assert found.groups()[1:] == ("2", "0 missing, 0 duplicated, 0 out of order")


@pytest.mark.nightly
def test_killed_at_any_moment_it_goes_on_and_counts_everything_once(tmp_path):
    rounds = range(200)
    batches = [
        each
        for n in rounds
        # The broker remembers one producer, and takes the first one's sequences again.
        for each in (batch(n % 2, 1, 0, 3), batch(n % 2, 2 + n, 1, 2))
    ]
    with anomalous() as cluster:
        write(cluster, "t", batches)
        for kill in range(3):
            audit = Audit(cluster, tmp_path, "--batch", 20)
            until, before = time.monotonic() + WITHIN, committed(tmp_path)
            while committed(tmp_path) < before + 3 and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.05 * kill)
            audit.kill()
        assert 9 <= committed(tmp_path) < 50, "killed in the middle, each time"
        status, lines = Audit(cluster, tmp_path, "--once", "--batch", 100).ended()
    assert status == 1
    found = SUMMARY.fullmatch(lines[-1])
    assert found, lines
    assert found[1] == "1,000"
    # 200 producers begin with 1; producer 1 begins anew 199 times, but for once in each partition.
    assert found[3] == "200 missing, 594 duplicated, 0 out of order"
    assert len(lines) == len(set(lines)) == 200 + 198 + 1
