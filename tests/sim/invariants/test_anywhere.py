"""An unknown producer that begins with a later batch explains what follows from that, and nothing
else. Seed 910012 of kafka-4.3 and of redpanda-25.3 found it: a first batch was too large.
"""

from __future__ import annotations

import pytest

from ottla.broker.profiles.named import profile_named
from ottla.sim.invariants.anywhere import LATER
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import judged_at_the_end
from ottla.sim.invariants.promised_less import explained
from sim_histories import read

SENT = "inv op=0..1\nsend op=0 seq=0 seq_last=0\nsend op=1 seq=1 seq_last=1\n"
LATER_FIRST = "apply log_index=3 off=0 pid=7 epoch=0 seq=1 seq_last=1\n"
FIRST = "apply log_index=3 off=0 pid=7 epoch=0 seq=0 seq_last=0\n"
BEHIND = "apply log_index=4 off=1 pid=7 epoch=1 seq=0 seq_last=0\n"
SWAPPED = "commit hw=2\nfinal off=0 value=1 seq=1\nfinal off=1 value=0 epoch=1 seq=0\n"
LOST = "ok op=0..1 off=-1..0 pid=7\ncommit hw=1\nfinal off=0 value=1 seq=1\n"


def judged(rows, profile):
    """What is told, and the invariants that are left."""
    (history,) = read(f"== a history\nexpect sim-I03\n{rows}")
    index = Index(history.events)
    told, left = explained(profile_named(profile), index, judged_at_the_end(index))
    return [each.partition(", so ")[0] for each in told], [each.invariant for each in left]


@pytest.mark.parametrize(
    ("rows", "broken"),
    [(SENT + LATER_FIRST + BEHIND + SWAPPED, "sim-I03"), (SENT + LATER_FIRST + LOST, "sim-I01")],
)
@pytest.mark.parametrize("profile", ["reference", "kafka-4.3", "redpanda-25.3"])
def test_where_it_may_begin_anywhere_what_follows_is_explained(rows, broken, profile):
    told, left = judged(rows, profile)
    assert told == [LATER]
    assert broken not in left


@pytest.mark.parametrize("profile", ["reference-strict", "redpanda-5157"])
def test_where_it_may_not_it_is_a_failure(profile):
    assert judged(SENT + LATER_FIRST + BEHIND + SWAPPED, profile) == ([], ["sim-I03"])


@pytest.mark.parametrize(
    "rows",
    [
        SENT + FIRST + BEHIND + SWAPPED,
        SENT + LATER_FIRST.replace("pid=7", "pid=999") + BEHIND + SWAPPED,
        SENT.replace("send op=0 seq=0 seq_last=0\n", "") + LATER_FIRST + BEHIND + SWAPPED,
    ],
    ids=["it began with its first", "another producer did", "it sent no earlier one"],
)
def test_without_that_it_is_a_failure(rows):
    assert judged(rows, "kafka-4.3") == ([], ["sim-I03"])
