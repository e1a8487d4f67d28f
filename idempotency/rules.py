"""The rules of idempotent produce, as a table.

A request is turned into *facts*, one bit each, and the facts select exactly one row. A row says
when it holds (facts that must hold, facts that must not), the decision, what an accepted batch
does to the stored state once it is applied, and why. The rows of a profile do not overlap and need
no order. Every set of facts has a row or is in the list of impossible combinations.
`compile_rules` asserts both while it builds the lookup table, so a decision costs one index.

Facts describe the producer's *current* state: that of its newest request in flight in this
leadership, or, if there is none, that of the applied log prefix. The current epoch, its tail, and
the batches of that epoch are compared by numbers only, never by content.

A refusal marked `barrier` may be wrong if this leader has been replaced without knowing it: then it
sees gaps where the new leader's log has none. It is answered only after a leadership barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import TypeAlias


class Fact(IntFlag):
    """What is observed about a request (`FACTS` explains each). Bits of the index into a compiled
    table."""

    WELL_FORMED = 1
    FULL = 2
    KNOWN = 4
    TAIL = 8
    OLDER = 16
    NEWER = 32
    FINISHED = 64
    IN_FLIGHT = 128
    SUCCESSOR = 256
    ZERO = 512
    FORGOTTEN = 1024
    BACKWARDS = 2048


COMBINATIONS = 1 << len(Fact)
"""How many sets of facts there are."""
NOTHING = Fact(0)

FACTS: dict[Fact, str] = {
    Fact.WELL_FORMED: "producer id, epoch (or -1 for none) and both sequences lie in their ranges",
    Fact.FULL: "the producer is unknown and the table has no room for one more",
    Fact.KNOWN: "the producer has an applied state, or a request in flight in this leadership (not "
    "if that is of epoch -1 and the request names one)",
    Fact.TAIL: "a last batch of it is known, in flight or finished (of epoch -1: the same one)",
    Fact.OLDER: "the request's epoch is below the current one",
    Fact.NEWER: "the request's epoch is above the current one (neither: it is the same)",
    Fact.FINISHED: "its range is that of a finished batch in the window, of the current epoch",
    Fact.IN_FLIGHT: "its range is that of one in flight in this term, of the current epoch",
    Fact.SUCCESSOR: "its first sequence follows the tail, 2147483647 being followed by 0",
    Fact.ZERO: "its first sequence is 0",
    Fact.FORGOTTEN: "the log has forgotten this producer, and the request goes on where it was (or "
    "the log has forgotten 1,000 above it, and nobody can tell)",
    Fact.BACKWARDS: "its last sequence is below its first, as in a batch across the wrap "
    "(observed only where a newer epoch wipes)",
}
"""Every fact in one sentence, for the generated page."""


class RejectReason(Enum):
    """Why a request is refused. The partition turns it into a Kafka error code."""

    MALFORMED = "malformed"
    TABLE_FULL = "table full"
    TOO_MANY = "too many producers"
    STALE_EPOCH = "stale epoch"
    EPOCH_START = "epoch start"
    GAP = "gap"
    UNKNOWN = "unknown producer"
    BACKWARDS = "backwards"
    OFFSET_UNKNOWN = "offset unknown"


class Verdict(Enum):
    """What is decided, apart from refusals."""

    ACCEPT = "Accept"
    DUPLICATE = "Duplicate"
    PARK = "Park"


class Action(Enum):
    """What a request does to the stored state when it is applied."""

    NOTHING = "nothing"
    EXTEND = "extends the window"
    START = "starts a window of its own (and with it an epoch)"


@dataclass(frozen=True, slots=True)
class Row:
    """One rule."""

    label: str
    when: Fact
    """Facts that must hold."""
    unless: Fact
    """Facts that must not hold."""
    decision: Verdict | RejectReason
    action: Action
    reason: str
    source: str
    barrier: bool = False
    """This leader may lack the batches it misses: confirm the leadership before answering."""

    def matches(self, facts: int) -> bool:
        """Whether the row holds for this set of facts."""
        return facts & self.when == self.when and not facts & self.unless


@dataclass(frozen=True, slots=True)
class Impossible:
    """Facts that cannot be observed together: all of `when` with none of `unless`."""

    when: Fact
    unless: Fact
    reason: str

    def matches(self, facts: int) -> bool:
        """Whether this set of facts contains the contradiction."""
        return facts & self.when == self.when and not facts & self.unless


Rules: TypeAlias = tuple[Row, ...]

_F = Fact
_KNOWN_SOUND = _F.WELL_FORMED | _F.KNOWN
_OTHER_EPOCH = _F.OLDER | _F.NEWER

REFERENCE: Rules = (
    Row(
        "malformed",
        when=NOTHING,
        unless=_F.WELL_FORMED,
        decision=RejectReason.MALFORMED,
        action=Action.NOTHING,
        reason="Numbers outside their range say nothing about an order.",
        source="K-CHECKS 17; K-NO-EPOCH",
    ),
    Row(
        "table-full",
        when=_F.WELL_FORMED | _F.FULL,
        unless=NOTHING,
        decision=RejectReason.TABLE_FULL,
        action=Action.NOTHING,
        reason="State is bounded, and a producer with a request in flight is never evicted.",
        source="RP-EVICTION",
    ),
    Row(
        "unknown-start",
        when=_F.WELL_FORMED | _F.ZERO,
        unless=_F.FULL | _F.KNOWN,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="A producer begins.",
        source="KIP-98; K-RULES 7",
    ),
    Row(
        "unknown-resumes",
        when=_F.WELL_FORMED,
        unless=_F.FULL | _F.KNOWN | _F.ZERO,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="Its state expired here, or its first batch went elsewhere: refusing would stop it "
        "for good.",
        source="KIP-360; K-RULES 7; redpanda #22670",
    ),
    Row(
        "stale-epoch",
        when=_KNOWN_SOUND | _F.OLDER,
        unless=NOTHING,
        decision=RejectReason.STALE_EPOCH,
        action=Action.NOTHING,
        reason="A newer incarnation fences this one, even from what it stored itself.",
        source="KIP-98; K-RULES 3",
    ),
    Row(
        "epoch-start",
        when=_KNOWN_SOUND | _F.NEWER | _F.ZERO,
        unless=NOTHING,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="A new incarnation begins at 0; the old window goes when this batch is applied.",
        source="KIP-360; K-RULES 8",
    ),
    Row(
        "epoch-start-missing",
        when=_KNOWN_SOUND | _F.NEWER,
        unless=_F.ZERO,
        decision=RejectReason.EPOCH_START,
        action=Action.NOTHING,
        reason="The beginning of the new incarnation is missing; the old one stays as it is.",
        source="K-RULES 9; RP-SUSPECTS, redpanda-S3",
        barrier=True,
    ),
    Row(
        "tail-lost",
        when=_KNOWN_SOUND,
        unless=_OTHER_EPOCH | _F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="Without a tail any sequence may be next, as for an unknown producer; the epoch is "
        "still checked.",
        source="KIP-360; RP-SUSPECTS, redpanda-S4; K-NO-EPOCH",
    ),
    Row(
        "duplicate",
        when=_KNOWN_SOUND | _F.FINISHED,
        unless=_OTHER_EPOCH,
        decision=Verdict.DUPLICATE,
        action=Action.NOTHING,
        reason="Stored already: the answer is the original's offset.",
        source="promise-R2; KIP-98; K-RULES 1",
    ),
    Row(
        "in-flight",
        when=_KNOWN_SOUND | _F.IN_FLIGHT,
        unless=_OTHER_EPOCH | _F.FINISHED,
        decision=Verdict.PARK,
        action=Action.NOTHING,
        reason="Begun already: the original wakes it with its offset or its error.",
        source="promise-R2; redpanda #5157",
    ),
    Row(
        "next",
        when=_KNOWN_SOUND | _F.SUCCESSOR,
        unless=_OTHER_EPOCH | _F.FINISHED | _F.IN_FLIGHT,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="First seen, and it follows the tail.",
        source="promise-R2; K-RULES 12",
    ),
    Row(
        "gap",
        when=_KNOWN_SOUND | _F.TAIL,
        unless=_OTHER_EPOCH | _F.FINISHED | _F.IN_FLIGHT | _F.SUCCESSOR,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="Neither seen nor next: a gap, a partial overlap, or older than the window.",
        source="promise-R2; K-RULES 13; redpanda #12759",
        barrier=True,
    ),
)
"""Profile `reference`: the algorithm of redpanda #5157 with Kafka's epochs and windows."""

