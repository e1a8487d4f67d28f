"""What clients may be told: of their records, and of the log that they read.

Only answers are judged, each against the state when it leaves and when its request came. Success is
a promise, and so it needs a leader that has committed an entry of its own term: only then does it
know all that earlier terms committed. A refusal promises nothing, but for two kinds:

* Too few replicas in sync: that must be possible (`in_sync.py`).
* Answers that are final for a client, and wrong if a newer leader exists. They need a barrier: a
  majority answers heartbeats that left after the request came (thesis 6.4).
"""

from __future__ import annotations

from ottla.sim.specification.in_sync import Leading, Rules
from ottla.sim.specification.state import Asked, Forbidden, Member
from ottla.sim.specification.trace import Answer, Ask

NOT_ENOUGH = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})


def ask(member: Member, request: Ask) -> None:
    """A request comes."""
    member.group.minimum = request.minimum
    asked = Asked(member.step, member.now, request, member.commit, member.least())
    member.asks[request.ref] = asked


def answer(member: Member, told: Answer) -> None:
    """A request is answered. Refusals without proof, such as by a node that does not lead, promise
    nothing."""
    asked, leading, rules = member.asks.pop(told.ref), member.leading, member.rules
    if told.error == "NONE":
        if leading is None:
            raise Forbidden("it does not lead")
        if member.commit < leading.first:
            raise Forbidden(f"no entry of its own term {leading.term} is committed")
        check = _stored if told.what == "produce" else _shown
        check(member, leading, told, asked)
    elif told.error in NOT_ENOUGH and leading is not None:
        least, needed = min(asked.least, member.least()), member.group.needed
        if least >= needed:
            raise Forbidden(f"{least} replicas are in sync, {needed} are needed")
    elif leading is not None and _needs_proof(member, told, asked, rules):
        _prove(member, leading, asked.step)


def _stored(member: Member, leading: Leading, told: Answer, asked: Asked) -> None:
    """acks=1: it is in the leader's log. acks=all: it is committed, and enough are in sync."""
    rules, group = member.rules, member.group
    if asked.asks.acks != -1:
        if told.offset >= end_offset(member):
            raise Forbidden(f"its log ends at offset {end_offset(member)}")
        return
    end = group.ends[member.commit]
    if told.offset >= end:
        raise Forbidden(f"offset {told.offset} is not committed, only all below {end}")
    since = member.now if told.placed else asked.at
    most = leading.most(rules, since, member.now)
    if not rules.waits_for_all and most < group.needed:
        raise Forbidden(f"{most} replicas can be in sync, {group.needed} are needed")


def _shown(member: Member, leading: Leading, told: Answer, asked: Asked) -> None:
    """Readers see what is committed while enough replicas are in sync; never less than before. An
    entry without records, such as a leader's first, shows them nothing."""
    rules, ends = member.rules, member.group.ends
    member.show()
    showable = ends[leading.showable]
    last = told.last
    if last > leading.showable and (last >= len(ends) or ends[last] > showable):
        raise Forbidden(f"it gives entry {told.last}, readers may see {leading.showable} entries")
    if told.offset > showable:
        raise Forbidden(f"it shows offsets below {told.offset}, it may show those below {showable}")
    if told.offset < leading.shown:
        raise Forbidden(f"it showed offsets below {leading.shown} before")
    leading.shown = told.offset
    least = min(asked.least, member.least())
    held = not rules.waits_for_all and told.offset < ends[asked.commit]
    if held and least >= member.group.needed:
        known = ends[asked.commit]
        raise Forbidden(f"it knew all below {known} committed, and {least} replicas are in sync")


def _needs_proof(member: Member, told: Answer, asked: Asked, rules: Rules) -> bool:
    """Answers that would be wrong if a newer leader existed (thesis 6.4)."""
    if told.error == "OFFSET_OUT_OF_RANGE":
        return asked.asks.offset > end_offset(member)
    return told.error == "OUT_OF_ORDER_SEQUENCE_NUMBER" and rules.proves_gaps


def _prove(member: Member, leading: Leading, since: int) -> None:
    """A majority answered heartbeats that left after step `since`; the leader counts itself."""
    needed = member.group.majority - 1
    contexts = sorted(leading.answered.values(), reverse=True)
    reached = contexts[needed - 1] if 0 < needed <= len(contexts) else 0
    rounds = leading.rounds.items()
    if needed and not any(begun >= since and context <= reached for context, begun in rounds):
        raise Forbidden("no majority confirmed since the request came that it leads")


def end_offset(member: Member) -> int:
    """Where its log ends; behind what it knows committed, another log may be committed."""
    known = member.group.ends[member.commit]
    return known + sum(entry.records for entry in member.written.log[member.commit :])
