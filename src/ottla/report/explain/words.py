"""The sentence of a step of a recording, for people: one short sentence, or none.

A row of the history gets a sentence if it changes something that others rely on: the leader, a log,
or an answer to a client. Other rows are *dull*: entries applied, entries durable, records read.
They are in the tables beside the picture, or only in `ottla sim show`.

A batch is written `producer/epoch:first-last`, by its sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ottla.broker.wire.answers import ProduceAnswer
from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    InstallSnapshot,
    RequestVote,
    TimeoutNow,
    VoteReply,
)
from ottla.report.explain.wires import client_name, entries, family, quiet
from ottla.sim.history.history import Event
from ottla.sim.recording.recorder import Place, Step
from ottla.sim.world.reference_model import ACCEPT, DUPLICATE, PARK


def batch(pid: int | None, epoch: int | None, seq: int | None, last: int | None) -> str:
    """A batch by its sequences."""
    if pid is None or seq is None or pid < 0:
        return "a batch without sequences"
    end = f"-{last}" if last is not None and last != seq else ""
    return f"{pid}/{epoch}:{seq}{end}"


def batch_of(row: Event) -> str:
    """The batch that a row is about."""
    return batch(row.pid, row.epoch, row.seq, row.seq_last)


_VOTES = {
    (False, True): "votes",
    (False, False): "refuses its vote",
    (True, True): "would vote",
    (True, False): "would not vote",
}


def _sent(step: Step) -> str | None:
    wire = step.wire
    assert wire is not None, "something was sent"
    message, to = wire.message, wire.goal[1]
    lost = "" if wire.end is not None else " (never arrives)"
    if isinstance(message, AppendEntries):
        if family(wire) is None:
            return None
        return f"sends {entries(message)} to {to}{lost}"
    if isinstance(message, RequestVote):
        asks = "would ask" if message.pre else "asks"
        return f"{asks} {to} for its vote in term {message.term}{lost}"
    if isinstance(message, VoteReply):
        verb = _VOTES[message.pre, message.granted]
        return f"{verb} for {to} in term {message.term}{lost}"
    if isinstance(message, TimeoutNow):
        return f"hands leadership over to {to}{lost}"
    if isinstance(message, AppendReply) and not message.success:
        return f"refuses entries of {to}{lost}"
    if isinstance(message, InstallSnapshot):
        return f"sends a snapshot to {to}{lost}"
    return None


def _answered(step: Step) -> str | None:
    wire = step.wire
    assert wire is not None, "something was answered"
    if isinstance(wire.message, ProduceAnswer) and wire.end is None:
        return f"its answer never reaches {client_name(wire.goal[1])}"
    return None


# ---- rows


def _leader(row: Event) -> str:
    stale = f", with {row.aux} requests in flight of an earlier leadership" if row.aux else ""
    return f"leads term {row.term}{stale}"


def _append(row: Event) -> str | None:
    if row.off is None:
        return f"appends entry {row.log_index} in term {row.term}" if row.aux else None
    return f"appends {batch_of(row)} at {row.off}"


def _commit(row: Event) -> str | None:
    return f"high watermark {row.hw}" if row.aux and row.hw is not None else None


def _crash(row: Event) -> str:
    lost = f", {row.aux} unsynced appends are lost" if row.aux else ""
    return f"is down ({row.code}){lost}"


def _vote(row: Event) -> str | None:
    if row.cand == row.node and not row.aux:
        return f"starts an election in term {row.term}"
    return None


def _send(row: Event) -> str:
    again = f", attempt {row.aux}" if row.aux and row.aux > 1 else ""
    return f"sends {batch_of(row)} to {row.node}{again}"


def _topic(row: Event) -> str | None:
    if row.client is not None:
        return f"topic {row.op}, by node {row.node}: {row.code}"
    if row.code == "leftover":
        return f"keeps group {row.log_index}, which is no topic's"
    if row.code == "unled":
        return f"nobody leads partition {row.partition} of topic {row.op}"
    return f"topic {row.op} lacks a replica" if row.code == "unserved" else None


def _answer(row: Event) -> str:
    if row.code == "NONE":
        return f"answers {batch_of(row)}: stored at {row.off}"
    return f"answers {batch_of(row)}: {row.code}"


def _error(row: Event) -> str:
    what = f" about {batch_of(row)}" if row.pid is not None else ""
    return f"hears {row.code} from {row.node}{what}, and will try again"


def _truncate(row: Event) -> str:
    return f"cuts its log from offset {row.off} (entry {row.log_index}) on"


def _final(row: Event) -> str:
    state = "committed" if row.aux else "not committed"
    return f"holds {batch(row.pid, row.epoch, row.seq, None)} at {row.off} in the end, {state}"


def _phase(row: Event) -> str | None:
    if row.code == "heal":
        return None
    return _PHASES.get(row.code or "", f"phase {row.code}")


def _decide(row: Event) -> str | None:
    """A sentence only for decisions of the reference model; it has a row only where it differs."""
    return None if row.node else f"says of {batch_of(row)}: {_opinion(row)}"


def _misjudged(step: Step) -> str:
    """A sentence about a decision with which the reference model does not agree."""
    assert step.row is not None, "the opinion of the model"
    what, taken = batch_of(step.row), step.detail
    did = _DID.get(taken.code, "refuses {} as " + taken.code).format(what)
    return f"{did}{_of(taken)}, the model says {_opinion(step.row)}"


_DID = {ACCEPT: "accepts {}", DUPLICATE: "takes {} for a duplicate", PARK: "parks {}"}


def _opinion(row: Event) -> str:
    return f"{row.code}{_of(row)}"


def _of(row: Event) -> str:
    return "" if row.off is None or row.off < 0 else f" of offset {row.off}"


_PHASES = {
    "load": "the run begins: clients work, faults may happen",
    "settle": "all nodes are healed",
    "done": "nothing is under way any more",
    "excused": "this partition is not checked any more: its majority never comes back",
}

Tell: TypeAlias = Callable[[Any], str | None]
_ROWS: dict[str, Tell] = {
    "leader": _leader,
    "stepdown": lambda row: f"no longer leads term {row.term}",
    "append": _append,
    "commit": _commit,
    "truncate": _truncate,
    "crash": _crash,
    "start": lambda row: f"is up again, in term {row.term}" if row.inc > 1 else "is up",
    "snapshot": lambda row: f"snapshot {row.code}, its log begins at offset {row.off}",
    "pause": lambda _: "is paused",
    "resume": lambda _: "goes on",
    "vote": _vote,
    "expire": lambda row: f"forgets producer {row.pid}",
    "send": _send,
    "answer": _answer,
    "error": _error,
    "ok": lambda row: f"is told: record {row.op} is stored at {row.off}",
    "fail": lambda row: f"gives up record {row.op}: {row.code}",
    "info": lambda row: f"gives up record {row.op}, outcome unknown: {row.code}",
    "poll": lambda row: f"reads {row.off}",
    "learn": lambda row: f"is told by {row.node}: {row.code} is offset {row.off}",
    "close": lambda row: f"connection to {row.node} is gone: {row.code}",
    "check": lambda row: (
        f"Kafka answers {row.code}" if not row.node else f"is told by {row.node}: {row.code}"
    ),
    "step": lambda row: (
        f"the model says {row.code}" if not row.node else f"is told by {row.node}: {row.code}"
    ),
    "topic": _topic,
    "late": lambda row: (
        None
        if row.client is None
        else (f"takes {row.value} us over what {row.client} asks ({row.code}), allowed {row.aux}")
    ),
    "fault": lambda row: None if row.code.startswith("program ") else f"fault: {row.code}",
    "beyond": lambda row: (
        f"a fault that Raft cannot survive: {row.code or f'id {row.pid} given twice'}"
    ),
    "decide": _decide,
    "phase": _phase,
    "final": _final,
}


# ---- decisions


def _decided(step: Step) -> str | None:
    who, _, decision = step.detail
    what = batch(who.producer_id, who.epoch, who.first_sequence, who.last_sequence)
    if isinstance(decision, Accept):
        return None
    if isinstance(decision, Duplicate):
        return f"{what} is a duplicate, stored at {decision.base_offset}"
    if isinstance(decision, Park):
        return f"{what} is in flight already: the copy is parked"
    assert isinstance(decision, Reject), "the last kind of decision"
    proof = ", if this node still leads" if decision.barrier else ""
    return f"{what} is refused as {decision.reason.value}{proof}"


_STEPS: dict[str, Callable[[Step], str | None]] = {
    "sent": _sent,
    "answered": _answered,
    "decided": _decided,
    "command": lambda step: str(step.detail),
    "ended": lambda _: "the run ended here",
    "noticed": lambda _: "the run goes on, but this is broken",
}


def sentence(step: Step) -> str | None:
    """The sentence of a step; None if it is dull."""
    if step.row is not None:
        if step.what == "decide" and step.detail is not None:
            return _misjudged(step)
        tell = _ROWS.get(step.what)
        return None if tell is None else tell(step.row)
    other = _STEPS.get(step.what)
    return None if other is None else other(step)


def joined(steps: Sequence[Step]) -> str:
    """The sentences of several steps of one moment, in one line."""
    said = _joined(steps)
    return said or "; ".join(dict.fromkeys(filter(None, map(quiet, steps))))


def _joined(steps: Iterable[Step]) -> str:
    parts: list[str] = []
    group: list[Event] = []
    for step in steps:
        if step.what in _RUNS and step.row is not None:
            if group and group[-1].kind != step.what:
                parts.append(_run(group))
                group = []
            group.append(step.row)
            continue
        said = sentence(step)
        if said is not None and said not in parts:
            parts.append(said)
    if group:
        parts.append(_run(group))
    return "; ".join(_together(parts))


_RUNS = {"ok": "is told: stored at", "poll": "reads"}


def _run(rows: list[Event]) -> str:
    """One sentence for several rows of one kind, one row per record."""
    offs = [row.off for row in rows if row.off is not None]
    if rows[0].kind == "ok" and (not offs or offs[0] < 0):
        return f"counts {len(rows)} records as sent (acks=0)"
    span = f"{min(offs)}" if len(offs) == 1 else f"{min(offs)}-{max(offs)}"
    return f"{_RUNS[rows[0].kind]} {span}"


def _together(parts: list[str]) -> list[str]:
    """Join `sends X to 2` and `sends X to 3` into `sends X to 2, 3`, and equal answers, too."""
    told: list[str] = []
    for part in parts:
        merged = None if not told else _one_of_two(told[-1], part)
        if merged is None:
            told.append(part)
        else:
            told[-1] = merged
    return told


def _one_of_two(left: str, right: str) -> str | None:
    head, to, who = right.rpartition(" to ")
    if to and who.isdigit() and left.startswith(head + to):
        return f"{left}, {who}"
    for verb in ("answers ", "sends ", "appends "):
        if left.startswith(verb) and right.startswith(verb):
            for mark in (": ", " to ", " in "):
                one, other = left.partition(mark), right.partition(mark)
                if one[1] and one[2] == other[2]:
                    return f"{one[0]}, {other[0].removeprefix(verb)}{mark}{one[2]}"
    return None


def group_name(partition: int) -> str:
    """The name of a Raft group."""
    return "controller" if partition < 0 else f"partition {partition}"


def place_name(place: Place | None, names: dict[int, str]) -> str:
    """The name of a node or a client."""
    if place is None:
        return ""
    kind, number = place
    if kind == "client" and number in names:
        return names[number]
    return f"{kind} {number}"
