"""The kernel's clock: events in order, and an end to those that ask for one another for good.

Its times are whole microseconds, whoever asks for them: that is looked at in runs, in which every
module that asks for a time takes part.
"""

import pytest

from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan
from ottla.sim.world import world as world_module
from ottla.sim.world.kernel import AT_ONCE, Kernel, StandstillError


def nothing():
    pass


def bad():
    raise ValueError("no number")


def again_and_again(kernel, delay, most=None):
    """An event that asks for itself, so often."""
    happened = []

    def ring():
        happened.append(kernel.now)
        if most is None or len(happened) < most:
            kernel.after(delay, ring)

    kernel.at(5, ring)
    return happened


def test_events_without_any_delay_between_them_are_an_error_and_not_for_good():
    kernel = Kernel()
    happened = again_and_again(kernel, 0)
    with pytest.raises(StandstillError, match=rf"^{AT_ONCE} events in a row at 5 us$"):
        kernel.run(1_000)
    assert kernel.steps == len(happened) == AT_ONCE


def test_that_time_moved_before_it_stood_still_delays_the_error_and_hides_nothing():
    kernel = Kernel()
    kernel.at(4, nothing)
    happened = again_and_again(kernel, 0)
    with pytest.raises(StandstillError):
        kernel.run(1_000)
    assert kernel.steps == len(happened) + 1 == 2 * AT_ONCE


def test_as_many_events_while_time_goes_on_are_none():
    kernel = Kernel()
    happened = again_and_again(kernel, 1)
    kernel.run(2 * AT_ONCE)
    assert (kernel.now, kernel.steps) == (2 * AT_ONCE, len(happened))
    assert happened == list(range(5, 2 * AT_ONCE + 1))


def test_many_events_at_one_time_that_end_are_none():
    kernel = Kernel()
    happened = again_and_again(kernel, 0, most=AT_ONCE - 1)
    kernel.run(1_000)
    assert (kernel.now, kernel.steps) == (1_000, len(happened)) == (1_000, AT_ONCE - 1)


def test_what_an_event_raises_is_counted_with_the_events_until_then():
    kernel = Kernel()
    kernel.at(1, nothing)
    kernel.at(2, bad)
    kernel.at(3, nothing)
    with pytest.raises(ValueError, match="no number"):
        kernel.run(10)
    assert (kernel.now, kernel.steps) == (2, 2)
    kernel.run(10)
    assert (kernel.now, kernel.steps) == (10, 3)


@pytest.mark.slow
def test_a_seed_whose_clock_stands_still_is_a_cluster_that_comes_to_no_rest(monkeypatch, tmp_path):
    """It had its sweep run for good."""
    boot, worlds = world_module.World.boot, []

    def boot_and_stand_still(self):
        worlds.append(self)
        if len(worlds) == 4:  # two canaries are run first
            again_and_again(self.kernel, 0)
        boot(self)

    monkeypatch.setattr(world_module.World, "boot", boot_and_stand_still)
    results = list(sweep(Plan(7, 3, "load_ms = 1000\nrecords = 20\n"), 1, tmp_path))
    assert [each.verdict for each in results] == ["ok", "failed", "ok"]
    told = f": time stands still: {AT_ONCE} events in a row at "
    assert results[1].invariant == "sim-I31"
    assert told in results[1].reason
    assert [each.name for each in (tmp_path / "failed").iterdir()] == ["8.tape"]


@pytest.fixture
def kinds(monkeypatch):
    """The types of the times and spans that a kernel is asked for, each with who asked."""
    found: dict[type, set[str]] = {}

    def noting(ask):
        def noted(self, when, call, *arguments):
            found.setdefault(type(when), set()).add(getattr(call, "__qualname__", repr(call)))
            ask(self, when, call, *arguments)

        return noted

    for name in ("at", "after"):
        monkeypatch.setattr(Kernel, name, noting(getattr(Kernel, name)))
    return found


@pytest.mark.slow
def test_time_is_whole_microseconds_whoever_asks(kinds):
    """A float is another one where it was added up in another order."""
    for seed in range(20):
        outcome = run(seed, RunConfig(load_ms=2_000, records=30, fault_every_ms=200))
        assert {type(row.t_us) for row in outcome.rows} == {int}
    assert kinds.keys() == {int}, kinds
    assert len(kinds[int]) > 10


def test_a_time_that_is_not_whole_is_seen(kinds):
    Kernel().after(0.5, nothing)  # type: ignore[arg-type]
    assert kinds == {float: {"nothing"}}
