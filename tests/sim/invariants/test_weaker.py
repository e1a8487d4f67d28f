"""What is lost with acks of 0 or 1, or stored again of a forgotten producer, weakens a run.

What clients store twice by rules of their own is noted, and weakens nothing: no broker prevents it.
Runs show both by chance; histories show each cause and each rule by itself.
"""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.weaker import noted, weaker
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from sim_draws import draw_as_before
from sim_histories import histories, read

ACKS_1 = RunConfig(acks=1, load_ms=4_000, records=120, fault_every_ms=300)
FORGETFUL = RunConfig(max_producers=1, producers=3, load_ms=3_000, records=120, fault_every_ms=400)

GAPS = RunConfig(
    partitions=2,
    client_model="librdkafka",
    client_rtt_us=50_000,
    batch_records=1,
    reset_ppm=20_000,
    faults="transfer",
    fault_every_ms=500,
    load_ms=4_000,
    records=120,
)
"""Some batches of librdkafka are gaps after one that failed."""


def test_records_lost_with_acks_1_weaken_a_run_which_says_what_took_them():
    """They were gone, and the verdict was ok: no invariant is broken."""
    outcome = run(12, ACKS_1)
    assert (outcome.verdict, outcome.anomalies) == (Verdict.WEAKENED, [])
    assert outcome.reason.startswith("2 of 89 records acknowledged with acks=1 are lost (")


def test_records_stored_again_of_a_forgotten_producer_weaken_a_run():
    outcome = run(1, FORGETFUL)
    assert (outcome.verdict, outcome.anomalies) == (Verdict.WEAKENED, [])
    assert outcome.reason.startswith("3 records are stored again, the log had forgotten")


@pytest.mark.slow
def test_what_clients_store_twice_by_their_own_rules_is_noted_and_weakens_nothing(monkeypatch):
    """Nothing was said of it. Plain seeds come to it, so that it must not fill a sweep."""
    draw_as_before(monkeypatch)
    outcome = run(126)
    assert (outcome.verdict, outcome.weakened) == (Verdict.OK, [])
    told = "6 records are stored again, refused when its batch was older than the window: the"
    assert outcome.reason.startswith(told)


def test_what_librdkafka_stores_twice_by_its_own_rules_is_noted_and_weakens_nothing():
    outcome = run(79, GAPS)
    assert (outcome.verdict, outcome.weakened) == (Verdict.OK, [])
    told = "a record is stored again, a new epoch, as librdkafka begins, because"
    assert outcome.reason.startswith(told)


def test_each_rule_of_clients_is_noted_once():
    (history,) = [each for each in histories("I34.txt") if each.causes == ["WINDOW", "WINDOW"]]
    index = Index(history.events)
    (told,) = noted(index)
    assert told.startswith("2 records are stored again, refused when its batch was older")
    assert list(weaker(index)) == []


@pytest.mark.parametrize("verb", ["shrink", "why"])
def test_what_weakened_a_run_is_its_cause_so_nobody_looks_for_one(verb):
    words = [verb, "12", *(f"--set={line}" for line in ACKS_1.told().splitlines())]
    told = CliRunner().invoke(app, [each.replace(" = ", "=") for each in words])
    assert isinstance(told.exception, UsageError), told.output
    assert "the verdict is weakened: 2 of 89 records" in str(told.exception)


_LOST = """
== two records are acknowledged, and one is kept
inv client=1 op=0..1 value=0..1 seq=0..1 acks={acks}
append node=1 log_index=1 off=0
append node=1 log_index=2 off=1
ok client=1 op=0..1 off=0..1 seq=0..1 acks={acks} node=1
{cut}
final node=2 off=0 value=0
"""


@pytest.mark.parametrize(
    ("acks", "cut", "told"),
    [
        (1, "truncate node=1 log_index=2 off=1 code=F", "1: truncate on node 1 (row 6)"),
        (1, "", "1: unexplained"),
        (-1, "", None),
    ],
)
def test_a_loss_is_told_by_what_was_promised(acks, cut, told):
    (history,) = read(_LOST.format(acks=acks, cut=cut))
    said = f"1 of 2 records acknowledged with acks={acks} are lost ({told})"
    assert list(weaker(Index(history.events))) == ([] if told is None else [said])
