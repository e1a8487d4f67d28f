"""Blind sweeps: what breaks the product dies within a few seeds, and what does not lives.

What hangs, or is no code, is told of; what fails without the mutant as well counts for nothing.
How sweeps go on and stop is shown with processes that say what a test has them say.
"""

from __future__ import annotations

import pytest

from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.mutants.planted import Planted, PlantedError
from ottla.sim.sweeps import blind
from ottla.sim.sweeps.blind import (
    FIRST,
    NO_IMPORT,
    BlindKills,
    Sweep,
    Target,
    of_a_table,
    of_the_catalogue,
)
from ottla.sim.sweeps.blind_child import BROKE, HUNG, Seed

M06 = of_the_catalogue(BY_ID["M06"])
REACHED = "return sorted(values)[(len(values) - 1) // 2]"


def planted(new: str, old: str = REACHED) -> Target:
    return of_a_table(Planted("X1", "raft", "raft/quorum.py", old, new, "something", "somehow"))


def one(target: Target, seeds: int = 4, **options) -> BlindKills:
    (found,) = Sweep(range(FIRST, FIRST + seeds), **options).kills([target], 1)
    return found


class Child:
    """Says of seeds what a test has it say."""

    ready = True
    ended = False

    def __init__(self, said: dict[int, Seed]):
        self._said = said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, seed):
        return self._said.get(seed, Seed(seed, [], "", 0.5))

    def kill(self):
        pass

    close = kill


def said(number: int, *noticed: str, cpu_s: float = 1.0) -> dict[int, Seed]:
    seed = FIRST + number
    return {seed: Seed(seed, list(noticed), f"because of {seed}", cpu_s)}


@pytest.fixture
def children(monkeypatch):
    """`children(mutant, plain)`: what is said of seeds with the mutant, and without."""

    def make(mutant: dict[int, Seed], plain: dict[int, Seed]) -> None:
        def begun(_tree, settings, _limit):
            return Child(mutant if "mutants" in settings else plain)

        monkeypatch.setattr(blind, "Child", begun)

    return make


def test_it_stops_at_the_first_seed_that_fails(children):
    children({**said(1, "sim-I01", "sim-I02"), **said(2, "sim-I03")}, {})
    found = one(M06)
    assert (found.seeds, found.killed, found.failing, found.number) == (2, 1, FIRST + 1, 2)
    assert found.noticed == (("sim-I01", 1), ("sim-I02", 1))
    assert found.reason == f"because of {FIRST + 1}"
    assert found.cpu_s == 1.5


def test_it_goes_on_to_the_end_if_asked(children):
    children({**said(1, "sim-I01", "sim-I02"), **said(3, "sim-I02")}, {})
    found = one(M06, to_the_end=True)
    assert (found.seeds, found.killed, found.number) == (4, 2, 2)
    assert found.noticed == (("sim-I02", 2), ("sim-I01", 1))
    share, low, high = found.share
    assert low < share == 0.5 < high


def test_who_survives_was_killed_by_no_seed(children):
    children({}, {})
    told: list[int] = []
    found = one(M06, told=told.append)
    assert (found.seeds, found.killed, found.number) == (4, 0, None)
    assert told == [1, 2, 3, 4]


def test_a_seed_that_fails_without_the_mutant_counts_for_nothing(children):
    children({**said(0, "sim-I01"), **said(2, "sim-I02")}, said(0, "sim-I09"))
    found = one(M06)
    assert found.without == (FIRST,)
    assert (found.number, found.noticed) == (3, (("sim-I02", 1),))


def test_a_seed_that_does_not_end_counts_if_it_ends_far_below_without(children):
    hangs = {**said(0, HUNG, cpu_s=60), **said(1, HUNG, cpu_s=60)}
    children(hangs, said(0, cpu_s=6.1))
    found = one(M06)
    assert found.without == (FIRST,)
    assert (found.number, found.noticed) == (2, ((HUNG, 1),))


def test_a_mutant_that_does_not_fit_is_refused():
    for target, told in (
        (planted("return 0", old="return nothing"), "stands 0 times in raft/quorum.py"),
        (
            of_a_table(Planted("X1", "raft", "raft/no.py", "a", "b", "what", "how")),
            "there is no file raft/no.py",
        ),
    ):
        with pytest.raises(PlantedError, match=told):
            one(target)


@pytest.mark.slow
def test_a_planted_mutant_dies_and_an_equivalent_one_does_not():
    sweep = Sweep(range(FIRST, FIRST + 3))
    died = planted("return max(values)")
    same = planted("return sorted(values, reverse=True)[len(values) // 2]")
    found = [*sweep.kills([died, M06], 2)]
    assert all(each.killed == 1 for each in found), found
    alive = one(same, 3)
    assert (alive.killed, alive.seeds) == (0, 3)
    assert alive.cpu_s > 0


@pytest.mark.slow
def test_a_real_one_that_goes_round_or_breaks_or_is_no_code(monkeypatch):
    monkeypatch.setattr(blind, "FAR_BELOW", 1.0)
    assert one(planted("return ((")).noticed == ((NO_IMPORT, 1),)
    assert one(planted("raise LookupError('no')")).noticed[0][0] in {BROKE, "sim-I00"}
    hangs = one(planted("while True:\n        pass"), limit_s=8)
    assert hangs.noticed == ((HUNG, 1),)
    assert "did not end within 8 s of CPU" in hangs.reason
    dies = one(planted("__import__('ctypes').string_at(0)"))
    assert dies.noticed == ((BROKE, 1),)
    assert "status -11" in dies.reason
