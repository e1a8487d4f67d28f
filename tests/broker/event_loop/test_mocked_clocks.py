"""Clocks that a test has put in place of Python's: a cluster goes by the machine's.

Each mock is tried while a leader is killed, which takes an election, a timeout that a client set,
and a wait of the cluster's own. With freezegun nobody was elected, and no timeout came.
"""

import asyncio
import datetime as dt
import importlib.util
import time
from contextlib import ExitStack, contextmanager

import pytest

from broker_children import run_program
from ottla import Cluster, OttlaError
from ottla.broker.client import Client
from ottla.broker.config import Settings
from ottla.broker.errors import ErrorCode

REAL = time.perf_counter
FAST: Settings = {"election_timeout_ms": 150, "heartbeat_ms": 15}
NAMES = ("time", "monotonic", "perf_counter", "clock_gettime")


class Stands(dt.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2001, 1, 1, tzinfo=tz)


@contextmanager
def patched(reading):
    """`reading(real)` in place of every clock of the module `time`, and of `datetime.now`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            real = getattr(time, name)
            patch.setattr(time, name, lambda *given, real=real: reading(real(*given)))
            counted = getattr(time, name + "_ns")
            patch.setattr(
                time, name + "_ns", lambda *given, real=counted: int(reading(real(*given)))
            )
        patch.setattr(dt, "datetime", Stands)
        yield


def freezegun(**how):
    return importlib.import_module("freezegun").freeze_time("2024-05-05 12:00:00", **how)


def time_machine(**how):
    return importlib.import_module("time_machine").travel(
        dt.datetime(1980, 1, 1, tzinfo=dt.UTC), **how
    )


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


def broken(_):
    raise ValueError("no time")


MOCKS = {
    "stands still": lambda: patched(lambda _: 5),
    "set back": lambda: patched(lambda at: at / 1e6),
    "below zero": lambda: patched(lambda at: -at),
    "an hour ahead": lambda: patched(lambda at: at + 3_600e9),
    "leaps": lambda: patched(lambda at: at * 1000),
    "raises": lambda: patched(broken),
    "no number": lambda: patched(lambda _: "noon" and 0.5),
}
PACKAGES = [
    pytest.param(freezegun, {}, marks=needs("freezegun"), id="freezegun"),
    pytest.param(freezegun, {"tick": True}, marks=needs("freezegun"), id="freezegun ticks"),
    pytest.param(freezegun, {"real_asyncio": True}, marks=needs("freezegun"), id="real asyncio"),
    pytest.param(time_machine, {"tick": False}, marks=needs("time_machine"), id="time-machine"),
    pytest.param(time_machine, {"tick": True}, marks=needs("time_machine"), id="machine ticks"),
]


def fail_over(cluster):
    """A leader is killed and another one serves; who waits in vain is told so, in time."""
    begun = REAL()
    old = cluster.leader("t")
    cluster.kill(old)
    assert cluster.leader("t", timeout=10) != old
    cluster.restart(old)
    others = [node for node in cluster.addresses if node != old][:2]
    for node in others:
        cluster.pause(node)
    with pytest.raises(OttlaError):
        cluster.create_topic("u", timeout=0.2)
    for node in others:
        cluster.resume(node)
    assert cluster.leader("t", timeout=10)
    assert REAL() - begun < 20


QUICK = ("stands still", "leaps", "raises")


@pytest.mark.slow
@pytest.mark.parametrize(
    "mock", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in MOCKS]
)
def test_put_in_place_before_a_cluster_starts_or_while_it_runs(mock):
    with Cluster(nodes=3, **FAST) as cluster:
        cluster.create_topic("t")
        with MOCKS[mock]():
            fail_over(cluster)
        fail_over(cluster)
    with MOCKS[mock](), Cluster(nodes=3, **FAST) as cluster:
        cluster.create_topic("t")
        fail_over(cluster)


@pytest.mark.parametrize(("package", "how"), PACKAGES)
def test_of_packages(package, how):
    with ExitStack() as later, Cluster(nodes=3, **FAST) as cluster:
        cluster.create_topic("t")
        with package(**how):
            fail_over(cluster)
            later.enter_context(Cluster(nodes=1)).create_topic("began-frozen")
        fail_over(cluster)


async def produce_in_vain(running):
    """What a client is answered whose batch cannot be replicated within its 40 ms."""
    leader = await running.leader("t")
    client = await Client.connect(*running.addresses[leader])
    others = [node for node in running.addresses if node != leader]
    for node in others:
        running.pause(node)
    answer = await client.produce("t", 0, [b"x"], timeout_ms=40)
    for node in others:
        running.resume(node)
    client.close()
    assert answer is not None
    return answer.error


@pytest.mark.parametrize("mock", ["stands still", "set back", "an hour ahead", "raises"])
def test_on_a_loop_of_the_callers(mock):
    """asyncio's own loops measure by what is mocked: no timer of theirs rang any more."""

    async def main():
        async with Cluster(nodes=3, **FAST) as running:
            await running.create_topic("t")
            with MOCKS[mock]():
                old = await running.leader("t")
                await running.kill(old)
                assert await running.leader("t", timeout=10) != old
                await running.restart(old)
                assert await produce_in_vain(running) is ErrorCode.REQUEST_TIMED_OUT
                await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        assert "time" not in vars(loop), "given back"

    asyncio.run(main(), debug=False)


def test_a_loop_with_a_time_of_its_own_keeps_it():
    class Own(asyncio.SelectorEventLoop):
        def time(self):
            return super().time() + 1e6

    async def main():
        loop = asyncio.get_running_loop()
        async with Cluster(nodes=1), Cluster(nodes=1):
            assert loop.time() > 1e6
        assert "time" not in vars(loop)

    with asyncio.Runner(loop_factory=Own) as runner:
        runner.run(main())


PROGRAM = """
import time
for name in ("time", "monotonic", "perf_counter"):
    setattr(time, name, lambda: 7.0)
    setattr(time, name + "_ns", lambda: 7)
from ottla import Cluster
with Cluster(nodes=3) as cluster:
    cluster.create_topic("t")
    old = cluster.leader("t")
    cluster.kill(old)
    print(cluster.leader("t") != old)
"""


@pytest.mark.slow
def test_mocked_before_anything_is_imported():
    assert run_program(PROGRAM) == "True"


def test_append_times_are_the_machines():
    """As of a broker in another process, which would know nothing of the mock."""

    async def main():
        async with Cluster(nodes=1) as running:
            await running.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
            before = time.time_ns() // 1_000_000
            client = await Client.connect(*running.addresses[1])
            with MOCKS["below zero"]():
                await client.produce("t", 0, [b"x"])
            fetched = await client.fetch("t", 0, 0)
            client.close()
            (batch,) = fetched.batches
            return before <= batch.max_timestamp <= time.time_ns() // 1_000_000

    assert asyncio.run(main())
