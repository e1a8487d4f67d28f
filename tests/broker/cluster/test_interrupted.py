"""A start that is interrupted, at whatever step, leaves nothing: no thread, port, lock, descriptor.

Nor does a stop, or a start beside a stop. The synchronous cluster is interrupted at every step of
bytecode of its own code (that is where Ctrl-C and pytest-timeout strike), the other at every await.
An interrupted start left its thread and its port; two stops at once waited for one another.
"""

import asyncio
import dis
import itertools
import os
import socket
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from awaiting import await_that
from ottla import Cluster, Topic
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import Settings
from ottla.broker.errors import NodeStateError, OttlaError
from ottla.broker.event_loop.loops import new_event_loop

OWN = (
    "broker/cluster/cluster.py",
    "broker/event_loop/loop_thread.py",
    "broker/event_loop/native.py",
)
"""What of a cluster runs in the caller's thread."""
FAST: Settings = {"election_timeout_ms": 100, "heartbeat_ms": 10}


class Interrupt(BaseException):
    """As KeyboardInterrupt."""


CHECKED_BEHIND = ("CALL", "RESUME", "JUMP_BACKWARD")
"""Behind these CPython looks for signals; an exception then counts as raised by them."""


@cache
def places(code):
    """Offsets of instructions before which an interrupt may come, caught by whoever would catch
    what the instruction before it raises."""
    listing: Any = dis.Bytecode(code)
    table = listing.exception_entries

    def caught(offset):
        return next((each.target for each in table if each.start <= offset < each.end), None)

    found = set()
    for before, each in itertools.pairwise(dis.get_instructions(code)):
        if before.opname.startswith(CHECKED_BEHIND) and caught(before.offset) == caught(
            each.offset
        ):
            found.add(each.offset)
    return found


class Striker:
    """Raises `Interrupt` at the place of that number, counted over `OWN`."""

    def __init__(self, at):
        self.left = at
        self.struck = False

    def _trace(self, frame, event, _argument):
        if not frame.f_code.co_filename.endswith(OWN):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and not self.struck and frame.f_lasti in places(frame.f_code):
            self.left -= 1
            if self.left < 0:
                self.struck = True
                raise Interrupt
        return self._trace

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


def threads():
    return [each.name for each in threading.enumerate() if each.name.startswith("ottla")]


def leaves_nothing(port, folder):
    """Wait for what ends by itself; then the port and the folder can be had."""
    await_that(lambda: threads() == [], 60, "threads are left", again_s=0.001)
    with Cluster(nodes=1, port=port, data_dir=folder) as cluster:
        return cluster.describe().nodes[1].state == "running"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def lives(cluster):
    with cluster:
        cluster.create_topic(f"t{len(cluster.describe().topics)}")


def starts_and_stops(cluster):
    try:
        cluster.start()
    finally:
        cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize("body", [lives, starts_and_stops])
@pytest.mark.parametrize("steps", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_at_every_step_of_the_callers_thread(body, steps, tmp_path):
    at, struck = 0, True
    while struck:
        port = free_port()
        cluster = Cluster(nodes=1, port=port, data_dir=tmp_path)
        with Striker(at) as striker:
            try:
                body(cluster)
            except Interrupt:
                pass
            except OttlaError:
                assert striker.struck
        struck = striker.struck
        cluster.stop()
        assert leaves_nothing(port, tmp_path), f"step {at}"
        at += steps
    # CPython 3.12 traces few instructions of frames that are entered before it is asked to.
    assert at > 20 or sys.version_info[:2] == (3, 12)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors")
def test_at_every_await_of_an_async_start(tmp_path):
    async def story():
        rounds, done = 0, False
        async with Cluster(nodes=1):
            pass  # everything is imported
        before = descriptors()
        while not done:
            cluster = AsyncCluster(3, data_dir=tmp_path, topics=[Topic("t")], **FAST)
            starting = asyncio.ensure_future(cluster.start())
            for _ in range(rounds):
                await asyncio.sleep(0)
            done = starting.done()
            starting.cancel()
            await asyncio.wait({starting})
            await cluster.stop()
            assert descriptors() == before, rounds
            assert threads() == []
            rounds += 1 + rounds // 3
            done = done or rounds > 3000
        assert rounds > 5

    asyncio.run(story())


async def echo(reader, writer):
    writer.write(await reader.read(1))
    writer.close()


async def takes_clients_in():
    """Whether servers of the caller's own, on the descriptors that are free now, are served."""
    servers = [await asyncio.start_server(echo, "127.0.0.1", 0) for _ in range(8)]
    try:
        for each in servers:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(*each.sockets[0].getsockname())
                writer.write(b"x")
                assert await reader.read() == b"x"
                writer.close()
    finally:
        for each in servers:
            each.close()


@pytest.mark.slow
@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, new_event_loop])
@pytest.mark.parametrize("again", [False, True])
def test_who_gives_up_a_start_or_a_restart_has_a_sound_event_loop(make_loop, again):
    """A listener was closed that the loop still watched: it took none in on that descriptor."""

    async def story():
        for rounds in range(12):
            cluster = AsyncCluster(3, **FAST)
            if again:
                await cluster.start()
            work = asyncio.ensure_future(cluster.restart(1) if again else cluster.start())
            for _ in range(rounds):
                await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait({work})
            if again:
                await cluster.restart(1)
            await cluster.stop()
            await takes_clients_in()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(story())