REFERENCE_STRICT: Rules = (
    *(row for row in REFERENCE if row.label != "unknown-resumes"),
    Row(
        "forgotten-resumes",
        when=_F.WELL_FORMED | _F.FORGOTTEN,
        unless=_F.FULL | _F.KNOWN | _F.ZERO,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="Its state may have expired here: refusing would stop it for good.",
        source="KIP-360; K-RULES 7",
    ),
    Row(
        "unknown-start-missing",
        when=_F.WELL_FORMED,
        unless=_F.FULL | _F.KNOWN | _F.ZERO | _F.FORGOTTEN,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="It was not forgotten there, so batches before it are lost or still on their way: "
        "a client could take the success of this one as proof of those.",
        source="KAFKA-15591; KAFKA-14312; docs/decisions/0012-unknown-producers.md",
        barrier=True,
    ),
)
"""Profile `reference-strict`: an unknown producer resumes only if it can have been forgotten."""

IMPOSSIBLE: tuple[Impossible, ...] = (
    *(
        Impossible(
            _F.WELL_FORMED | fact, _F.KNOWN, "of an unknown producer there is nothing to compare to"
        )
        for fact in (
            _F.TAIL,
            _F.OLDER,
            _F.NEWER,
            _F.FINISHED,
            _F.IN_FLIGHT,
            _F.SUCCESSOR,
        )
    ),
    *(
        Impossible(
            _F.WELL_FORMED | _F.KNOWN | fact,
            _F.TAIL,
            "a batch, finished or in flight, is itself a tail",
        )
        for fact in (_F.FINISHED, _F.IN_FLIGHT, _F.SUCCESSOR)
    ),
    Impossible(_F.WELL_FORMED | _F.OLDER | _F.NEWER, NOTHING, "an epoch is not below and above"),
    Impossible(
        _F.WELL_FORMED | _F.FULL | _F.KNOWN, NOTHING, "FULL is observed of unknown producers only"
    ),
)
"""Combinations of facts that cannot be observed, in any profile."""


def compile_rules(rules: Rules) -> tuple[Row | None, ...]:
    """The row for each set of facts, at the index of its bits; None where the set is impossible.

    Asserts that each possible set has exactly one row.
    """
    possible = bytearray(b"\1") * COMBINATIONS
    for contradiction in IMPOSSIBLE:
        for facts in _covered(contradiction.when, contradiction.unless):
            possible[facts] = 0
    lookup: list[Row | None] = [None] * COMBINATIONS
    for row in rules:
        for facts in _covered(row.when, row.unless):
            if possible[facts]:
                other = lookup[facts]
                assert other is None, f"facts {facts}: {row.label} and {other}"
                lookup[facts] = row
    claimed = COMBINATIONS - lookup.count(None)
    assert claimed == sum(possible), f"{claimed} sets of facts have a row, {sum(possible)} need one"
    return tuple(lookup)


def _covered(when: Fact, unless: Fact) -> Iterator[int]:
    """Every set of facts with all of `when` and none of `unless`."""
    fixed = int(when)
    free = (COMBINATIONS - 1) & ~(fixed | int(unless))
    subset = free
    while True:
        yield fixed | subset
        if not subset:
            return
        subset = (subset - 1) & free
