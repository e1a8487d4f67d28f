"""What a profile with one state per producer may do is explained, and nothing else.

Scenario S84 shows each reason in a run. Here are histories in which a reason is there or not.
"""

from __future__ import annotations

import pytest

from ottla.broker.profiles.named import profile_named
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import judged_at_the_end
from ottla.sim.invariants.one_state import EPOCHS, HYDRATED, RESTARTED
from ottla.sim.invariants.promised_less import explained
from sim_histories import histories, read

REDPANDA, REFERENCE = profile_named("redpanda-24.3"), profile_named("reference")
TWICE = "inv op=0..1\ncommit hw=3\nok op=0..1\nfinal off=0..1\nfinal off=2 value=1 seq=1\n"
OLDER = "decide node=1 seq=0 seq_last=0 code=accept\n"
NEWER = "decide node=1 epoch=1 seq=4 seq_last=4 code=gap\n"
GIVEN = "snapshot node=1 log_index=7\n"
TAKEN = "snapshot node=1 log_index=7 code=taken\n"


def judged(rows, profile=REDPANDA):
    """The reasons that are told, and the invariants that are left, of a copy within one epoch."""
    (history,) = read(f"== a copy\nexpect sim-I02\n{rows}{TWICE}")
    index = Index(history.events)
    told, left = explained(profile, index, judged_at_the_end(index))
    return [each.partition(", so ")[0] for each in told], [each.invariant for each in left]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (OLDER + NEWER, EPOCHS),
        (GIVEN + OLDER, HYDRATED),
        (TAKEN + OLDER.replace("node=1", "node=1 inc=2"), RESTARTED),
    ],
)
def test_a_copy_is_explained_by_what_a_leader_did_not_have_to_know(rows, why):
    assert judged(rows) == ([why], [])
    assert judged(rows, REFERENCE) == ([], ["sim-I02"])


@pytest.mark.parametrize(
    "rows",
    [
        "",
        OLDER,
        OLDER + NEWER.replace("epoch=1", "epoch=1 pid=999"),
        OLDER + GIVEN,
        OLDER + GIVEN.replace("node=1", "node=2"),
        TAKEN + OLDER,
    ],
    ids=["nothing", "one epoch", "another producer", "before", "another node", "the same life"],
)
def test_a_copy_without_a_reason_is_a_failure(rows):
    assert judged(rows) == ([], ["sim-I02"])


@pytest.mark.parametrize("number", [25, 27, 35])
def test_what_the_model_contradicts_is_never_explained(number):
    for history in histories(f"I{number}.txt"):
        index = Index(history.events)
        left = explained(REDPANDA, index, judged_at_the_end(index))[1]
        here = f"sim-I{number}"
        assert (here in history.broken) == (here in {each.invariant for each in left})