@pytest.mark.slow
def test_a_stop_may_be_cancelled_and_goes_on(tmp_path):
    async def story():
        for rounds in range(12):
            cluster = AsyncCluster(1, data_dir=tmp_path, **FAST)
            await cluster.start()
            stopping = asyncio.ensure_future(cluster.stop())
            for _ in range(rounds):
                await asyncio.sleep(0)
            stopping.cancel()
            await asyncio.wait({stopping})
            await cluster.stop()
            await cluster.start()
            await cluster.stop()

    asyncio.run(story())
    assert threads() == []


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 10])
def test_a_program_that_ends_amid_a_start_leaves_no_thread(turns, tmp_path):
    """Amid it by turns of the loop, of which it takes 18 on a machine however slow."""
    cluster = AsyncCluster(3, data_dir=tmp_path, **FAST)

    async def amid_start():
        starting = asyncio.get_running_loop().create_task(cluster.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        assert not starting.done()

    asyncio.run(amid_start())
    assert threads() == []
    with Cluster(nodes=3, data_dir=tmp_path):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 2, 5, 20])
def test_a_program_that_ends_amid_a_stop_leaves_no_thread(turns, tmp_path):
    cluster = AsyncCluster(3, data_dir=tmp_path, **FAST)

    async def amid_stop():
        await cluster.start()
        stopping = asyncio.get_running_loop().create_task(cluster.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        return stopping

    asyncio.run(amid_stop())
    assert threads() == []
    with Cluster(nodes=3, data_dir=tmp_path):
        pass


def test_twice_at_once_and_beside_each_other():
    async def story():
        cluster = AsyncCluster(3, **FAST)
        starting = asyncio.ensure_future(cluster.start())
        await asyncio.sleep(0)
        with pytest.raises(NodeStateError, match="runs already"):
            await cluster.start()
        await asyncio.gather(cluster.stop(), cluster.stop(), cluster.stop())
        with pytest.raises(NodeStateError, match="stopped while it started"):
            await starting
        await cluster.start()
        await cluster.create_topic("t")
        await asyncio.gather(cluster.stop(), cluster.stop())

    asyncio.run(story())


def test_of_several_threads_that_stop_each_returns():
    for _ in range(3):
        cluster = Cluster(nodes=3).start()
        ended: list[list[str]] = []

        def stop(cluster=cluster, ended=ended):
            cluster.stop()
            ended.append(threads())

        stoppers = [threading.Thread(target=stop) for _ in range(4)]
        for each in stoppers:
            each.start()
        for each in stoppers:
            each.join(60)
        assert ended == [[]] * 4


def test_one_thread_starts_and_another_stops():
    for delay in range(10):
        cluster = Cluster(nodes=3, **FAST)
        outcome: list[str] = []

        def start(cluster=cluster, outcome=outcome):
            try:
                cluster.start()
                outcome.append("started")
            except OttlaError as error:
                outcome.append(str(error))

        starter = threading.Thread(target=start)
        starter.start()
        time.sleep(delay * 0.002)
        cluster.stop()
        starter.join(60)
        assert len(outcome) == 1
        cluster.stop()
        assert threads() == []


def test_who_waits_for_something_hears_of_a_stop():
    cluster = Cluster(nodes=3).start()
    cluster.create_topic("t")
    for node in (2, 3):
        cluster.kill(node)
    told = []

    def wait():
        try:
            cluster.create_topic("u", timeout=60)
        except OttlaError as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    cluster.stop()
    waiting.join(60)
    assert len(told) == 1
    with pytest.raises(OttlaError):
        cluster.describe()


def test_a_start_that_fails_tells_why_and_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}: Address already in use"):
            Cluster(nodes=1, port=port, data_dir=tmp_path).start()
    assert leaves_nothing(port, tmp_path)
    with Cluster(nodes=3, data_dir=tmp_path / "three"):
        pass
    before = descriptors() if sys.platform == "linux" else 0
    for _ in range(3):
        with pytest.raises(OttlaError, match="cluster of 3 nodes"):
            Cluster(nodes=2, data_dir=tmp_path / "three").start()
    assert threads() == []
    assert not before or descriptors() == before


def test_a_signal_handler_may_stop_the_cluster():
    import signal

    cluster = Cluster(nodes=1, **FAST)
    old = signal.signal(signal.SIGALRM, lambda *_: cluster.stop())
    try:
        for delay in (0.001, 0.004, 0.02):
            signal.setitimer(signal.ITIMER_REAL, delay)
            try:
                cluster.start()
                time.sleep(0.05)
            except OttlaError:
                pass
            cluster.stop()
            assert threads() == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        assert os.getpid()
