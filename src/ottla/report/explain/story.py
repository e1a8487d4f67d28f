"""The story: which events of a run matter, told in order.

In a failed run, these are the events about what went wrong, and the changes of leadership around
them. The row that shows the anomaly says what it is about: a batch (producer, epoch, sequence), an
entry (log index), or a leadership. In a run that passed, the events are its failovers, and all
requests that were not simply accepted.

Every step of the partition gets a weight. If there are too many, the lightest are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.idempotency.decisions import Accept
from ottla.raft.messages import VoteReply
from ottla.report.explain.overtaken import overtaken
from ottla.report.explain.words import place_name, sentence
from ottla.sim.history.history import Event
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.registry import said_of
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import NOWHERE, Step

MOST_ITEMS = 48
"""Most events of a story; nobody reads more."""
_EVERYWHERE = {"beyond", "fault", "pause", "resume", "phase", "command", "ended", "noticed"}
_MOVES = {
    "leader": 5,
    "stepdown": 4,
    "truncate": 5,
    "snapshot": 4,
    "crash": 4,
    "start": 3,
    "pause": 4,
    "resume": 3,
    "expire": 3,
    "info": 3,
    "fail": 4,
    "fault": 3,
    "beyond": 5,
    "decided": 4,
    "command": 5,
    "ended": 5,
    "noticed": 5,
}
"""Weights of events that matter in every run."""
_ABOUT = {"append": 6, "answer": 6, "ok": 6, "send": 4, "error": 4, "decided": 7, "truncate": 8}
"""Weights of events about the batch that went wrong."""
_OVERTAKEN, _OVERTAKEN_THERE = 5, 8
"""Weights of a message that an election has overtaken: received anywhere, and where the anomaly
shows."""
_ABOUT_FROM = 6
_BAD = 100
_PARTITION = re.compile(r"\bpartition (-?\d+)")


class Item(NamedTuple):
    """One decisive event."""

    step: int
    text: str
    weight: int
    more: int = 0
    """How many similar events follow it."""


@dataclass(slots=True)
class Story:
    """What happened in one partition."""

    partition: int
    items: list[Item]
    bad: int | None
    """The step that shows the anomaly; None if there is no anomaly."""
    name: str = ""
    promised: str = ""
    found: str = ""


class _About(NamedTuple):
    """What the anomaly is about; a field is None if it is not about that."""

    pid: int | None = None
    epoch: int | None = None
    seqs: tuple[int, int] | None = None
    log_index: int | None = None


def tell(
    recording: Recording, partition: int, anomaly: Anomaly | None, most: int = MOST_ITEMS
) -> Story:
    """The story of a partition, of at most `most` items. It ends at `anomaly`, if there is one."""
    bad = None if anomaly is None else _step_of(recording, anomaly)
    narrow = anomaly is not None and anomaly.invariant not in NOWHERE
    about = _about(recording.steps[bad].row) if narrow and bad is not None else _About()
    late = {} if anomaly is None else overtaken(recording, partition)
    weighed = list(_weigh(recording, partition, about, bad, late))
    if narrow:
        weighed = _around(weighed)
    items = _thin(list(_folded(weighed, recording, late)), most)
    story = Story(partition, items, bad)
    if anomaly is not None:
        story.name, story.promised = said_of(anomaly.invariant, recording.config.plugins)
        story.found = anomaly.text
    return story


def partition_of(recording: Recording, anomaly: Anomaly) -> int:
    """The partition of an anomaly, -1 for the controller; 0 if it belongs to no single one."""
    return home_of(recording, anomaly) or 0


def home_of(recording: Recording, anomaly: Anomaly) -> int | None:
    """The partition of an anomaly, -1 for the controller; None if it belongs to no single one, or
    its text does not name one."""
    if anomaly.invariant not in NOWHERE:
        return recording.rows[anomaly.eid].partition or 0
    named = {int(each) for each in _PARTITION.findall(anomaly.text)} & {*recording.placement}
    return named.pop() if len(named) == 1 else None


def concerns(step: Step, partition: int, replicas: tuple[int, ...]) -> bool:
    """Whether a step concerns a partition."""
    if step.partition is not None:
        return step.partition == partition
    if step.what not in _EVERYWHERE and step.place is not None and step.place[0] == "node":
        return False
    return step.place is None or step.place[0] == "client" or step.place[1] in replicas


def _step_of(recording: Recording, anomaly: Anomaly) -> int:
    steps = recording.steps
    if anomaly.invariant in NOWHERE:
        shown = (each.number for each in steps if each.what in {"ended", "noticed"})
    else:
        shown = (
            each.number for each in steps if each.row is not None and each.row.eid == anomaly.eid
        )
    return next(shown, len(steps) - 1)


def _about(row: Event | None) -> _About:
    if row is None:
        return _About()
    if row.pid is not None and row.seq is not None:
        last = row.seq if row.seq_last is None else row.seq_last
        return _About(row.pid, row.epoch, (row.seq, last), None)
    return _About(log_index=row.log_index)


def _is_about(step: Step, about: _About) -> bool:
    if step.what == "decided":
        who = step.detail[0]
        return _touches(about, who.producer_id, (who.first_sequence, who.last_sequence))
    row = step.row
    if row is None:
        return False
    if step.what == "truncate":
        return True
    last = row.seq if row.seq_last is None else row.seq_last
    if row.pid is not None and _touches(about, row.pid, (row.seq or 0, last or 0)):
        return True
    return about.log_index is not None and row.log_index == about.log_index


def _elects(step: Step, bad: Event | None) -> bool:
    """Whether a node grants its vote for the leadership that breaks the invariant."""
    if bad is None or bad.kind != "leader" or step.what != "sent" or step.wire is None:
        return False
    message = step.wire.message
    if not isinstance(message, VoteReply) or message.pre or not message.granted:
        return False
    return message.term == bad.term and message.to == bad.node


def _touches(about: _About, pid: int, seqs: tuple[int, int]) -> bool:
    if about.seqs is None or about.pid != pid:
        return False
    return seqs[0] <= about.seqs[1] and about.seqs[0] <= seqs[1]


def _chosen_from(recording: Recording, partition: int, bad: int | None) -> list[Step]:
    """The steps from which a story is chosen. The bad step may belong to another partition."""
    steps = recording.near(partition)
    if bad is None or recording.steps[bad].partition in {None, partition}:
        return steps
    return sorted([*steps, recording.steps[bad]], key=lambda step: step.number)


def _weigh(
    recording: Recording, partition: int, about: _About, bad: int | None, late: Mapping[int, str]
) -> Iterator[tuple[Step, int]]:
    replicas = recording.placement.get(partition, ())
    doomed = set() if bad is None else _doomed(recording, partition)
    downs = {(step.place, step.at) for step in recording.crashes()}
    for step in _chosen_from(recording, partition, bad):
        if step.number == bad:
            yield step, _BAD
            if step.what != "final":
                return
        elif concerns(step, partition, replicas):
            weight = _weight(step, recording, bad, late)
            if bad is not None and (_is_about(step, about) or step.number in doomed):
                weight = max(weight, _ABOUT.get(step.what, 0))
            if bad is not None and _elects(step, recording.steps[bad].row):
                weight = _ABOUT_FROM
            if step.what == "fault" and (step.place, step.at) in downs:
                weight = 0
            if weight and (step.number in late or sentence(step) is not None):
                yield step, weight


def _weight(step: Step, recording: Recording, bad: int | None, late: Mapping[int, str]) -> int:
    """The weight of a step, whatever the anomaly is about. `late` has messages that an election has
    overtaken."""
    if step.number in late:
        there = bad is not None and step.place == recording.steps[bad].place
        return _OVERTAKEN_THERE if there else _OVERTAKEN
    if step.what == "decided" and isinstance(step.detail[2], Accept):
        return 0
    return _MOVES.get(step.what, 0)


def _around(weighed: list[tuple[Step, int]]) -> list[tuple[Step, int]]:
    """The events about the anomaly, and all other events since the leadership before them. Later
    events explain nothing, even if the anomaly was noticed late."""
    places = [place for place, (_, weight) in enumerate(weighed) if _ABOUT_FROM <= weight < _BAD]
    if not places:
        return weighed
    first = places[0]
    while first > 0 and weighed[first][0].what != "leader":
        first -= 1
    return [
        each
        for place, each in enumerate(weighed)
        if first <= place <= places[-1] or each[1] == _BAD
    ]


def _doomed(recording: Recording, partition: int) -> set[int]:
    """Steps in which a leader appended entries that it later had to cut. They belong to the story,
    because clients and other replicas may have relied on them."""
    doomed: set[int] = set()
    written: dict[tuple[int | None, int], int] = {}
    for step in recording.steps:
        row = step.row
        if row is None or row.partition != partition or row.log_index is None:
            continue
        if row.kind == "append" and row.aux and row.off is not None:
            written[row.node, row.log_index] = step.number
        elif row.kind == "append":
            written.pop((row.node, row.log_index), None)
        elif row.kind == "truncate":
            cut = [key for key in written if key[0] == row.node and key[1] >= row.log_index]
            doomed.update(written.pop(key) for key in cut)
    return doomed


def _folded(
    weighed: Iterable[tuple[Step, int]], recording: Recording, late: Mapping[int, str]
) -> Iterator[Item]:
    """Join repetitions, such as the tenth retry: the first one gets their number. `late`: sentences
    about messages that came late."""
    waiting: Item | None = None
    before: tuple[object, ...] | None = None
    for step, weight in weighed:
        said = late.get(step.number) or sentence(step) or ""
        who = place_name(step.place, recording.names)
        key = (step.what, step.place, step.row.code if step.row is not None else said)
        if waiting is not None and key == before and weight < _BAD and step.what in _REPEATED:
            waiting = waiting._replace(more=waiting.more + 1)
            continue
        if waiting is not None:
            yield waiting
        between = _BETWEEN.get(step.what, " ") if who else ""
        waiting, before = Item(step.number, f"{who}{between}{said}".strip(), weight), key
    if waiting is not None:
        yield waiting


_BETWEEN = {"fault": ", ", "ended": ": ", "noticed": ": "}
"""The text between a name and the sentence about it."""
_REPEATED = {"error", "send", "ok", "fault", "received"}


def _thin(items: list[Item], most: int) -> list[Item]:
    """At most `most` items, the heaviest; of equally heavy ones the last."""
    if len(items) <= most:
        return items
    heaviest = sorted(items, key=lambda item: (item.weight, item.step), reverse=True)
    kept = {item.step for item in heaviest[:most]}
    return [item for item in items if item.step in kept]
