"""The plan of faults: enough of each kind, the same for the same seed."""

import pytest

from ottla.demo.figures import about_losses, about_the_run, earned
from ottla.demo.ledger import Ack, Failure, Ledger
from ottla.demo.losses import Loss
from ottla.demo.nemesis import EXTRAS, FAULTS, LEADER_FAULTS, plan
from ottla.demo.result import Figure
from ottla.demo.settings import MIN_LEADER_FAULTS, PROBE, DemoSettings


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("seconds", [1.0, 15.0, 60.0])
def test_leaders_fail_in_every_way_and_every_column_can_be_earned(seed, seconds):
    steps = [step.fault for step in plan(DemoSettings(seed=seed, seconds=seconds))]
    assert sum(fault in LEADER_FAULTS for fault in steps) >= MIN_LEADER_FAULTS
    assert set(steps) == {*LEADER_FAULTS, *EXTRAS}


def test_a_seed_is_a_plan():
    assert plan(DemoSettings(seed=3)) == plan(DemoSettings(seed=3))
    assert len({tuple(plan(DemoSettings(seed=seed))) for seed in range(10)}) > 1


@pytest.mark.parametrize("acks", ["1", "0"])
def test_weaker_acks_get_the_fault_that_loses(acks):
    steps = plan(DemoSettings(acks=acks))
    assert {step.fault for step in steps} == {"lose"}
    assert {step.partition for step in steps} == {0, 1, 2}


def test_every_planned_fault_can_be_done():
    assert {*LEADER_FAULTS, *EXTRAS, "lose"} == set(FAULTS)


def test_a_column_that_stays_at_0_fails():
    figures = [Figure("a", 1, "", ""), Figure("b", 0, "", "")]
    assert earned(figures[:1]).passed
    assert earned(figures).shown == ("b",)


def run_of(ledger, *, records=1, faults=MIN_LEADER_FAULTS, trouble=()):
    settings = DemoSettings(records=records)
    found = about_the_run(settings, [ledger], faults, trouble)
    return [each.check for each in found if not each.passed]


def test_a_run_that_is_too_small_or_in_trouble_fails():
    ledger = Ledger("p", 3)
    ledger.next_value(0)
    assert run_of(ledger) == []
    assert run_of(ledger, records=2) == ["Enough was written"]
    assert run_of(ledger, faults=MIN_LEADER_FAULTS - 1) == ["Enough went wrong"]
    assert run_of(ledger, trouble=["waited in vain"]) == ["Enough went wrong"]


def test_a_client_that_gives_up_fails_the_run():
    ledger = Ledger("p", 3)
    value = ledger.next_value(0)
    ledger.failed.append(Failure(value, "fatal"))
    assert run_of(ledger) == ["The clients are content"]
    other = Ledger("q", 3)
    other.next_value(0)
    other.problems.append("fatal error")
    assert run_of(other) == ["The clients are content"]


def test_all_that_is_acknowledged_is_counted_in_one_way():
    """The sentence said 7,027 records and a check below it 7,026: one was the raw producer's."""
    writer, probe = Ledger("p", 3), Ledger(PROBE, 3)
    for ledger in (writer, probe):
        ledger.acked[0].append(Ack(ledger.next_value(0), 7))
    probe.failed.append(Failure(probe.next_value(0), "a gap, as it was meant to be"))
    found = about_the_run(DemoSettings(records=3), [writer, probe], MIN_LEADER_FAULTS, [])
    told = {each.check: each.compared for each in found}
    assert all(each.passed for each in found)
    assert told["The clients are content"].startswith("2 records acknowledged")
    assert told["Enough was written"] == (
        "3 records sent, 1 of them to be refused; at least 3 were asked for"
    )


def test_losing_nothing_and_losing_without_a_reason_both_fail():
    none, explained = about_losses([])
    assert not none.passed
    assert explained.passed
    some, explained = about_losses([Loss(0, Ack(b"p/0/7 ", 3), None)])
    assert some.passed
    assert explained.shown == ("partition 0: p/0/7, offset 3",)
