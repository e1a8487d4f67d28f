"""Functions are known by their place in the sources, and those that a block enters are told from
the others."""

from __future__ import annotations

import sys

import pytest

from ottla.broker.profiles.named import profile_named
from ottla.raft.quorum import majority
from ottla.sim.coverage.cover import Cover, reached_by
from ottla.sim.coverage.functions import PACKAGES, Function, entered, functions
from ottla.sim.settings.settings import RunConfig

SHORT = RunConfig(load_ms=1_000, records=10)
pytestmark = pytest.mark.slow  # the sources of four packages are read


def test_functions_of_all_packages_are_listed_by_their_names():
    known = functions()
    assert {each.file.split("/")[0] for each in known} == set(PACKAGES)
    assert Function("raft/quorum.py", "majority") in known
    assert Function("raft/core.py", "RaftCore.step") in known
    assert len(known) > 1_500


def test_a_protocol_has_nothing_to_enter():
    assert not [each for each in functions() if each.name.startswith("LogStore.")]


def test_what_a_block_enters_is_known_and_tracing_ends_with_it():
    before = sys.gettrace()
    with entered() as ran:
        assert majority(3) == 2
        assert not ran  # not before the block is over
    assert list(ran) == [Function("raft/quorum.py", "majority")]
    assert sys.gettrace() is before
    majority(3)
    assert len(ran) == 1


def test_decorated_functions_are_known_too():
    rulebook = profile_named("reference").rulebook
    with entered() as ran:
        assert rulebook.begins_anywhere
    assert Function("idempotency/rulebooks.py", "Rulebook.begins_anywhere") in ran


def test_a_run_enters_the_core_and_not_the_sockets():
    found = Cover.of(SHORT, functions_too=True)
    found.add(reached_by(0, SHORT, functions_too=True))
    assert found.functions[Function("raft/core.py", "RaftCore.step")] == (1, 0)
    assert found.functions[Function("broker/wire/server.py", "Server.start")] == (0, None)
    assert reached_by(0, SHORT).functions == ()
