"""Runs drawn as they were before: seeds that were found then show rare things.

One seed in thousands shows what some tests are about. When the swarm draws otherwise, each seed is
another run, and to look for such a seed anew takes hours.
"""

from dataclasses import replace

import pytest

from ottla.sim.clients.sequential import SequentialClient
from ottla.sim.clients.topic_requests import TopicRequests
from ottla.sim.ending import ending
from ottla.sim.nemesis import nemesis
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.settings import swarm

NEWER = {"die-deciding", "repeat-late", "lead-again", "held-truncation", "lose-decision"}
SINCE = {
    "max_producers",
    "producer_expiry_ms",
    "max_append_bytes",
    "max_append_entries",
    "max_inflight_bytes",
    "snapshot_chunk_bytes",
    "catalog_entries",
    "load_ms",
}
ONCE = {"replicas": (3, 3, 3, 3, 3, 3, 5, 2, 1), "min_insync": (1, 1, 2), "probes": (True,)}


def draw_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs, expiry, small limits and situations are drawn no more, and nobody asks for
    topics, or has one of its own. No run rests. Newer programs of the nemesis are not drawn."""
    monkeypatch.setattr(TopicRequests, "start", lambda _: None)
    monkeypatch.setattr(SequentialClient, "start", lambda _: None)
    once = [each for each in vars(nemesis)["PROGRAMS"] if each.name not in NEWER]
    once = [each if each.name != "kill" else replace(each, run=_kill) for each in once]
    monkeypatch.setattr(nemesis, "PROGRAMS", tuple(once))
    programs = {each.name: each for each in once}
    monkeypatch.setattr(nemesis, "named", lambda name, _=(): programs[name])
    monkeypatch.setattr(ending, "rests", lambda _: False)
    known = {name: each for name, each in swarm.TABLE.items() if name not in SINCE}
    monkeypatch.setattr(swarm, "TABLE", known | ONCE)
    monkeypatch.setattr(swarm, "SITUATIONS", {"none": {"faults": ("",)}})


def _kill(hand: FaultContext) -> None:
    """Once nobody was back at once."""
    node = hand.somebody()
    hand.world.crash(node)
    hand.revive(node, hand.span())
