"""Excuses are honest: what is excused is there, and no run reaches it."""

from __future__ import annotations

import pytest

from ottla.sim.coverage.cover import reached_by
from ottla.sim.coverage.deliveries import DELIVERIES
from ottla.sim.coverage.excused import DELIVERIES_EXCUSED, OVERLAPS_EXCUSED, STEPS_EXCUSED
from ottla.sim.coverage.excused_functions import FUNCTIONS_EXCUSED, excuse_of
from ottla.sim.coverage.functions import Function, functions
from ottla.sim.coverage.overlaps import OVERLAPS
from ottla.sim.coverage.steps import MET
from ottla.sim.settings.settings import RunConfig


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("broker/cluster/cluster.py Cluster.start", "broker/cluster/"),
        ("log/note.py read", "log/note.py"),
        ("broker/node/disks.py Disks.open", "broker/node/disks.py Disks"),
        ("broker/node/disks.py knows", None),
        ("raft/core.py RaftCore.vote", "raft/core.py RaftCore.vote"),
        ("raft/core.py RaftCore.voters", None),
        ("log/codec.pyc f", None),
        ("broker/arguments/fields.py whole", "broker/arguments/fields.py whole()"),
        ("broker/arguments/fields.py whole.field", None),
    ],
)
def test_an_excuse_covers_what_lies_in_its_place(name, place):
    assert excuse_of(Function(*name.split(" "))) == place


@pytest.mark.slow
def test_every_place_that_is_excused_is_there():
    assert set(FUNCTIONS_EXCUSED) == {excuse_of(each) for each in functions()} - {None}


def test_what_is_excused_is_counted():
    assert set(OVERLAPS_EXCUSED) <= set(OVERLAPS)
    assert set(STEPS_EXCUSED) <= set(MET)
    assert set(DELIVERIES_EXCUSED) <= set(DELIVERIES)


@pytest.mark.slow
def test_no_seed_reaches_what_is_excused():
    for seed in range(4):
        reached = reached_by(seed, RunConfig(), functions_too=True)
        assert [each for each in reached.functions if excuse_of(each) is not None] == []
        assert {*reached.overlaps} & {*OVERLAPS_EXCUSED} == set()
        assert {*reached.steps} & {*STEPS_EXCUSED} == set()
        assert {*reached.deliveries} & {*DELIVERIES_EXCUSED} == set()
