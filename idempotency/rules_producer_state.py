"""The rules of Redpanda from v24.1.15 on, where a producer has one state for all its epochs.

What Redpanda calls `producer_state` belongs to a producer id, not to an epoch (RP-ONE-STATE). A
batch of a newer epoch wipes that state before it is judged; after that no rule looks at epochs. So
the facts OLDER and NEWER are never observed here (`ottla.idempotency.wiping`), and no row asks for
them.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.idempotency.rules import NOTHING, Action, Fact, RejectReason, Row, Rules, Verdict

_F = Fact
_KNOWN_SOUND = _F.WELL_FORMED | _F.KNOWN
_SEEN = _F.FINISHED | _F.IN_FLIGHT

REDPANDA_25_3: Rules = (
    Row(
        "too-many-producers",
        when=_F.FULL,
        unless=NOTHING,
        decision=RejectReason.TOO_MANY,
        action=Action.NOTHING,
        reason="The state of a producer is found or made before its batch is looked at.",
        source="RP-EVICTION; RP-ERRORS",
    ),
    Row(
        "negative-sequence",
        when=NOTHING,
        unless=_F.WELL_FORMED | _F.FULL,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="No check of its own: a negative sequence follows nothing.",
        source="RP-ONE-STATE",
        barrier=True,
    ),
    Row(
        "newcomer-at-zero",
        when=_F.WELL_FORMED | _F.ZERO,
        unless=_F.FULL | _F.KNOWN,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="A producer begins.",
        source="RP-ONE-STATE",
    ),
    Row(
        "newcomer-anywhere",
        when=_F.WELL_FORMED,
        unless=_F.FULL | _F.KNOWN | _F.ZERO,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="It was probably evicted, so its sequence is not checked.",
        source="RP-NEWCOMER; redpanda #22670; redpanda #22687",
    ),
    Row(
        "range-finished",
        when=_KNOWN_SOUND | _F.FINISHED,
        unless=NOTHING,
        decision=Verdict.DUPLICATE,
        action=Action.NOTHING,
        reason="A stored batch of any epoch has exactly this range: the answer is its offset.",
        source="RP-ONE-STATE; RP-SUSPECTS, redpanda-S2",
    ),
    Row(
        "range-in-flight",
        when=_KNOWN_SOUND | _F.IN_FLIGHT,
        unless=_F.FINISHED,
        decision=Verdict.PARK,
        action=Action.NOTHING,
        reason="Begun already in this term: it gets that batch's outcome, and keeps the mutex.",
        source="RP-PARKING; RP-SUSPECTS, redpanda-S5",
    ),
    Row(
        "empty-at-zero",
        when=_KNOWN_SOUND | _F.ZERO,
        unless=_F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="Nothing is known of it, or a newer epoch has wiped it: it begins at 0.",
        source="RP-NO-TAIL; redpanda #22687",
    ),
    Row(
        "empty-elsewhere",
        when=_KNOWN_SOUND,
        unless=_F.TAIL | _F.ZERO,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="It is known, so nothing excuses a beginning elsewhere; what was wiped stays wiped.",
        source="RP-NO-TAIL; RP-SUSPECTS, redpanda-S3 and redpanda-S4",
        barrier=True,
    ),
    Row(
        "follows",
        when=_KNOWN_SOUND | _F.SUCCESSOR,
        unless=_SEEN,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="It follows the tail, also if its epoch is older: nothing is fenced.",
        source="RP-ONE-STATE; RP-SUSPECTS, redpanda-S2",
    ),
    Row(
        "follows-nothing",
        when=_KNOWN_SOUND | _F.TAIL,
        unless=_SEEN | _F.SUCCESSOR,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="Neither seen nor next: a gap, an overlap, or older than five batches.",
        source="RP-ONE-STATE; redpanda #12759",
        barrier=True,
    ),
)
"""Profile `redpanda-25.3`: a batch across the wrap is judged like any other."""


REDPANDA_24_3: Rules = (
    *(
        row if row.when & _F.FULL else replace(row, unless=row.unless | _F.BACKWARDS)
        for row in REDPANDA_25_3
    ),
    Row(
        "across-the-wrap",
        when=_F.BACKWARDS,
        unless=_F.FULL,
        decision=RejectReason.BACKWARDS,
        action=Action.NOTHING,
        reason="Its last sequence is below its first, so it counts as malformed.",
        source="RP-WRAP; redpanda #27832",
    ),
)
"""Profile `redpanda-24.3`: a batch across the wrap is refused."""
