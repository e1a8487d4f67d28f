"""The catalogue of mutants: what each lacks, and where it is looked for.

Which invariants notice it is no guess but measured (`docs/reference/mutants.md`).
Ids are those of facts/simulation.md, section 4. A mutant is swept under the settings in which its
mechanism is at work at all: a window that is one batch too short is not missed by who has one batch
in flight. Everything else is the swarm's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.raft.types import Mutant, Mutants

Settings: TypeAlias = Mapping[str, int | str | bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant."""

    id: str
    mutant: Mutant
    lacks: str
    settings: Settings = field(default_factory=dict)


_CLIENTS: Settings = {
    "faults": "lose-answer reset-clients kill freeze cut-clients",
    "fault_every_ms": 1_000,
}
_ELECTIONS: Settings = {
    "faults": "die-voted win-and-go rivals kill power blackout halves isolate",
    "fault_every_ms": 1_000,
    "batch_records": 1,
}
_RIVALS: Settings = {"faults": "rivals", "fault_every_ms": 1_500}
_JAVA: Settings = {
    "client_model": "java",
    "faults": "lose-answer reset-clients kill freeze cut-clients transfer",
    "fault_every_ms": 1_000,
}

_PIPELINES: Settings = {
    "client_model": "java",
    "client_rtt_us": 50_000,
    "batch_records": 1,
    "in_flight": 5,
    "partitions": 2,
    "reset_ppm": 20_000,
    "faults": "transfer",
    "fault_every_ms": 2_000,
}
_EPOCHS: Settings = {
    "faults": "freeze isolate kill transfer",
    "fault_every_ms": 1_000,
    "delivery_timeout_ms": 1_000,
    "request_timeout_ms": 400,
}

CATALOGUE: tuple[Row, ...] = (
    Row("M01", Mutant.NO_DUPLICATES, "look-up of duplicates", _CLIENTS),
    Row("M02", Mutant.GAPS_ACCEPTED, "refusal of gaps", _PIPELINES),
    Row("M03", Mutant.STATE_IN_LEADER_ONLY, "producers on followers", _CLIENTS),
    Row("M04", Mutant.SERVES_UNSYNCED, "sync before serving", _CLIENTS),
    Row("M05", Mutant.SPECULATION_KEPT, "end of speculation"),
    Row("M06", Mutant.ACKS_ALL_AT_APPEND, "waiting for the commit"),
    Row("M07", Mutant.ACKS_BEFORE_SYNC, "sync before acknowledging"),
    Row("M08", Mutant.VOTE_NOT_WRITTEN, "memory of votes", _RIVALS),
    Row("M09", Mutant.VOTES_TWICE, "one vote a term", _ELECTIONS),
    Row("M10", Mutant.VOTES_FOR_SHORTER_LOGS, "look at the candidate's log", _ELECTIONS),
    Row(
        "M11",
        Mutant.COUNTS_OLD_TERMS,
        "commit by the own term",
        {"faults": "figure-8", "fault_every_ms": 2_000, "batch_records": 1},
    ),
    Row(
        "M12",
        Mutant.NO_MATCH_CHECK,
        "check of what stands before",
    ),
    Row("M13", Mutant.READS_UNCOMMITTED, "reads end at the high watermark"),
    Row(
        "M14",
        Mutant.ANY_TERM_APPENDS,
        "condition on the term",
        {**_CLIENTS, "leader_queue_bytes": 300},
    ),
    Row(
        "M15",
        Mutant.KEEPS_LEADING,
        "stepping down on uncertainty",
        {
            "nodes": 3,
            "leader_left_out": True,
            "probes": True,
            "delivery_timeout_ms": 60_000,
            "faults": "stuck-disk",
            "fault_every_ms": 12_000,
        },
    ),
    Row(
        "M16",
        Mutant.GAPS_WITHOUT_BARRIER,
        "barrier before a gap is told",
        {
            "client_model": "java",
            "arrivals": "even",
            "faults": "two-leaders",
            "fault_every_ms": 2_000,
            "leader_epochs": False,
            "metadata_max_age_ms": 100,
        },
    ),
    Row(
        "M17",
        Mutant.NO_FENCING,
        "fencing of older epochs",
        {
            "faults": "stray-request freeze",
            "fault_every_ms": 500,
            "delivery_timeout_ms": 1_000,
            "request_timeout_ms": 400,
        },
    ),
    Row("M18", Mutant.EPOCH_BEFORE_COMMIT, "epoch with the commit", _EPOCHS),
    Row(
        "M19",
        Mutant.NO_WRAP,
        "wrap of sequences",
        {"profile": "reference", "first_sequence": 2_147_483_640},
    ),
    Row(
        "M20",
        Mutant.BUMPS_ON_GAPS,
        "client: bump only where nothing may be stored",
        _PIPELINES,
    ),
    Row("M21", Mutant.NUMBERS_GIVEN_BACK, "client: a sequence for good", _JAVA),
    Row("M22", Mutant.SHORT_WINDOW, "the fifth batch of the window", _CLIENTS),
    Row(
        "M23",
        Mutant.FIRST_SEQUENCE_ONLY,
        "both ends of a duplicate",
        {"faults": "stray-request", "fault_every_ms": 1_000},
    ),
    Row("M24", Mutant.EVICTS_IN_FLIGHT, "sparing who is in flight", {"max_producers": 2}),
    Row(
        "M25",
        Mutant.EXPIRES_BY_CLOCK,
        "expiry in the log",
        {"producer_expiry_ms": 300, "faults": "drift freeze slow-node"},
    ),
    Row(
        "M26",
        Mutant.SNAPSHOT_WITHOUT_STATE,
        "producers in snapshots",
        {"faults": "delete-records power isolate", "fault_every_ms": 2_000},
    ),
    Row(
        "M27",
        Mutant.SYNCS_BY_INDEX,
        "which write a sync is for",
        {"faults": "late-sync", "fault_every_ms": 3_000},
    ),
    Row(
        "M28",
        Mutant.STALE_LEADERS_HEARD,
        "deafness to deposed leaders",
        {"faults": "late-leader", "fault_every_ms": 2_000},
    ),
    Row(
        "M29",
        Mutant.NO_PRE_VOTE,
        "pre-vote and check-quorum",
        {
            "nodes": 3,
            "leader_left_out": True,
            "probes": True,
            "delivery_timeout_ms": 60_000,
            "faults": "deaf",
            "fault_every_ms": 5_000,
        },
    ),
    Row(
        "M32",
        Mutant.DAMAGE_KEPT,
        "checksums at recovery",
        {"faults": "torn-write kill", "fault_every_ms": 1_000},
    ),
    Row("M33", Mutant.COMMIT_AHEAD, "commit behind the log", _ELECTIONS),
    Row(
        "M34",
        Mutant.SKIPS_UNFETCHED,
        "consumer: to go on behind what was read",
        {"fetch_bytes": 100},
    ),
    Row("M35", Mutant.ANSWERS_MIXED_UP, "client: answers in the order of requests"),
)
BY_ID = {each.id: each for each in CATALOGUE}


def mutants_of(ids: str) -> Mutants:
    """The set that these ids name, separated by spaces. Raises `KeyError` for one that is none."""
    return frozenset(BY_ID[each].mutant for each in ids.split())
