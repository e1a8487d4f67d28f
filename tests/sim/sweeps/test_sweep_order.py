"""A sweep tells of a part as soon as it has ended, however long those before it take.

Which process is slow cannot be chosen, so a pool stands in for them whose parts end when the test
says so; what they come to are real results.
"""

from concurrent.futures import Future
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from ottla.sim.machine.processes import as_they_end
from ottla.sim.sweeps import sweep as sweep_module
from ottla.sim.sweeps.sweep import AHEAD, run_chunk, sweep
from ottla.sim.sweeps.sweep_folder import Plan

PLAN = Plan(0, 60, "load_ms = 200\nrecords = 4\nfault_every_ms = 0\n")
JOBS = 2


class Unhurried(Future[Any]):
    """Is never waited for alone: the test would hang."""

    def result(self, timeout=None):
        assert self.done(), "a part was waited for while others had ended"
        return super().result(timeout)


class SlowFirst:
    """Whatever is submitted is done at once, but for the first part."""

    def __init__(self):
        self.first = Unhurried()

    def submit(self, function, *given):
        if function is run_chunk and given[0].start == PLAN.first:
            return self.first
        future = Unhurried()
        future.set_result(function(*given))
        return future


@pytest.fixture
def pool(monkeypatch):
    slow = SlowFirst()

    @contextmanager
    def processes(_):
        yield slow

    monkeypatch.setattr(sweep_module, "processes", processes)
    return slow


def parts(folder):
    return sorted(int(each.stem.removeprefix("part-")) for each in folder.glob("part-*.parquet"))


@pytest.mark.slow
def test_a_slow_part_holds_up_no_later_one(pool, tmp_path):
    sweeping = sweep(PLAN, JOBS, tmp_path)
    early = [next(sweeping) for _ in range(35)]
    assert [each.seed for each in early] == list(range(25, 60))
    assert parts(tmp_path) == [25, 50]
    pool.first.set_result(run_chunk(range(25), PLAN.settings))
    late = list(sweeping)
    assert [each.seed for each in late] == list(range(25))
    assert parts(tmp_path) == [0, 25, 50]
    assert list(sweep(PLAN, 1, tmp_path)) == late + early


@pytest.mark.slow
@pytest.mark.usefixtures("pool")
def test_a_sweep_that_ended_in_a_slow_part_goes_on_with_that_alone(tmp_path):
    early = list(islice(sweep(PLAN, JOBS, tmp_path), 35))
    there: list[int] = []
    again = list(sweep(PLAN, 1, tmp_path, begins=there.append))
    assert there == [35]
    assert again[:35] == early
    assert [each.seed for each in again[35:]] == list(range(25))


def asked_for(futures, asked):
    """Notes which of them were asked for."""
    for place, future in enumerate(futures):
        asked.append(place)
        yield future


def test_no_more_are_asked_for_than_are_allowed_ahead():
    ahead = AHEAD * JOBS
    asked: list[int] = []
    futures: list[Future[None]] = [Future() for _ in range(3 * ahead)]
    for future in futures[1:]:
        future.set_result(None)
    giving = as_they_end(asked_for(futures, asked), ahead)
    for given in range(len(futures) - 1):
        assert futures.index(next(giving)) == given + 1
        assert len(asked) <= given + ahead
    futures[0].set_result(None)
    assert list(giving) == [futures[0]]
    assert asked == list(range(len(futures)))


def test_what_is_done_is_given_before_what_broke():
    broken: Future[None] = Future()
    done: Future[None] = Future()
    broken.set_exception(OSError())
    done.set_result(None)
    assert list(as_they_end(iter([broken, done]), AHEAD)) == [done, broken]


def test_nothing_asked_for_is_nothing_given():
    assert list(as_they_end(iter(()), AHEAD)) == []
