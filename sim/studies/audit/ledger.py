"""What an audit knows, in one file that stays whole after any kill.

**Theory.** Spark gives every micro-batch a number, records its offsets before it begins, and
repeats it after a restart unless it was committed. The file holds the number of the last
micro-batch that is counted, together with everything that it changed, and replaces the previous
file in one step. So a micro-batch that is repeated is recognised by its number, and nothing is
counted twice. A micro-batch that was not counted is repeated, so nothing is left out.

What is known of one log does not apply to another. So an audit keeps the id of its topic, and
refuses a topic that was created again under the same name. If brokers have no topic ids, falling
leader epochs or a log that ends too early may still show that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgpack

from ottla.log.checksum import crc32c
from ottla.log.note import replace_file
from ottla.log.types import Offset
from ottla.sim.machine.files import lock, no_folder
from ottla.sim.studies.audit.sequences import Finding, Kind, Ledger, Missing, Seen, Tail
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.identity import Kept, joined
from ottla.sim.studies.topics.offsets import Bounds

VERSION = 4
"""Version 1 did not know which part of a gap was filled; version 2 had no topic id; version 3 did
not know which part of a gap was reported. Versions 2 and 3 are read if that makes no difference;
they have no checksum either."""
FILE = "ledger.msgpack"
STREAM = "stream"
"""Folder below the checkpoint that belongs to Spark."""
LOCK = "audit.lock"
MOST_KEPT = 10_000
"""Findings that are kept in full; all are counted."""


@dataclass
class Audit:
    """The state of the audit of one topic."""

    topic: str
    batch: int = -1
    """The last micro-batch that is counted."""
    partitions: dict[int, Ledger] = field(default_factory=dict)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    """The first `MOST_KEPT` findings, each with its partition."""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    """How many records the findings of each kind are about."""
    topic_id: str | None = None
    """The id of the topic; None: no broker said."""

    @property
    def kept(self) -> Kept:
        """How far it has come, as offsets of the topic."""
        reached = {str(number): each.next for number, each in self.partitions.items()}
        return joined({self.topic: reached}, {self.topic: self.topic_id} if self.topic_id else {})

    def goes_on(self, bounds: Mapping[int, Bounds], reached: Mapping[int, Offset]) -> None:
        """Raises `SourceError` if records were deleted before they were audited. Partitions without
        batches have no ledger, but the stream has `reached` them. Partitions that it has not met
        were created later, and are read from 0 on."""
        for number, (start, _) in bounds.items():
            ledger = self.partitions.get(number, Ledger())
            read = max(ledger.next, reached.get(number, 0))
            if start > read:
                raise SourceError(
                    f"{self.topic}-{number}: records {read} to {start - 1} were deleted before "
                    f"they were audited, the log starts at {start}; audit with a new --checkpoint"
                )

    def observe(self, partition: int, batch: Seen) -> list[Finding]:
        """Take in a partition's next batch; returns what is wrong with it. Raises `SourceError` if
        it belongs to another topic."""
        ledger = self.partitions.get(partition)
        if ledger is None:
            ledger = self.partitions[partition] = Ledger()
        if 0 <= batch.leader_epoch < ledger.leader_epoch:
            raise SourceError(
                f"{self.topic}-{partition}: leader epoch {batch.leader_epoch} at offset "
                f"{batch.base_offset} comes behind {ledger.leader_epoch}: the topic was deleted "
                f"and created again; audit with a new --checkpoint"
            )
        found = ledger.observe(batch)
        for each in found:
            self.counts[each.kind] += each.records
            if len(self.findings) < MOST_KEPT:
                self.findings.append((partition, each))
        return found

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not any(self.counts.values())

    def told(self) -> str:
        """All counts in one line; *missing* is what is still missing."""
        ledgers = self.partitions.values()
        producers = {each for ledger in ledgers for each in ledger.tails}
        sequenced = sum(each.sequenced for each in ledgers)
        missing = self.counts[Kind.GAP] - sum(each.filled for each in ledgers)
        counts = {**self.counts, Kind.GAP: missing}
        counted = ", ".join(_counted(counts[kind], kind) for kind in Kind)
        notes = [
            f"{number:,} {text}"
            for number, text in (
                (sum(each.plain for each in ledgers), "records without a producer id not audited"),
                (sum(each.absent for each in ledgers), "offsets not in the log"),
            )
            if number
        ]
        whole = (
            f"{self.topic}: {sequenced:,} records of {_many(len(producers), 'producer')} in "
            f"{_many(len(ledgers), 'partition')}: {counted}"
        )
        return "; ".join((whole, *notes))


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _counted(number: int, kind: Kind) -> str:
    words = {Kind.GAP: "missing", Kind.DUPLICATE: "duplicated", Kind.REORDER: "out of order"}
    return f"{number:,} {words[kind]}"


def told(topic: str, partition: int, found: Finding) -> str:
    """A finding in one line."""
    sequences = (
        f"sequence {found.first}"
        if found.first == found.last
        else f"sequences {found.first} to {found.last}"
    )
    what = {
        Kind.GAP: f"{found.records:,} missing before",
        Kind.DUPLICATE: f"{found.records:,} again at",
        Kind.REORDER: f"{found.records:,} late at",
    }[found.kind]
    return (
        f"{found.kind} {topic}-{partition} producer {found.producer_id} epoch {found.epoch}: "
        f"{sequences}, {what} offset {found.offset}"
    )


def taken(folder: Path) -> IO[str]:
    """Hold a checkpoint alone until this is closed, or the process ends: two audits would each use
    their own ledger with Spark's part. Raises `SourceError` if another process holds it, or if the
    folder is no audit's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_own(folder)
        held = lock(folder / LOCK)
    except OSError as error:
        raise SourceError(f"--checkpoint {no_folder(folder, error)}") from None
    if held is None:
        raise SourceError(f"{folder}: another process uses this audit; wait, or end it")
    return held


