"""`Profile`: whose behaviour a cluster shows, as one value.

A profile composes the rules for idempotent producers (`ottla.idempotency.rulebooks`) with switches
of other rooms. Code asks for the switch that it needs, never for the profile's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.idempotency.rulebooks import Rulebook


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A broker's behaviour; docs/reference/profiles.md says what each promises."""

    summary: str
    """The profile in one sentence."""
    rulebook: Rulebook
    """What is decided about the batches of idempotent producers."""
    one_stage: bool = False
    """Whether the stage `enqueued` ends only with the result, so that a connection has at most one
    produce request in flight (`ottla.broker.wire.pipeline`)."""
    one_at_a_time: bool = False
    """Whether a connection has at most one request in flight, of any kind (K-FRAME;
    `ottla.broker.wire.pipeline`)."""
    last_twin_counts: bool = False
    """Whether of two batches for one partition in one request the first is dropped without a word.
    Otherwise both are refused (docs/decisions/0025-kafkas-accidents.md)."""
    both_twins_count: bool = False
    """Whether two batches for one partition in one request are stored one after the other, and both
    answered (`ottla.broker.wire.api.produce`)."""
    waits_for_all_in_sync: bool = False
    """Whether the high watermark, and with it acks=all, waits for every replica in sync, and not
    only for a majority (K-WATERMARK; `ottla.broker.partition.showing`)."""
    expires_by_timestamp: bool = False
    """Whether a producer is idle since the largest record time of its last batch, and not since
    that batch was applied (K-EXPIRY; `ottla.broker.partition.expiry`)."""
    copies_keep_mutex: bool = False
    """Whether a copy of a batch in flight keeps its producer's mutex until the original has its
    outcome, which becomes its own (RP-PARKING; `ottla.broker.partition.holding`)."""
    resigns_on_failure: bool = False
    """Whether a leader resigns when a producer's batch fails otherwise than by a gap: its time is
    up, or it is malformed (RP-RESIGNS; `ottla.broker.partition.state`). A batch that a transfer of
    leadership refuses costs nothing, and a copy that shares an error no more than its original."""
    negative_sequences_judged: bool = False
    """Whether a batch with a negative sequence is left to the rules of idempotence; otherwise it is
    an invalid record (`ottla.broker.partition.inspector`)."""
    first_stage_holds: bool = False
    """Whether a connection begins no request before all batches of its last Produce have their
    place in the log or their outcome (RP-FIRST-STAGE; `ottla.broker.wire.api.produce`)."""
    bare_produce_answers: bool = False
    """Whether an answer to Produce has only partition, error and base offset, and with an error the
    least offset there is (RP-FIELDS; `ottla.broker.wire.api.produce`)."""
    acks_checked_first: bool = False
    """Whether acks out of range fail a whole Produce before its partitions are looked at, unless it
    has a batch of a producer: then the connection is closed (RP-ACKS;
    `ottla.broker.wire.api.produce`)."""
    times_unlimited: bool = False
    """Whether records may have any time, whatever the limits of their topic are (RP-TIMES;
    `ottla.broker.node.replica_factory`)."""
    installs_no_producers: bool = False
    """Whether a replica that gets its state from another one's snapshot knows no producer from
    before it (RP-RAFT-SNAPSHOT; `ottla.broker.partition.snapshots`)."""
    keeps_from_log_start: bool = False
    """Whether after a restart from a snapshot no batch below its log start is known any more, nor a
    producer that had no other (RP-RAFT-SNAPSHOT; `ottla.broker.partition.snapshots`)."""

    before_kip_1030: bool = False
    """Whether records may be as far ahead of the clock as they like unless their topic limits
    that, and a segment may have 14 bytes (`ottla.broker.topics.configs`)."""
    minimum_uncapped: bool = False
    """Whether acks=all is refused if `min.insync.replicas` is more than all replicas there are;
    otherwise it then means all of them (`ottla.broker.partition.inspector`)."""
    append_time_flag_refused: bool = False
    """Whether a batch that says it has the time of its append is refused where a topic has the
    times of producers; otherwise the flag is cleared (`ottla.broker.node.replica_factory`)."""
    negative_times_searched: bool = False
    """Whether ListOffsets takes every time but -1 and -2 for a time of records
    (`ottla.broker.wire.api.list_offsets`)."""
    no_batch_closes: bool = False
    """Whether records of Produce that do not begin with a batch close the connection; otherwise
    they are refused (`ottla.broker.wire.api.produce`)."""
    earlier_twins_unread: bool = False
    """What `last_twin_counts` does with several batches for one partition. True: the last batch
    counts, and nobody looks into the others. False: the last readable batch is stored. If some are
    unreadable, the last unreadable one is answered (`ottla.broker.wire.api.produce`)."""
    newest: Mapping[int, int] = field(default_factory=dict)
    """By API key: the newest version that is served, if it is older than the newest one that Ottla
    knows; -1: the broker has no such API (`ottla.broker.wire.api.table`)."""

    @property
    def plain_produce(self) -> bool:
        """Whether the usual Produce may take a short cut: no switch of its handler is on."""
        return not (self.first_stage_holds or self.bare_produce_answers or self.acks_checked_first)

    @property
    def name(self) -> str:
        """Its full name, as reports print it."""
        return self.rulebook.name
