"""The catalogue of mutants: what each lacks, and where it is looked for.

Which invariants notice a mutant is measured; `docs/reference/mutants.md` has the figures. A mutant
is swept under settings that use its mechanism: a window that is one batch too short makes no
difference to a client with one batch in flight. The swarm draws everything else. Each row says why,
and the page shows both, so that its figures are not mistaken for those of a plain sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.broker.errors import ConfigError
from ottla.sim.mutants.conditions import (
    CLIENTS,
    DEPOSED,
    ELECTIONS,
    EPOCHS,
    HELD,
    JAVA,
    LED_BACK,
    PIPELINES,
    QUESTIONS,
    RIVALS,
    SHORT,
    SWARM,
    Conditions,
    Settings,
    short_of,
)
from ottla.sim.mutants.mutant import Mutant, Mutants
from ottla.sim.plugins.own import PREFIX, OwnMutant, added


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant."""

    id: str
    mutant: Mutant | None
    """None: one of a plugin."""
    lacks: str
    conditions: Conditions = SWARM
    blind: str = ""
    """Why no plain sweep can notice it; empty: one should (`ottla sim mutants --blind`)."""

    @property
    def settings(self) -> Settings:
        """The settings of its sweep."""
        return self.conditions.settings


CATALOGUE: tuple[Row, ...] = (
    Row("M01", Mutant.NO_DUPLICATES, "look-up of duplicates", CLIENTS),
    Row("M02", Mutant.GAPS_ACCEPTED, "refusal of gaps", PIPELINES),
    Row("M03", Mutant.STATE_IN_LEADER_ONLY, "producer tables on followers", CLIENTS),
    Row("M04", Mutant.SERVES_UNSYNCED, "sync before serving", CLIENTS),
    Row("M05", Mutant.SPECULATION_KEPT, "end of speculation"),
    Row("M06", Mutant.ACKS_ALL_AT_APPEND, "waiting for the commit"),
    Row("M07", Mutant.ACKS_BEFORE_SYNC, "sync before acknowledging"),
    Row("M08", Mutant.VOTE_NOT_WRITTEN, "memory of votes", RIVALS),
    Row("M09", Mutant.VOTES_TWICE, "one vote a term", ELECTIONS),
    Row("M10", Mutant.VOTES_FOR_SHORTER_LOGS, "comparison with the candidate's log", ELECTIONS),
    Row(
        "M11",
        Mutant.COUNTS_OLD_TERMS,
        "commit only by the own term",
        Conditions(
            {"faults": "figure-8", "fault_every_ms": 2_000, "batch_records": 1},
            "an entry of an old term must reach a majority, under a leader that dies before its "
            "own entry does: the program makes that happen",
        ),
    ),
    Row("M12", Mutant.NO_MATCH_CHECK, "check of the previous entry"),
    Row("M13", Mutant.READS_UNCOMMITTED, "the high watermark as the end of reads"),
    Row(
        "M14",
        Mutant.ANY_TERM_APPENDS,
        "condition on the term",
        Conditions(
            {**CLIENTS.settings, "leader_queue_bytes": 300},
            "batches must wait in a leader's queue when its term ends, so the queue is short",
        ),
    ),
    Row(
        "M15",
        Mutant.KEEPS_LEADING,
        "stepping down on uncertainty",
        Conditions(
            short_of("stuck-disk", 12_000),
            "it is missed only if a leader can do nothing: its disk hangs to the end, it is not "
            "healed, and one more record must be stored",
        ),
    ),
    Row(
        "M16",
        Mutant.GAPS_WITHOUT_BARRIER,
        "barrier before a gap is answered",
        DEPOSED,
    ),
    Row(
        "M17",
        Mutant.NO_FENCING,
        "fencing of older epochs",
        Conditions(
            {
                "faults": "stray-request freeze",
                "fault_every_ms": 500,
                "delivery_timeout_ms": 1_000,
                "request_timeout_ms": 400,
            },
            "a request of an older epoch must arrive late, so clients give up early, and requests "
            "stray",
        ),
    ),
    Row("M18", Mutant.EPOCH_BEFORE_COMMIT, "new epochs only with their commit", EPOCHS),
    Row(
        "M19",
        Mutant.NO_WRAP,
        "wrap of sequences",
        Conditions(
            {"profile": "reference", "first_sequence": 2_147_483_640},
            "no run sends two billion records, so sequences begin just below the wrap, as the "
            "profile allows",
        ),
    ),
    Row(
        "M20",
        Mutant.BUMPS_ON_GAPS,
        "client: a new epoch only if nothing may be stored",
        PIPELINES,
    ),
    Row(
        "M21",
        Mutant.NUMBERS_GIVEN_BACK,
        "client: one batch only for each sequence",
        Conditions(
            {**JAVA.settings, "probes": False},
            f"{JAVA.why}; without probes, because a probe with a reused number is never stored, "
            "and that would be reported instead of earlier losses",
        ),
    ),
    Row("M22", Mutant.SHORT_WINDOW, "the fifth batch of the window", CLIENTS),
    Row(
        "M23",
        Mutant.FIRST_SEQUENCE_ONLY,
        "comparison of both ends of a duplicate",
        Conditions(
            {"faults": "stray-request", "fault_every_ms": 1_000},
            "no client sends a batch again with another end, but a stray request does",
        ),
    ),
    Row(
        "M24",
        Mutant.EVICTS_IN_FLIGHT,
        "keeping producers with requests in flight",
        Conditions({"max_producers": 2}, "the table of producers must be full"),
    ),
    Row(
        "M25",
        Mutant.EXPIRES_BY_CLOCK,
        "expiry in the log",
        Conditions(
            {"producer_expiry_ms": 300, "faults": "drift freeze slow-node"},
            "producers must be idle for long enough, and clocks must differ",
        ),
    ),
    Row(
        "M26",
        Mutant.SNAPSHOT_WITHOUT_STATE,
        "producers in snapshots",
        Conditions(
            {"faults": "delete-records power isolate", "fault_every_ms": 2_000},
            "a snapshot is made when records were deleted, and used by a node that was away",
        ),
    ),
    Row(
        "M27",
        Mutant.SYNCS_BY_INDEX,
        "knowing which write a sync is for",
        Conditions(
            {"faults": "late-sync", "fault_every_ms": 3_000},
            "a sync must end after what it was for has been replaced: the program delays it",
        ),
    ),
    Row(
        "M28",
        Mutant.STALE_LEADERS_HEARD,
        "ignoring deposed leaders",
        Conditions(
            {"faults": "late-leader", "fault_every_ms": 2_000},
            "what a leader sent must arrive when another one leads: the program delays it",
        ),
    ),
    Row(
        "M29",
        Mutant.NO_PRE_VOTE,
        "pre-vote and check-quorum",
        Conditions(
            short_of("deaf", 5_000),
            "it is missed only if a leader hears nobody: it stays so to the end, is not healed, "
            "and one more record must be stored",
        ),
    ),
    Row(
        "M32",
        Mutant.DAMAGE_KEPT,
        "checksums at recovery",
        Conditions(
            {"faults": "torn-write kill", "fault_every_ms": 1_000},
            "a write must be torn, and the node with half of it must lead",
        ),
    ),
    Row("M33", Mutant.COMMIT_AHEAD, "commit within the log", ELECTIONS),
    Row(
        "M34",
        Mutant.SKIPS_UNFETCHED,
        "consumer: continuing after what was read",
        Conditions({"fetch_bytes": 100}, "a fetch must return less than there is"),
    ),
    Row("M35", Mutant.ANSWERS_MIXED_UP, "client: answers in the order of requests"),
    Row("M36", Mutant.ANY_ACKS, "check of acks"),
    Row("M37", Mutant.ACKS_FIRST, "Kafka's order: partition and batch before acks"),
    Row("M39", Mutant.READS_NARROW, "range of a fetch up to the log end"),
    Row("M40", Mutant.LISTS_LOG_END, "latest offset at the high watermark", QUESTIONS),
    Row("M41", Mutant.TELLS_LOG_END, "committed high watermark in a fetch", QUESTIONS),
    Row("M42", Mutant.EPOCHS_ENDLESS, "end of a leader epoch where the next begins", QUESTIONS),
    Row(
        "M43",
        Mutant.ONE_IN_SYNC,
        "min.insync.replicas",
        Conditions(
            {"min_insync": 3, "replicas": 3, "replica_lag_ms": 1_000, "faults": "isolate kill"},
            "more replicas must be in sync than a majority",
        ),
    ),
    Row(
        "M44",
        Mutant.WAITS_WITHOUT_LIMIT,
        "time limit of an acknowledgement",
        Conditions(
            {**SHORT, "request_timeout_ms": 400, "faults": "stuck-disk isolate halves"},
            "a commit must take longer than clients wait: disks hang, leaders are cut off",
        ),
    ),
    Row(
        "M45",
        Mutant.LAST_DECIDED_FIRST,
        "queue before a producer's mutex",
        Conditions(
            {**SHORT, "leader_queue_bytes": 300, "batch_records": 1},
            "batches must wait for room in a leader's queue, so it is short; so are the runs",
        ),
    ),
    Row(
        "M46",
        Mutant.START_MOVED_BY_LEADERS,
        "log start on followers",
        Conditions({"faults": "delete-records kill"}, "records must be deleted"),
    ),
    Row(
        "M47",
        Mutant.EPOCHS_KEPT,
        "truncation of the epoch history",
        Conditions(
            {"faults": "isolate halves win-and-go", "fault_every_ms": 1_000},
            "a leader's term must end when no other log has its first entry",
        ),
    ),
    Row(
        "M48",
        Mutant.DELETED_LOGS_KEPT,
        "deletion of a deleted topic's logs",
        Conditions(SHORT, "only one run in two creates topics, so runs are short and many"),
    ),
    Row("M49", Mutant.RANGES_WITHOUT_BARRIER, "barrier before out of range is answered", LED_BACK),
    Row("M50", Mutant.HELD_SHOWN, "holding back what too few replicas have", HELD),
    Row("M51", Mutant.HELD_FOR_GOOD, "a second check of what is held back", HELD),
    Row("M52", Mutant.BATCHES_OF_ANY_SIZE, "max.message.bytes of a topic"),
    Row("M53", Mutant.DEAF_LEADERS, "heartbeats that a leader hears"),
    Row(
        "M54",
        Mutant.FORGETS_EARLY,
        "the whole expiry time",
        Conditions(
            {"producer_expiry_ms": 300, "producers": 3},
            "a producer must write seldom enough to be idle, and often enough to be remembered",
        ),
    ),
)
BY_ID = {each.id: each for each in CATALOGUE}


def check_mutants(ids: str, plugins: str) -> None:
    """Raises `ConfigError` if a run with these plugins does not know one of these ids, separated by
    spaces."""
    there = mutant_ids(plugins)
    for each in ids.split():
        if each not in there:
            raise ConfigError(f"mutants: there is no {each}; one of {' '.join(there)}")


def mutants_of(ids: str) -> Mutants:
    """The mutants with these ids, separated by spaces, without those of plugins: those are
    functions (`ottla.sim.plugins.own.switched_off`). Raises `KeyError` for an unknown one."""
    ours = [each for each in ids.split() if not each.startswith(PREFIX)]
    return frozenset([mutant for each in ours if (mutant := BY_ID[each].mutant)])


def of_plugins(told: str) -> dict[str, Row]:
    """The mutants of these plugins, by id."""
    return {
        each.id: Row(each.id, None, each.says, Conditions(each.settings, each.why))
        for each in added(told, OwnMutant)
    }


def mutant_ids(told: str) -> tuple[str, ...]:
    """The ids of all mutants that a run with these plugins may name: ours, then theirs."""
    return (*BY_ID, *of_plugins(told))