def _check_own(folder: Path) -> None:
    file = folder / FILE
    ours = {STREAM, LOCK, _unfinished(file).name}
    if not file.exists() and {each.name for each in folder.iterdir()} - ours:
        raise SourceError(f"{folder} is not empty and holds no audit; name another")


def opened(folder: Path, topic: str) -> Audit:
    """The audit in a checkpoint, or a new one. Raises `SourceError` if the folder belongs to
    another topic or to no audit, or if one of its parts is missing, or does not fit the other."""
    file, stream = folder / FILE, folder / STREAM
    try:
        folder.mkdir(parents=True, exist_ok=True)
        begun = (stream / "commits").is_dir() and any((stream / "commits").iterdir())
        if not file.exists():
            if begun:
                raise SourceError(f"{folder} has lost its {FILE}; audit with a new --checkpoint")
            _check_own(folder)
            return Audit(topic)
        found = _decoded(file.read_bytes())
        last = committed(folder)
    except OSError as error:
        raise SourceError(f"--checkpoint {no_folder(folder, error)}") from None
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        raise SourceError(f"{file} is damaged; audit with a new --checkpoint") from None
    if found is None:
        raise SourceError(f"{file} is of another version; audit with a new --checkpoint")
    if found.topic != topic:
        raise SourceError(f"{folder} is an audit of topic {found.topic}, not of {topic}")
    if not (stream / "offsets").is_dir():
        raise SourceError(f"{folder} has lost its {STREAM}; audit with a new --checkpoint")
    if found.batch < last:
        raise SourceError(
            f"{file} is older than its {STREAM}, which has committed micro-batch {last} where "
            f"{found.batch} is the last that is counted; audit with a new --checkpoint"
        )
    return found


def committed(folder: Path) -> int:
    """The last micro-batch that Spark will not repeat; -1: none."""
    return _newest(folder / STREAM / "commits")


