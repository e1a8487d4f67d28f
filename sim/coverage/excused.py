"""What no seed can reach, and why: the reasons beside the counts.

Whatever is counted and stays at zero is a hole in the simulator, unless it stands here. A reason
says why it cannot come about, or why it would be nothing else than what is counted elsewhere.
"""

from __future__ import annotations

from ottla.sim.coverage.deliveries import Delivery
from ottla.sim.coverage.overlaps import REPLICA, Overlap
from ottla.sim.coverage.steps import CRASH, ENQUEUED, Met

_ROLES = "only a leader does the one, and no leader the other"
_DURABLE_FIRST = (
    "only a leader does the one; a node that has cut its log wins no election before that is "
    "durable, as its vote for itself is written behind it"
)
OVERLAPS_EXCUSED: dict[Overlap, str] = {
    ("barrier", "election", REPLICA): _ROLES,
    ("transfer", "election", REPLICA): _ROLES,
    ("truncation", "barrier", REPLICA): _DURABLE_FIRST,
    ("truncation", "transfer", REPLICA): _DURABLE_FIRST,
}
STEPS_EXCUSED: dict[Met, str] = {
    (ENQUEUED, CRASH): (
        "nothing has left the turn yet, so it is a crash before the turn; half an append is a "
        "crash at *written* with a torn entry (`torn-write`)"
    ),
}
DELIVERIES_EXCUSED: dict[Delivery, str] = {}
