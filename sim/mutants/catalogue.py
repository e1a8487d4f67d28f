"""The catalogue of mutants: what each lacks, what is expected of it, and where it is looked for.

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
    mutant: Mutant | None
    """None for those of clients and connections, which the simulator has itself."""
    lacks: str
    expected: str
    """Invariants of which at least one is to be broken."""
    settings: Settings = field(default_factory=dict)


_CLIENTS: Settings = {
    "faults": "lose-answer reset-clients kill freeze cut-clients",
    "fault_every_ms": 300,
}
_ELECTIONS: Settings = {
    "faults": "die-voted win-and-go kill power blackout halves isolate",
    "fault_every_ms": 400,
    "batch_records": 1,
}

CATALOGUE: tuple[Row, ...] = (
    Row("M01", Mutant.NO_DUPLICATES, "look-up of duplicates", "I02 I03", _CLIENTS),
    Row("M02", Mutant.GAPS_ACCEPTED, "refusal of gaps", "I01 I03 I04", _CLIENTS),
    Row("M03", Mutant.STATE_IN_LEADER_ONLY, "producers on followers", "I25 I02 I01", _CLIENTS),
    Row("M04", Mutant.SERVES_UNSYNCED, "sync before serving", "I02 I06 I28", _CLIENTS),
    Row("M05", Mutant.SPECULATION_KEPT, "end of speculation", "I04 I01 I26"),
    Row("M06", Mutant.ACKS_ALL_AT_APPEND, "waiting for the commit", "I09 I01"),
    Row("M07", Mutant.ACKS_BEFORE_SYNC, "sync before acknowledging", "I24 I22 I01"),
    Row("M08", Mutant.VOTE_NOT_WRITTEN, "memory of votes", "I16 I15", _ELECTIONS),
    Row("M09", Mutant.VOTES_TWICE, "one vote a term", "I16 I15 I21", _ELECTIONS),
    Row("M10", Mutant.VOTES_FOR_SHORTER_LOGS, "look at the candidate's log", "I20 I22", _ELECTIONS),
    Row("M11", Mutant.COUNTS_OLD_TERMS, "commit by the own term", "I22 I20 I21", _ELECTIONS),
    Row("M12", Mutant.NO_MATCH_CHECK, "check of what stands before", "I19 I21"),
    Row("M13", Mutant.READS_UNCOMMITTED, "reads end at the high watermark", "I10 I11"),
    Row(
        "M14",
        Mutant.ANY_TERM_APPENDS,
        "condition on the term",
        "I04 I02 I03",
        {**_CLIENTS, "leader_queue_bytes": 300},
    ),
    Row("M15", Mutant.KEEPS_LEADING, "stepping down on uncertainty", "I04 I31"),
    Row("M16", Mutant.GAPS_WITHOUT_BARRIER, "barrier before a gap is told", "I34", _CLIENTS),
    Row("M17", Mutant.NO_FENCING, "fencing of older epochs", "I05 I02"),
    Row("M18", Mutant.EPOCH_BEFORE_COMMIT, "epoch with the commit", "I25 I05"),
    Row("M19", Mutant.NO_WRAP, "wrap of sequences", "I31 I34"),
    Row("M22", Mutant.SHORT_WINDOW, "the fifth batch of the window", "I02 I34", _CLIENTS),
    Row("M23", Mutant.FIRST_SEQUENCE_ONLY, "both ends of a duplicate", "I06 I01"),
    Row("M24", Mutant.EVICTS_IN_FLIGHT, "sparing who is in flight", "I02", {"max_producers": 2}),
    Row(
        "M25",
        Mutant.EXPIRES_BY_CLOCK,
        "expiry in the log",
        "I25",
        {"producer_expiry_ms": 300, "faults": "drift freeze slow-node"},
    ),
    Row(
        "M26",
        Mutant.SNAPSHOT_WITHOUT_STATE,
        "producers in snapshots",
        "I25 I27",
        {"faults": "delete-records power isolate", "fault_every_ms": 300},
    ),
    Row("M27", Mutant.SYNCS_BY_INDEX, "which write a sync is for", "I24 I20"),
    Row("M28", Mutant.STALE_LEADERS_HEARD, "deafness to deposed leaders", "I22", _ELECTIONS),
    Row("M29", Mutant.NO_PRE_VOTE, "pre-vote and check-quorum", "I31"),
    Row("M32", Mutant.DAMAGE_KEPT, "checksums at recovery", "I21 I11 I01"),
    Row("M33", Mutant.COMMIT_AHEAD, "commit behind the log", "I22 I21", _ELECTIONS),
)
BY_ID = {each.id: each for each in CATALOGUE}


def mutants_of(ids: str) -> Mutants:
    """The set that these ids name, separated by spaces. Raises `KeyError` for one that is none."""
    rows = (BY_ID[each] for each in ids.split())
    return frozenset(row.mutant for row in rows if row.mutant is not None)