def planned(folder: Path) -> int:
    """The last micro-batch whose offsets Spark has recorded: it is repeated if it was not
    committed. -1: none."""
    return _newest(folder / STREAM / "offsets")


def _newest(numbered: Path) -> int:
    names = [each.name for each in numbered.glob("*")]
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def reached(folder: Path, audit: Audit) -> dict[int, Offset]:
    """By partition, where the last counted micro-batch ended, as Spark recorded it before it began.
    Raises `SourceError` if that record is gone."""
    file = folder / STREAM / "offsets" / str(audit.batch)
    try:
        offsets = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])[audit.topic]
        return {int(partition): int(offset) for partition, offset in offsets.items()}
    except FileNotFoundError:
        what = f"has lost its micro-batch {audit.batch}"
        raise SourceError(f"{folder / STREAM} {what}; audit with a new --checkpoint") from None
    except OSError as error:
        raise SourceError(f"--checkpoint {no_folder(folder, error)}") from None
    except (LookupError, TypeError, ValueError, AttributeError):
        raise SourceError(f"{file} is damaged; audit with a new --checkpoint") from None


def keep(folder: Path, audit: Audit) -> None:
    """Replace the stored audit by this one, durably. Raises `OSError`."""
    file = folder / FILE
    replace_file(file, _unfinished(file), _encoded(audit))


def _unfinished(file: Path) -> Path:
    return file.with_suffix(".new")


def _encoded(audit: Audit) -> bytes:
    partitions = {
        number: (
            *(ledger.next, ledger.absent, ledger.batches, ledger.plain),
            *(ledger.sequenced, ledger.filled),
            {
                producer: (tail.epoch, tail.due, tail.absent, tail.missing, tail.told)
                for producer, tail in ledger.tails.items()
            },
            ledger.leader_epoch,
        )
        for number, ledger in audit.partitions.items()
    }
    so_far = (audit.batch, partitions, audit.findings, audit.counts)
    body = msgpack.packb((audit.topic, *so_far, audit.topic_id))
    packed: bytes = msgpack.packb((VERSION, crc32c(body), body))
    return packed


def _decoded(data: bytes) -> Audit | None:
    """None: another version."""
    version, *fields = msgpack.unpackb(data, strict_map_key=False)
    if version not in {2, 3, VERSION}:
        return None
    if version == VERSION:
        crc, body = fields
        if crc != crc32c(body):
            raise ValueError("its checksum does not match")
        fields = msgpack.unpackb(body, strict_map_key=False)
    topic, batch, partitions, findings, counts, *topic_id = fields
    audit = Audit(
        topic,
        batch,
        {number: _ledger(*each) for number, each in partitions.items()},
        [(partition, Finding(Kind(kind), *rest)) for partition, (kind, *rest) in findings],
        counts,
        *topic_id,
    )
    return audit if version == VERSION or _brought_up(audit) else None


def _ledger(*fields: Any) -> Ledger:
    following, absent, batches, plain, sequenced, filled, tails, *epoch = fields
    known = {producer: _tail(*each) for producer, each in tails.items()}
    return Ledger(following, absent, batches, plain, sequenced, filled, known, *epoch)


def _tail(epoch: int, due: int, absent: int, missing: Iterable[Any], *told: Any) -> Tail:
    """Before version 4 a range did not name its gap; then it counts as its own gap."""
    known = [Missing(first, end, *gap or (first,)) for first, end, *gap in missing]
    return Tail(epoch, due, absent, known, *told)


def _brought_up(audit: Audit) -> bool:
    """For an audit of an older version, set what was reported of gaps: nothing if no gap was
    reported, everything if no offsets are absent. False: it cannot be known."""
    ledgers = audit.partitions.values()
    if not audit.counts[Kind.GAP]:
        for each in ledgers:
            each.filled = 0
        return True
    if any(each.absent for each in ledgers):
        return False
    for tail in (tail for each in ledgers for tail in each.tails.values()):
        tail.told = {each.gap: each.end - each.first for each in tail.missing}
    return True
