"""The rules of early Redpanda: v22.1.1 to v22.1.4, and the fix of pull request 5157.

Both judge every epoch of a producer by itself (`Rulebook.epochs_apart`), so the facts OLDER and
NEWER are never observed, and no row asks for them (RP-SESSIONS). Both know a batch by its last
sequence alone (RP-LAST-SEQUENCE).
"""

from __future__ import annotations

from ottla.idempotency.rules import (
    NOTHING,
    REFERENCE,
    Action,
    Fact,
    RejectReason,
    Row,
    Rules,
    Verdict,
)

_F = Fact
_KNOWN_SOUND = _F.WELL_FORMED | _F.KNOWN
_SEEN = _F.FINISHED | _F.IN_FLIGHT

_REFERENCE = {row.label: row for row in REFERENCE}
_KEPT = tuple(_REFERENCE[label] for label in ("malformed", "table-full", "unknown-start"))

REDPANDA_5157: Rules = (
    *_KEPT,
    Row(
        "session-start-missing",
        when=_F.WELL_FORMED,
        unless=_F.FULL | _F.KNOWN | _F.ZERO,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="A producer id with an epoch that is unknown begins at 0, forgotten or not.",
        source="RP-UNKNOWN; redpanda #22670",
    ),
    Row(
        "session-tail-lost",
        when=_KNOWN_SOUND,
        unless=_F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="Without a tail there is nothing to compare to.",
        source="RP-NO-TAIL",
    ),
    Row(
        "last-sequence-finished",
        when=_KNOWN_SOUND | _F.FINISHED,
        unless=NOTHING,
        decision=Verdict.DUPLICATE,
        action=Action.NOTHING,
        reason="Its last sequence is known, so it counts as stored, whatever its first one is.",
        source="RP-LAST-SEQUENCE",
    ),
    Row(
        "last-sequence-in-flight",
        when=_KNOWN_SOUND | _F.IN_FLIGHT,
        unless=_F.FINISHED,
        decision=Verdict.PARK,
        action=Action.NOTHING,
        reason="Begun already: it releases the mutex and waits for the original's offset or error.",
        source="promise-R2; RP-PARKING",
    ),
    Row(
        "session-next",
        when=_KNOWN_SOUND | _F.SUCCESSOR,
        unless=_SEEN,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="First seen, and it follows the tail of its epoch, however old that epoch is.",
        source="promise-R2; RP-SESSIONS",
    ),
    Row(
        "session-gap",
        when=_KNOWN_SOUND | _F.TAIL,
        unless=_SEEN | _F.SUCCESSOR,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="Neither seen nor next as far as this leader knows; it does not ask the others.",
        source="RP-GAP; redpanda #12712",
    ),
)
"""Profile `redpanda-5157`: with the mutex and the two stages, without barriers and fencing."""

_5157 = {row.label: row for row in REDPANDA_5157}

REDPANDA_22_1_3: Rules = (
    *_KEPT,
    _5157["session-start-missing"],
    Row(
        "begun-tail-lost",
        when=_KNOWN_SOUND,
        unless=_F.TAIL,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="Without a tail there is nothing to compare to.",
        source="RP-FAILED",
    ),
    Row(
        "begun-finished",
        when=_KNOWN_SOUND | _F.FINISHED,
        unless=NOTHING,
        decision=Verdict.DUPLICATE,
        action=Action.NOTHING,
        reason="A stored batch has its last sequence: the answer is that batch's offset.",
        source="RP-LAST-SEQUENCE",
    ),
    Row(
        "begun-without-offset",
        when=_KNOWN_SOUND | _F.IN_FLIGHT,
        unless=_F.FINISHED,
        decision=RejectReason.OFFSET_UNKNOWN,
        action=Action.NOTHING,
        reason="Begun in this leadership or an earlier one, and there is no offset to answer.",
        source="RP-IN-FLIGHT; RP-FAILED; redpanda #4366",
    ),
    Row(
        "begun-next",
        when=_KNOWN_SOUND | _F.SUCCESSOR,
        unless=_SEEN,
        decision=Verdict.ACCEPT,
        action=Action.EXTEND,
        reason="It follows what was begun last, even if that failed and leaves a hole in the log.",
        source="RP-FAILED",
    ),
    Row(
        "begun-gap",
        when=_KNOWN_SOUND | _F.TAIL,
        unless=_SEEN | _F.SUCCESSOR,
        decision=RejectReason.GAP,
        action=Action.NOTHING,
        reason="Neither begun nor next.",
        source="RP-FAILED",
    ),
)
"""Profile `redpanda-22.1.3`: before the fix. A batch counts once it is begun, even if it fails."""
