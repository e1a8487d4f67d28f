"""Batches as a case describes them, and the bytes that they are.

A `Batch` is well-formed unless the case says what is wrong with it: `wrong` replaces fields of the
header (the checksum is made right afterwards, unless `crc` is one of them), `payload` replaces the
records, `cut` leaves bytes away at the end and `tail` adds some. Times are ms since 1970 or, as
texts, relative to the clock of the broker's machine: `now`, `now+3600000`, `now-1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from ottla.compare.tables import Table, is_reference
from ottla.log.build import Codec, NewRecord, build_batch, seal
from ottla.log.record_batch import HEADER, HEADER_FIELDS

CODECS = tuple(each.name.lower() for each in Codec)
BASE_TIMESTAMP = 1_600_000_000_000
"""The time of records that have none in the case: 2020-09-13."""
FLAGS = {"log_append_time": 0x08, "transactional": 0x10, "control": 0x20}
"""Bits of a batch's attributes (Kafka protocol guide, "Record Batch")."""
MOST_RECORDS = 100_000
LARGEST_VALUE = 1 << 27
"""Copies of a record's value, and bytes that a case cuts off: 128 Mi."""

_NOW = re.compile(r"now([+-]\d{1,15})?")
_PATCHES = {
    name: (Struct(f">{code}"), sum(Struct(f">{each}").size for each in HEADER.format[1:][:place]))
    for place, (name, code) in enumerate(zip(HEADER_FIELDS, HEADER.format[1:], strict=True))
}
"""For each field of the header: its layout and where it begins."""


@dataclass(frozen=True)
class Record:
    """One record: `repeat` copies of `value`, put behind each other."""

    value: str | None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timestamp: int | str | None = None
    repeat: int = 1


@dataclass(frozen=True)
class Batch:
    """See the module's docstring. `producer`, `epoch` and `sequence` may be references."""

    producer: int | str
    epoch: int | str
    sequence: int | str
    records: tuple[Record, ...]
    codec: Codec
    timestamp: int | str
    attributes: int
    wrong: Mapping[str, int]
    payload: bytes | None
    tail: bytes
    cut: int

    def build(self, resolve: Callable[[Any], Any], now: int) -> bytes:
        """Its bytes; `resolve` looks references up, `now` is the time in ms."""
        base = time_of(self.timestamp, now)
        made = build_batch(
            [_new_record(each, now) for each in self.records],
            producer_id=resolve(self.producer),
            producer_epoch=resolve(self.epoch),
            base_sequence=resolve(self.sequence),
            codec=self.codec,
            base_timestamp=base,
            attributes=self.attributes,
        )
        if self.payload is not None:
            length = HEADER.size - 12 + len(self.payload)
            made = _patch(made[: HEADER.size] + self.payload, {"batch_length": length})
        wrong = {name: value for name, value in self.wrong.items() if name != "crc"}
        made = seal(_patch(made, wrong))
        if "crc" in self.wrong:
            made = _patch(made, {"crc": self.wrong["crc"]})
        return made[: len(made) - self.cut] + self.tail


def _patch(data: bytes, values: Mapping[str, int]) -> bytes:
    patched = bytearray(data)
    for name, value in values.items():
        layout, at = _PATCHES[name]
        layout.pack_into(patched, at, value)
    return bytes(patched)


def _new_record(record: Record, now: int) -> NewRecord:
    value = None if record.value is None else (record.value * record.repeat).encode()
    return NewRecord(
        value,
        None if record.key is None else record.key.encode(),
        tuple((name, each.encode()) for name, each in record.headers),
        None if record.timestamp is None else time_of(record.timestamp, now),
    )


def time_of(told: int | str, now: int) -> int:
    """A time of a case in ms since 1970."""
    if isinstance(told, int):
        return told
    found = _NOW.fullmatch(told)
    assert found is not None, "checked when it was loaded"
    return now + int(found[1] or 0)


# ---- reading


def read_batch_table(told: Table) -> Batch:
    """The batch that a table describes; raises `CaseError`. The table is read to its end."""
    flags = sum(bit for name, bit in FLAGS.items() if told.truth(name))
    producer = told.number("producer", -1)
    plain = producer == -1
    batch = Batch(
        producer=producer,
        epoch=told.number("epoch", -1 if plain else 0, bits=16),
        sequence=told.number("sequence", -1 if plain else ..., bits=32),
        records=_records(told),
        codec=Codec[told.one_of("codec", CODECS, "none").upper()],
        timestamp=_time(told, "timestamp", BASE_TIMESTAMP),
        attributes=flags,
        wrong=_wrong(told),
        payload=told.hexadecimal("payload") if "payload" in told.names else None,
        tail=told.hexadecimal("tail"),
        cut=told.within("cut", 0, HEADER.size + LARGEST_VALUE, 0),
    )
    told.done()
    return batch


def _time(told: Table, key: str, default: int | None) -> Any:
    value = told.anything(key, default)
    number = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64
    if value is None or number or (isinstance(value, str) and _NOW.fullmatch(value)):
        return value
    raise told.wrong(
        key, f'is {value!r}; ms since 1970, or "now", "now+1000", "now-1000" is wanted'
    )


def _wrong(told: Table) -> dict[str, int]:
    inside = told.table("wrong", told.anything("wrong", {}))
    found = {}
    for name, (layout, _) in _PATCHES.items():
        if name in inside.names:
            found[name] = inside.within(name, *_range(layout))
        else:
            inside.whole(name, None)
    inside.done()
    return found


def _range(layout: Struct) -> tuple[int, int]:
    bits = 8 * layout.size
    signed = layout.format[1:].islower()
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _records(told: Table) -> tuple[Record, ...]:
    """`records = 3` are the values 1, 2 and 3; else a list of texts and of tables."""
    value = told.anything("records", 1)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_RECORDS:
        return tuple(Record(str(number)) for number in range(1, value + 1))
    if not isinstance(value, list) or not value:
        wanted = f"1 to {MOST_RECORDS}, or a list of texts and tables is wanted"
        raise told.wrong("records", f"is {value!r}; {wanted}")
    return tuple(_record(told, f"records[{number}]", each) for number, each in enumerate(value))


def _record(told: Table, key: str, value: Any) -> Record:
    if isinstance(value, str):
        return Record(value)
    inside = told.table(key, value)
    null = inside.truth("null")
    headers = inside.table("headers", inside.anything("headers", {}))
    found = Record(
        value=None if null else inside.text("value", "1"),
        key=inside.text("key", None),
        headers=tuple((name, headers.text(name)) for name in list(headers.names)),
        timestamp=_time(inside, "timestamp", None),
        repeat=inside.within("repeat", 1, LARGEST_VALUE, 1),
    )
    inside.done()
    return found


def resolved(value: Any, resolve: Callable[[str], Any]) -> Any:
    """A value, or what a reference stands for."""
    return resolve(value) if is_reference(value) else value
