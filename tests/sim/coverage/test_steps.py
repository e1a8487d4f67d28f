"""A fault meets a step if it strikes while a replica is there: a crash at that time, a cut or a
stall that is in force when the step begins, goes on or ends."""

from __future__ import annotations

from ottla.sim.coverage.steps import CRASH, CUT, KINDS, MET, PASSED, STALL, STEPS, Steps

WRITTEN, FLUSH = "vote: written", "vote: flush"


def test_a_step_without_faults_is_only_passed():
    steps = Steps()
    steps.begin(1, WRITTEN, 7, ())
    steps.end(1, WRITTEN, 7, ())
    assert steps.counts == {(WRITTEN, PASSED): 1}


def test_a_crash_meets_every_step_at_which_the_node_is_and_no_other_node():
    steps = Steps()
    for node, step, group in ((1, WRITTEN, 7), (1, WRITTEN, 8), (1, FLUSH, 7), (2, FLUSH, 7)):
        steps.begin(node, step, group, ())
    steps.end(1, WRITTEN, 8, ())
    steps.die(1)
    assert steps.counts == {
        (WRITTEN, PASSED): 2,
        (FLUSH, PASSED): 2,
        (WRITTEN, CRASH): 1,
        (FLUSH, CRASH): 1,
    }
    steps.end(1, FLUSH, 7, [CUT])  # it died there, so it does not go on
    assert (FLUSH, CUT) not in steps.counts


def test_a_fault_counts_once_for_a_step_however_long_both_last():
    steps = Steps()
    steps.begin(1, FLUSH, 7, [CUT])
    steps.begin(1, FLUSH, 7, [CUT, STALL])  # it is there still
    steps.end(1, FLUSH, 7, [CUT])
    assert steps.counts == {(FLUSH, PASSED): 1, (FLUSH, CUT): 1, (FLUSH, STALL): 1}


def test_a_fault_that_begins_meanwhile_is_seen_at_the_end():
    steps = Steps()
    steps.begin(1, FLUSH, 7, ())
    steps.end(1, FLUSH, 7, [STALL])
    assert steps.counts[FLUSH, STALL] == 1


def test_what_lasts_to_the_end_of_the_run_counts():
    steps = Steps()
    steps.begin(1, FLUSH, 7, [CUT])
    steps.finish()
    steps.finish()
    assert steps.counts == {(FLUSH, PASSED): 1, (FLUSH, CUT): 1}


def test_a_crash_counts_with_the_faults_before_it():
    steps = Steps()
    steps.begin(1, FLUSH, 7, [STALL])
    steps.die(1)
    assert steps.counts == {(FLUSH, PASSED): 1, (FLUSH, STALL): 1, (FLUSH, CRASH): 1}


def test_the_table_has_each_step_with_each_fault_once():
    flushed = [step for step in STEPS if step.endswith(": flushed")]
    assert len(MET) == len(set(MET)) == 3 * len(set(STEPS)) - len(flushed)
    assert len(flushed) == len(KINDS)
