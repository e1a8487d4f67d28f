"""Broken checkers are noticed: for each of them some labelled history is judged wrongly."""

import pytest

from ottla.sim.invariants.judge import judge
from ottla.sim.invariants.mutants import CheckerMutant
from sim_histories import histories

CORPUS = histories()


@pytest.mark.parametrize("mutant", CheckerMutant, ids=lambda each: each.name)
def test_the_corpus_notices(mutant):
    wrong = [
        each for each in CORPUS if judge(each.events, frozenset({mutant})).broken != each.broken
    ]
    assert len(wrong) >= 2, "one history alone would be luck"


def test_the_mutants_are_those_of_the_catalogue():
    numbers = [mutant.value.partition(":")[0] for mutant in CheckerMutant]
    assert numbers == [f"sim-K{number}" for number in range(1, 7)]
