"""A process that did not run for a while keeps its leaders: nobody was silent but itself.

A loop is blocked by a call that waits, by the collector, by a debugger; a process is stopped by
SIGSTOP, a machine by whoever runs it. Each time the first timer that rang judged by a clock that
had gone on: followers stood for election, leaders counted their followers as gone.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.clockwork import RunningClock


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.3, 0.8, 2.0])
def test_a_blocked_loop_changes_no_leader(pause):
    async def story():
        async with Cluster(nodes=3, replica_lag_ms=500, min_insync_replicas=3) as cluster:
            await cluster.create_topic("t", partitions=5)
            client = await Client.connect(*cluster.addresses[await cluster.leader("t")])
            before = cluster.counters.leaderships, cluster.counters.step_downs
            for _ in range(3):
                time.sleep(pause)  # noqa: ASYNC251 - this is what is tested
                answer = await client.produce("t", 0, [b"x"])
                assert answer is not None
                assert answer.error is ErrorCode.NONE, "all replicas are in sync"
            await asyncio.sleep(1)
            client.close()
            assert (cluster.counters.leaderships, cluster.counters.step_downs) == before

    asyncio.run(story())


def test_a_client_that_waits_meanwhile_is_not_timed_out():
    async def story():
        async with Cluster(nodes=3) as cluster:
            await cluster.create_topic("t")
            leader = await cluster.leader("t")
            client = await Client.connect(*cluster.addresses[leader])
            asked = asyncio.ensure_future(client.produce("t", 0, [b"x"], timeout_ms=400))
            await asyncio.sleep(0)
            time.sleep(1)  # noqa: ASYNC251 - this is what is tested
            answer = await asked
            assert answer is not None
            assert answer.error is ErrorCode.NONE
            client.close()

    asyncio.run(story())


@pytest.mark.slow
def test_an_idle_limit_that_passed_meanwhile_drops_nobody_who_has_sent_something():
    async def story():
        async with Cluster(nodes=1, connections_max_idle_ms=1500) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await client.metadata()
            asked = asyncio.ensure_future(client.metadata())
            await asyncio.sleep(0)
            time.sleep(3)  # noqa: ASYNC251 - this is what is tested
            await asked
            client.close()

    asyncio.run(story())


@pytest.mark.slow
def test_who_is_dead_is_replaced_all_the_same_though_the_loop_stops_now_and_then():
    async def story():
        async with Cluster(nodes=3) as cluster:
            await cluster.create_topic("t")
            old = await cluster.leader("t")
            await cluster.kill(old)
            found = asyncio.ensure_future(cluster.leader("t"))
            stalls = 0
            while not found.done():
                time.sleep(0.3)  # noqa: ASYNC251 - this is what is tested
                await asyncio.sleep(0.005)
                stalls += 1
                assert stalls < 40
            assert await found != old

    asyncio.run(story())


PROGRAM = """
import sys
from ottla import Cluster
with Cluster(nodes=3) as cluster:
    cluster.create_topic("t", partitions=3)
    print("ready", flush=True)
    for line in sys.stdin:
        print(cluster.counters.leaderships, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_a_stopped_process_changes_no_leader():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        asking, answers = process.stdin, process.stdout

        def ask():
            asking.write("\n")
            asking.flush()
            return answers.readline()

        try:
            assert process.stdout.readline() == "ready\n"
            before = ask()
            for _ in range(2):
                process.send_signal(signal.SIGSTOP)
                time.sleep(1.5)
                process.send_signal(signal.SIGCONT)
                time.sleep(0.7)
            assert ask() == before
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


class FakeLoop:
    """Timers that ring when the test says so."""

    def __init__(self):
        self.timers = []

    def call_later(self, delay, call):
        self.timers.append((delay, call))
        return self

    def call_soon(self, call):
        call()

    def cancel(self):
        self.timers.clear()

    def ring(self):
        self.timers.pop(0)[1]()


GRAIN = 10_000


class Machine:
    def __init__(self, loop: Any):
        self.at = 1_000_000
        self.loop = loop
        self.clock = RunningClock(self.loop, GRAIN)


@pytest.fixture
def machine(monkeypatch):
    """A machine's clock to set, and a cluster's clock on it."""

    found = Machine(FakeLoop())
    monkeypatch.setattr("ottla.broker.event_loop.clockwork.monotonic_micros", lambda: found.at)
    found.clock(None)
    return found


def test_the_clock_counts_no_more_than_a_grain_of_a_stall(machine):
    begun = machine.clock.now()
    machine.at += 60_000_000
    assert machine.clock.now() - begun == 2 * GRAIN
    machine.at += 5
    assert machine.clock.now() - begun == 2 * GRAIN + 5
    machine.loop.ring()
    machine.at += GRAIN
    assert machine.clock.now() - begun == 3 * GRAIN + 5


def test_the_clock_counts_all_while_its_timer_rings_in_time(machine):
    begun = machine.clock.now()
    for _ in range(100):
        machine.at += GRAIN + GRAIN // 2
        machine.loop.ring()
        assert machine.clock.now() - begun == machine.at - 1_000_000


def test_the_clock_never_goes_back(machine):
    seen = [machine.clock.now()]
    for span in (1, GRAIN, 3 * GRAIN, 7 * GRAIN, 2 * GRAIN, 100 * GRAIN, 1, 0):
        machine.at += span
        if span % 7:
            machine.loop.ring()
        seen.append(machine.clock.now())
    assert seen == sorted(seen)
