"""`Disks`: how the folders of a cluster are opened. What they refuse is in `test_refusals.py`."""

import asyncio
from threading import Event

import pytest

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ConfigError
from ottla.broker.event_loop.clockwork import RunningClock
from ottla.broker.node.disks import Disks

NODES = (1, 2, 3)
PATIENCE_S = 20


async def opened(folder):
    """The disks of a cluster in that folder, opened, and closed again; what its id is."""
    disks = Disks(NODES, folder, ClusterConfig())
    clock = RunningClock.fit_for(asyncio.get_running_loop(), 500)
    try:
        return await disks.cluster_id(lambda: "chosen", clock)
    finally:
        clock.stop()
        for node in NODES:
            disks.close(node)


def before_each(monkeypatch, first):
    """Have `first(node)` run where a folder is about to be opened."""
    inner = Disks._make

    def make(disks, node):
        first(node)
        return inner(disks, node)

    monkeypatch.setattr(Disks, "_make", make)


def test_the_loop_goes_on_while_logs_are_read(tmp_path, monkeypatch):
    """Three logs of 50,000 batches took a second, in one turn of the loop."""
    assert asyncio.run(opened(tmp_path)) == "chosen"
    goes_on = Event()

    async def beside():
        loop = asyncio.get_running_loop()

        def first(_node):
            loop.call_soon_threadsafe(goes_on.set)
            assert goes_on.wait(PATIENCE_S), "the loop does not go on"

        before_each(monkeypatch, first)
        return await opened(tmp_path)

    assert asyncio.run(beside()) == "chosen"
    assert goes_on.is_set()


def test_a_start_that_is_given_up_while_logs_are_read_leaves_no_folder_open(tmp_path, monkeypatch):
    assert asyncio.run(opened(tmp_path)) == "chosen"

    async def given_up():
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        with monkeypatch.context() as patched:
            before_each(patched, lambda _node: loop.call_soon_threadsafe(begun.set))
            task = asyncio.create_task(opened(tmp_path))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return await opened(tmp_path)

    assert asyncio.run(given_up()) == "chosen"


@pytest.mark.parametrize("error", [OSError("no room"), RuntimeError("a bug")])
def test_what_hinders_one_folder_is_told_when_all_have_been_tried(tmp_path, monkeypatch, error):
    assert asyncio.run(opened(tmp_path)) == "chosen"
    tried = []

    def first(node):
        tried.append(node)
        if node == 1:
            raise error

    with monkeypatch.context() as patched:
        before_each(patched, first)
        refused = ConfigError if isinstance(error, OSError) else RuntimeError
        with pytest.raises(refused, match=str(error)):
            asyncio.run(opened(tmp_path))
    assert sorted(tried) == [1, 2, 3]
    assert asyncio.run(opened(tmp_path)) == "chosen"
