"""The rules of Apache Kafka 4.3, and where its table of producers differs from the reference's.

Kafka's leader decides under the lock of its log, and a batch counts from its append on, replicated
or not (`Rulebook.appended_counts`). So a copy of a batch that was appended is answered with the
offset of that batch; with acks=all, when that offset is replicated (K-ACKS). A leader answers from
its own log and does not ask whether it still leads.

Kafka's rows about transactions have no counterpart here, because Ottla refuses transactions.
"""

from __future__ import annotations

from ottla.idempotency.rules import REFERENCE, Action, Fact, RejectReason, Row, Rules, Verdict

_F = Fact
_KNOWN_SOUND = _F.WELL_FORMED | _F.KNOWN
_OTHER_EPOCH = _F.OLDER | _F.NEWER
_SEEN = _F.FINISHED | _F.IN_FLIGHT
_OWN = ("epoch-start-missing", "tail-lost", "in-flight", "gap")

KAFKA_4_3: Rules = (
    *(row for row in REFERENCE if row.label not in _OWN),
    Row(
        "epoch-out-of-order",
        when=_KNOWN_SOUND | _F.NEWER,
        unless=_F.ZERO,
        decision=RejectReason.EPOCH_START,
        action=Action.NOTHING,
        reason="A new epoch begins at 0; the stored epoch stays, and its producer may go on.",
        source="K-RULES 9",
    ),
    Row(
        "without-order",
        when=_KNOWN_SOUND,
        unless=_OTHER_EPOCH | _F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="Epoch -1 has no order, so any batch is its next one.",
        source="K-NO-EPOCH",
    ),
    Row(
        "appended",
        when=_KNOWN_SOUND | _F.IN_FLIGHT,
        unless=_OTHER_EPOCH | _F.FINISHED,
        decision=Verdict.PARK,
        action=Action.NOTHING,
        reason="Appended already: the answer is the offset of that batch, for acks=all when that "
        "is replicated.",
        source="K-RULES 1; K-ACKS",
    ),
    Row(
        "out-of-order",
        when=_KNOWN_SOUND | _F.TAIL,
        unless=_OTHER_EPOCH | _SEEN | _F.SUCCESSOR,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="Not the next one, nor one of the last five: a gap, an overlap, or too old.",
        source="K-RULES 13",
    ),
)
"""Profile `kafka-4.3`. An entry without batches, which only a marker can leave, does not occur."""

KAFKA_2_4: Rules = (
    *(row for row in KAFKA_4_3 if row.label not in {"unknown-resumes", "without-order"}),
    Row(
        "unknown-elsewhere",
        when=_F.WELL_FORMED,
        unless=_F.FULL | _F.KNOWN | _F.ZERO,
        decision=RejectReason.UNKNOWN,
        action=Action.NOTHING,
        reason="Before KIP-360 an unknown producer begins at 0; its client looks at the log start "
        "offset to see whether its records were deleted.",
        source="KIP-360",
    ),
    Row(
        "tail-unknown-start",
        when=_KNOWN_SOUND | _F.ZERO,
        unless=_OTHER_EPOCH | _F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="None of its batches is known, and it begins.",
        source="KIP-360",
    ),
    Row(
        "tail-unknown-elsewhere",
        when=_KNOWN_SOUND,
        unless=_OTHER_EPOCH | _F.TAIL | _F.ZERO,
        decision=RejectReason.UNKNOWN,
        action=Action.NOTHING,
        reason="None of its batches is known, so it counts as an unknown producer.",
        source="KIP-360",
    ),
)
"""Profile `kafka-2.4`. Epoch -1 is ordered like any other (`Rulebook.epoch_minus_one_ordered`)."""
