"""Safety mechanisms that can be switched off, by name: the simulator's sweeps must notice each.

Only `sim/` names them: a world gives its nodes other parts than the broker's own. `catalogue.py`
says what each lacks and under which settings that matters. `raft.py`, `partition.py`, `table.py`,
`node.py`, `checks.py` and `sim/clients/mutants.py` have the parts that lack it.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias


class Mutant(Enum):
    """One safety mechanism switched off, to show in the simulator what it is needed for.

    The value is the mutant's number in docs/reference/mutants.md. Its docstring names the part of
    the broker that lacks it.
    """

    # Members are compared by identity. The hash of `Enum` is a Python call, and every test whether
    # a mutant is in a set would pay for it, although the set is nearly always empty.
    __hash__ = object.__hash__

    NO_DUPLICATES = "M01"
    """idempotency: no batch is ever a duplicate."""
    GAPS_ACCEPTED = "M02"
    """idempotency: every sequence counts as the next one."""
    STATE_IN_LEADER_ONLY = "M03"
    """partition: followers do not keep producers."""
    SERVES_UNSYNCED = "M04"
    """partition: a new leader serves before it has applied its log."""
    SPECULATION_KEPT = "M05"
    """idempotency: what was in flight is remembered beyond the leadership."""
    ACKS_ALL_AT_APPEND = "M06"
    """partition: acks=all is answered like acks=1."""
    ACKS_BEFORE_SYNC = "M07"
    """raft: entries are acknowledged before they are durable."""
    VOTE_NOT_WRITTEN = "M08"
    """replica: a vote is given and not written."""
    VOTES_TWICE = "M09"
    """raft: a node may vote again in the same term."""
    VOTES_FOR_SHORTER_LOGS = "M10"
    """raft: the candidate's log is not checked."""
    COUNTS_OLD_TERMS = "M11"
    """raft: entries of earlier terms are committed by counting (figure 8)."""
    NO_MATCH_CHECK = "M12"
    """raft: entries are appended whatever entry precedes them."""
    READS_UNCOMMITTED = "M13"
    """partition: readers see the whole log."""
    ANY_TERM_APPENDS = "M14"
    """partition, raft: what was admitted in one term is appended in another."""
    KEEPS_LEADING = "M15"
    """raft: a leader does not resign when an outcome is uncertain."""
    GAPS_WITHOUT_BARRIER = "M16"
    """idempotency: a gap is refused without proof of leadership."""
    NO_FENCING = "M17"
    """idempotency: older epochs are treated as the current one."""
    EPOCH_BEFORE_COMMIT = "M18"
    """idempotency: a new epoch replaces the old one before it is committed."""
    NO_WRAP = "M19"
    """idempotency: 0 does not follow the last possible sequence."""
    BUMPS_ON_GAPS = "M20"
    """sim: a client begins a new epoch after every gap."""
    NUMBERS_GIVEN_BACK = "M21"
    """sim: a client gives a sequence to other records, as if its outcome were known."""
    SHORT_WINDOW = "M22"
    """idempotency: one batch fewer is remembered."""
    FIRST_SEQUENCE_ONLY = "M23"
    """idempotency: a duplicate is recognised by its first sequence only."""
    EVICTS_IN_FLIGHT = "M24"
    """idempotency: a producer with requests in flight may be evicted."""
    EXPIRES_BY_CLOCK = "M25"
    """partition: each replica forgets idle producers by its own clock."""
    SNAPSHOT_WITHOUT_STATE = "M26"
    """idempotency: a snapshot restores no producers."""
    SYNCS_BY_INDEX = "M27"
    """raft: a sync counts for whatever entry is at the index now."""
    STALE_LEADERS_HEARD = "M28"
    """raft: entries of a deposed leader are taken, and replace committed ones."""
    NO_PRE_VOTE = "M29"
    """raft: no pre-vote, no lease on votes, no check-quorum."""
    DAMAGE_KEPT = "M32"
    """log: recovery does not check checksums."""
    COMMIT_AHEAD = "M33"
    """raft: after a restart everything in the log counts as committed."""
    SKIPS_UNFETCHED = "M34"
    """sim: a consumer goes on at the high watermark, whatever records it got."""
    ANSWERS_MIXED_UP = "M35"
    """sim: a client takes an answer for that to its latest request of the kind."""
    ANY_ACKS = "M36"
    """wire: a produce request may ask for any acks."""
    ACKS_FIRST = "M37"
    """wire: acks are checked before the partition and its batch."""
    READS_NARROW = "M39"
    """partition: a fetch may begin at most at the high watermark, not at the log end."""
    LISTS_LOG_END = "M40"
    """partition: the latest offset is the log end."""
    TELLS_LOG_END = "M41"
    """partition: the high watermark in a fetch answer is the log end."""
    EPOCHS_ENDLESS = "M42"
    """partition: every leader epoch ends where the log does."""
    ONE_IN_SYNC = "M43"
    """partition: one replica in sync is enough, whatever min.insync.replicas says."""
    WAITS_WITHOUT_LIMIT = "M44"
    """partition: a request that waits for its commit has no time limit."""
    LAST_DECIDED_FIRST = "M45"
    """partition: of the tickets that wait for a producer's mutex, the last one gets it."""
    START_MOVED_BY_LEADERS = "M46"
    """partition: followers do not move their log start."""
    EPOCHS_KEPT = "M47"
    """log: epochs that were cut from the log stay in its epoch history."""
    DELETED_LOGS_KEPT = "M48"
    """node: the logs of a deleted topic stay on the disk."""
    RANGES_WITHOUT_BARRIER = "M49"
    """partition: a reader is told that it is out of range without proof of leadership."""
    HELD_SHOWN = "M50"
    """partition: readers see what is committed, however few replicas are in sync."""
    HELD_FOR_GOOD = "M51"
    """partition: what is held stays so until more is committed."""
    BATCHES_OF_ANY_SIZE = "M52"
    """partition: a batch may be larger than max.message.bytes of its topic."""
    DEAF_LEADERS = "M53"
    """raft: a leader does not hear heartbeats, only answers to its entries."""
    FORGETS_EARLY = "M54"
    """partition: a leader forgets producers that were idle for a quarter of the expiry time."""


Mutants: TypeAlias = frozenset[Mutant]
"""The mechanisms that a run lacks."""
NO_MUTANTS: Mutants = frozenset()
