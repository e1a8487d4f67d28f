"""Two histories beside each other: where they part, and what differs there."""

from __future__ import annotations

import pytest

from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.history.compare import parting
from ottla.sim.history.history import Event
from ottla.sim.run import replay, run
from ottla.sim.settings.settings import RunConfig

SHORT = RunConfig(profile="reference-strict", load_ms=2_000, records=40)


@pytest.mark.slow
def test_histories_part_where_the_first_choice_differs():
    outcome = run(1, SHORT.with_(fault_every_ms=100))
    fewer = Tape({name: dict(places) for name, places in outcome.tape.taken.items()})
    fewer.taken["nemesis"] = {}
    other = replay(fewer, outcome.config, Replayed)
    found = parting(outcome.rows, other.rows)
    assert found is not None
    assert outcome.rows[: found.eid] == other.rows[: found.eid]


def test_where_histories_part_it_shows_what_differs():
    """An entry of another past differs in nothing else that is short enough to be shown always."""
    one = Event(3, 1_500, "append", node=1, chain=7)
    found = parting([one], [one._replace(chain=8)])
    assert str(found).splitlines() == [
        "event 0 differs in chain:",
        "  A 1.500 ms append node=1 chain=7",
        "  B 1.500 ms append node=1 chain=8",
    ]
    told = str(parting([one], [one._replace(kind="apply", code="F")]))
    assert told.startswith("event 0 differs in kind code:\n  A 1.500 ms append node=1\n")
    assert "B nothing: it has ended" in str(parting([one], []))
