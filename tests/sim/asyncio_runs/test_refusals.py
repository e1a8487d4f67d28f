"""The deterministic loop refuses what no seed decides, and names the place that asked.

What the loop itself does not do is refused with the loop alone; what the process could do behind
its back (clocks, chance, threads, sockets) is refused while `run` runs, and only then.
"""

import asyncio
import concurrent.futures
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.sim.asyncio_runs.engine import RunFailedError
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.run import run
from ottla.sim.chance.outside import RefusedError


async def _unix():
    await asyncio.open_unix_connection("/tmp/nobody")


async def _datagrams():
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol)


async def _raw_socket():
    await cast(Any, asyncio.get_running_loop()).sock_connect(None, ("127.0.0.1", 1))


async def _process():
    await asyncio.create_subprocess_exec("true")


async def _names():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def _signals():
    asyncio.get_running_loop().add_signal_handler(2, print)


async def _descriptors():
    asyncio.get_running_loop().add_reader(0, print)


async def _tls():
    await asyncio.open_connection("host", 1, ssl=True)


async def _other_tasks():
    with closing(asyncio.sleep(0)) as nobody_awaits:
        asyncio.Task(nobody_awaits, loop=asyncio.get_running_loop())


async def _task_factory():
    asyncio.get_running_loop().set_task_factory(lambda _, coro: coro)


async def _foreign_futures():
    await asyncio.wait([asyncio.Future(), asyncio.Future()], timeout=1)


LOOP: dict[Any, str] = {
    _unix: "create_unix_connection",
    _datagrams: "create_datagram_endpoint",
    _raw_socket: "sock_connect",
    _process: "subprocess_exec",
    _names: "getaddrinfo",
    _signals: "add_signal_handler",
    _descriptors: "add_reader",
    _tls: "ssl=",
    _other_tasks: "a task that the loop did not make",
    _task_factory: "set_task_factory",
    _foreign_futures: "asyncio.wait on a future that the loop did not make",
}


@pytest.mark.parametrize("program", LOOP, ids=lambda each: each.__name__)
def test_what_the_loop_does_not_do_is_refused_where_it_is_asked_for(program):
    with pytest.raises(RunFailedError) as failed:
        run(lambda _: program())
    (failure, *_) = failed.value.failures
    line = program.__code__.co_firstlineno + (2 if program is _other_tasks else 1)
    assert isinstance(failure.exception, RefusedError)
    assert LOOP[program] in str(failure)
    assert f"{__file__}:{line} in {program.__name__}" in str(failure)


def test_as_completed_on_coroutines_is_refused():
    async def number():
        return 1

    coroutines = [number(), number()]

    async def main(_):
        for each in asyncio.as_completed(coroutines):
            await each

    with pytest.raises(RunFailedError, match=r"as_completed on coroutines .*test_refusals"):
        run(main)
    for each in coroutines:
        each.close()


def test_a_refusal_that_is_swallowed_fails_the_run_all_the_same():
    async def main(loop):
        try:
            await loop.getaddrinfo("localhost", 80)
        except Exception:  # noqa: BLE001 - as programs do
            return "went on"

    with pytest.raises(RunFailedError, match="getaddrinfo"):
        run(main)


def test_another_thread_cannot_schedule():
    loop = DeterministicLoop()
    refused = []

    def other():
        try:
            loop.call_soon_threadsafe(print)
        except RefusedError as error:
            refused.append(error)

    async def main():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        loop.call_soon_threadsafe(int)

    try:
        with pytest.raises(RunFailedError, match="from another thread"):
            loop.run_until_complete(main())
    finally:
        loop.close()
    assert len(refused) == 1


def test_a_connection_needs_a_network():
    loop = DeterministicLoop()
    try:
        with pytest.raises(RunFailedError, match="create_connection without a network"):
            loop.run_until_complete(asyncio.open_connection("host", 1))
    finally:
        loop.close()


GUARDED: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "time.time": (time, "time", ()),
    "time.monotonic_ns": (time, "monotonic_ns", ()),
    "time.perf_counter": (time, "perf_counter", ()),
    "time.sleep": (time, "sleep", (0,)),
    "random.random": (random, "random", ()),
    "random.shuffle": (random, "shuffle", ([1, 2],)),
    "random.Random() without a seed": (random, "Random", ()),
    "random._urandom": (secrets, "token_hex", ()),
    "uuid.uuid4": (uuid, "uuid4", ()),
    "uuid.uuid1": (uuid, "uuid1", ()),
    "os.urandom": (os, "urandom", (4,)),
    "Thread.start": (threading.Thread(target=int), "start", ()),
    "socket.__init__": (socket, "socket", ()),
    "socket.getaddrinfo": (socket, "getaddrinfo", ("localhost", 80)),
    "Popen.__init__": (subprocess, "Popen", (["true"],)),
}


@pytest.mark.parametrize("what", GUARDED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_outside_world_is_refused_where_it_is_asked_for(what):
    owner, name, arguments = GUARDED[what]

    async def main(_):
        getattr(owner, name)(*arguments)

    with pytest.raises(RunFailedError, match=Path(__file__).name) as failed:
        run(main)
    assert what in str(failed.value)


def test_a_thread_of_an_executor_is_refused():
    async def main(_):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(int)

    with pytest.raises(RunFailedError, match=r"Thread\.start"):
        run(main)


def test_the_outside_world_is_back_after_the_run():
    def seen():
        return (
            *(time.time, time.monotonic, random.random, random.Random.seed, uuid.uuid4),
            *(os.urandom, threading.Thread.start, socket.socket.__init__),
        )

    async def main(_):
        return seen()

    async def fails(_):
        raise KeyError

    before = seen()
    assert all(a != b for a, b in zip(before, run(main).result, strict=True))
    assert seen() == before
    with pytest.raises(KeyError):
        run(fails)
    assert seen() == before


def test_other_threads_reach_the_world_meanwhile():
    started, asked, told = threading.Event(), threading.Event(), []

    def other():
        started.set()
        asked.wait(10)
        told.append(time.time() + random.random())

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(10)

    async def main(_):
        asked.set()
        thread.join(10)

    run(main)
    assert told


def test_one_run_at_a_time():
    async def main(_):
        run(lambda _: asyncio.sleep(0))

    before = asyncio.all_tasks
    with pytest.raises(RuntimeError, match="under way in this process"):
        run(main)
    # The one that was refused is closed like any other.
    assert asyncio.all_tasks is before
