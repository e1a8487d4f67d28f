"""The named scenarios play as they are written, and their page is what they say.

`OTTLA_REWRITE=1 pytest tests/sim/scenarios/test_scenarios.py` writes both anew; review the
difference as prose.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from ottla.broker.driver.deadlines import DeadlineWatch, Vouched
from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.heartbeats.outgoing import Outgoing
from ottla.broker.node.directory import Directory
from ottla.broker.node.node import Node
from ottla.broker.node.readiness import CatchingUp
from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.run import undisturbed
from ottla.sim.scenarios.files import files, opening_of
from ottla.sim.scenarios.lines import ScenarioError
from ottla.sim.scenarios.script import Script
from ottla.sim.world.kernel import Kernel
from pages_scenarios import scenarios_markdown
from tidy.citations import names_a_source, page_keys

SOURCES = page_keys()
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "scenarios.md"
REWRITE = bool(os.environ.get("OTTLA_REWRITE"))
MOST_EVENTS = 20_000
"""Of all worlds of one scenario, those without a mechanism included. An event costs 50 us of CPU on
a slow machine, so that this is the second in which each is to play; the largest has 18,939."""


@pytest.fixture
def happened(monkeypatch) -> Counter[str]:
    """Counts the events of all kernels."""
    counted, real = Counter[str](), Kernel.run

    def run(kernel: Kernel, until: int) -> None:
        before = kernel.steps
        try:
            real(kernel, until)
        finally:
            counted["events"] += kernel.steps - before

    monkeypatch.setattr(Kernel, "run", run)
    return counted


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_plays_as_written(path: Path, happened: Counter[str]):
    written = path.read_text(encoding="utf-8")
    script = Script()
    with undisturbed():
        played = script.play(written)
    if REWRITE:
        path.write_text(played, encoding="utf-8")
        written = played
    assert played == written
    assert script.acts_judged == script.acts > 0
    assert script.unexpected == []
    assert 0 < happened["events"] <= MOST_EVENTS


@pytest.mark.slow
def test_a_scenario_that_goes_on_for_long_is_no_small_one(happened: Counter[str]):
    with undisturbed():
        Script().play("> nodes 3\n> run 200s\n")
    assert happened["events"] > MOST_EVENTS


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_opens_with_its_source_and_what_is_legal(path: Path):
    text = path.read_text(encoding="utf-8")
    told = opening_of(text)
    assert text.splitlines()[0].startswith(f"# {told.id} ({told.source}):")
    assert names_a_source(told.source, SOURCES) or told.source.startswith("found ")
    assert path.name.startswith(f"s{told.id[-2:]}_")
    assert all(each in BY_ID for each in told.mutants)


def test_the_page_is_what_the_scenarios_say():
    written = scenarios_markdown()
    if REWRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


def test_a_scenario_with_another_outcome_fails():
    text = "> nodes 1\n> producers P=7\n> send P A to 1 seq 0\n> until answered\n> judge\n"
    script = Script()
    with undisturbed():
        played = script.play(text + "> mutant M01 -> sim-I02\n")
        assert "P hears from 1: A at 0" in played
        assert script.unexpected == ["M01 is not caught by sim-I02"]
        assert Script().play(played) == played


def test_what_is_lost_with_acks_1_weakens_a_scenario_as_it_weakens_a_run():
    """S36, S54 and S57 said that no invariant was broken."""
    text = (
        "> nodes 3\n> producers P=7\n> isolate 1\n> send P A to 1 seq 0 acks 1\n"
        "> until leader 2\n> mend\n> judge\n"
    )
    script = Script()
    with undisturbed():
        played = script.play(text)
    assert "weakened: 1 of 1 records acknowledged with acks=1 are lost" in played
    assert "no invariant is broken" not in played
    assert script.unexpected == ["weakened"]


def test_all_that_a_mutant_line_names_have_to_notice():
    """One of them was enough, so that lines named what is never seen there."""
    text = "> nodes 3\n> producers P=7\n> send P A to 1 seq 0\n> until answered\n> judge\n"
    script = Script()
    with undisturbed():
        played = script.play(text + "> mutant M06 -> sim-I09 sim-I01\n")
    assert "= not caught by sim-I01\n" in played
    assert script.unexpected == ["M06 is not caught by sim-I01"]


def test_what_a_mutant_does_in_the_boot_does_not_show_in_a_scenario():
    """M07 was noticed in the controller's group, in front of all that S33, S34 and S53 do."""
    script = Script("M07")
    with undisturbed():
        script.play("> nodes 3\n> judge\n")
    assert script.found == []


def tell_beats_again(monkeypatch):
    """A beat that a replica was told is told to it once more at the next look."""
    look = DeadlineWatch.vouch

    def forgetful(self: DeadlineWatch, hosted: HostedReplica) -> Vouched:
        hosted.told = None
        return look(self, hosted)

    monkeypatch.setattr(DeadlineWatch, "vouch", forgetful)


def name_oneself_anyway(monkeypatch):
    """Who does not know all topics names itself as who does."""
    named = Directory.named
    monkeypatch.setattr(
        Directory, "named", lambda self, asked, now, **_: named(self, asked, now, informed=True)
    )


def name_whoever_remains(monkeypatch):
    """Who does not know all topics leaves itself out, however few others it hears."""
    named = Directory.named

    def others(self: Directory, asked, now, *, informed):
        nodes = named(self, asked, now, informed=informed)
        if informed or len(nodes) == len(self._nodes):
            return nodes
        return [each for each in nodes if each != self._node] or nodes

    monkeypatch.setattr(Directory, "named", others)


def take_the_catalog_for_all(monkeypatch):
    """A node believes to know all topics from the beginning."""
    monkeypatch.setattr(Node, "knows_all_topics", lambda _: True)


def take_the_catalog_for_all_once_it_was(monkeypatch):
    """A node that has caught up with the controller believes to know all topics ever after."""
    monkeypatch.setattr(CatchingUp, "informed", property(lambda self: self._finished))


def tell_who_is_not_heard_what_changed_alone(monkeypatch):
    """A beat builds upon what its receiver acknowledged, however long ago."""
    due = Heartbeats.due

    def as_before(self: Heartbeats, now):
        with monkeypatch.context() as patch:
            patch.setattr(Outgoing, "restart", lambda _: None)
            return due(self, now)

    monkeypatch.setattr(Heartbeats, "due", as_before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id_", "undo", "unexpected"),
    [
        ("s61", tell_beats_again, ["sim-I31"]),
        ("s65", name_oneself_anyway, []),
        ("s66", name_whoever_remains, ["sim-I31"]),
        ("s67", take_the_catalog_for_all, []),
        ("s71", take_the_catalog_for_all_once_it_was, []),
        ("s72", tell_who_is_not_heard_what_changed_alone, []),
    ],
)
def test_without_its_mend_a_bug_looks_as_its_scenario_tells(id_, undo, unexpected, monkeypatch):
    """No mutant leaves it out, so it is taken away here; the file's comment keeps what follows."""
    (path,) = (each for each in files() if each.stem.startswith(f"{id_}_"))
    written = path.read_text(encoding="utf-8")
    undo(monkeypatch)
    script = Script()
    with undisturbed():
        played = script.play(written).splitlines()
    assert script.unexpected == unexpected
    told = [line.removeprefix("#   ") for line in written.splitlines() if line.startswith("#   ")]
    assert told
    assert [line for line in told if f"  {line}" not in played] == []


def test_a_word_that_is_no_command_is_told():
    with pytest.raises(ScenarioError, match="line 1: > nonsense 1: no such command: nonsense"):
        Script().play("> nonsense 1\n")
