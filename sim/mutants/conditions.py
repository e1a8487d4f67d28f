"""Conditions under which mutants are swept, for those that need the same ones.

A mutant shows if its mechanism is used. So the nemesis gets programs that lead there, with clients
and limits that fit. The swarm draws all other settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Settings: TypeAlias = Mapping[str, int | str | bool]


class Conditions(NamedTuple):
    """The settings under which a mutant is swept, and the reason."""

    settings: Settings
    why: str
    """Why these settings."""


SWARM = Conditions({}, "it shows without special settings: the swarm draws everything")

RESENT = "when answers are lost and leaders change, clients send stored batches again"
CLIENTS = Conditions(
    {"faults": "lose-answer reset-clients kill freeze cut-clients", "fault_every_ms": 1_000},
    RESENT,
)
ELECTIONS = Conditions(
    {
        "faults": "die-voted win-and-go rivals kill power blackout halves isolate",
        "fault_every_ms": 1_000,
        "batch_records": 1,
    },
    "there are many elections, and nodes die as they vote or win",
)
RIVALS = Conditions(
    {"faults": "rivals", "fault_every_ms": 1_500},
    "two candidates stand at once, and a voter restarts before the election is decided",
)
JAVA = Conditions(
    {
        "client_model": "java",
        "faults": "lose-answer reset-clients kill freeze cut-clients transfer",
        "fault_every_ms": 1_000,
    },
    "the mechanism is the Java client's, and batches must have an unknown outcome",
)
PIPELINES = Conditions(
    {
        "client_model": "java",
        "client_rtt_us": 50_000,
        "batch_records": 1,
        "in_flight": 5,
        "partitions": 2,
        "reset_ppm": 20_000,
        "faults": "transfer",
        "fault_every_ms": 2_000,
    },
    "five batches are on a slow link when the leader changes, so the second may arrive before the "
    "first",
)
EPOCHS = Conditions(
    {
        "faults": "freeze isolate kill transfer",
        "fault_every_ms": 1_000,
        "delivery_timeout_ms": 1_000,
        "request_timeout_ms": 400,
    },
    "clients give up batches, and begin a new epoch while leaders change",
)


DEPOSED = Conditions(
    {
        "replicas": 3,
        "client_model": "java",
        "arrivals": "even",
        "faults": "two-leaders",
        "fault_every_ms": 2_000,
        "load_ms": 20_000,
        "records": 360,
        "leader_epochs": False,
        "metadata_max_age_ms": 100,
    },
    "a client must be led back to a deposed leader that still believes that it leads: the program "
    "makes one, and clients believe what they heard last",
)
LED_BACK = Conditions(
    {**DEPOSED.settings, "fault_every_ms": 1_000, "load_ms": 8_000, "records": 150},
    DEPOSED.why,
)
HELD = Conditions(
    {
        "nodes": 3,
        "replicas": 3,
        "min_insync": 3,
        "replica_lag_ms": 1_000,
        "faults": "isolate freeze",
        "fault_every_ms": 2_000,
        "load_ms": 10_000,
        "records": 24,
        "acks": 1,
    },
    "records must be committed while a replica is out of sync, so not with acks=all; and there "
    "must be few, because each new record shows what was held back before it",
)


SHORT: Settings = {"load_ms": 1_000, "records": 40, "fault_every_ms": 250}
QUESTIONS = Conditions(
    {"load_ms": 300, "records": 40}, "even a short run has a dozen questions of readers"
)


def short_of(faults: str, every_ms: int) -> Settings:
    """The leader is left out of the healing, and the other nodes must store one more record."""
    return {
        "nodes": 3,
        "leader_left_out": True,
        "probes": True,
        "delivery_timeout_ms": 60_000,
        "faults": faults,
        "fault_every_ms": every_ms,
    }
