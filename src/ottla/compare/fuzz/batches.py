"""Draws batches: where an idempotent one stands to what the log has, and what is wrong with one.

Both are tables of a weight and a function, which returns keys of a batch as a case has them
(`ottla.compare.batches`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ottla.compare.batches import BASE_TIMESTAMP
from ottla.compare.fuzz.dice import Dice
from ottla.compare.fuzz.model import LAST_SEQUENCE, LogModel, ProducerId, ProducerModel, Sent, after

Keys: TypeAlias = dict[str, Any]
LAST_EPOCH = (1 << 15) - 1
HOUR_MS = 3_600_000
LARGE = 400
"""Bytes of a value that no topic takes whose limit is `SMALL_LIMIT`."""
SMALL_LIMIT = 300


class Numbers(NamedTuple):
    """The epoch and the sequences of a batch."""

    epoch: int
    sent: Sent


# ---- idempotent batches


def _next(dice: Dice, known: ProducerModel) -> Numbers:
    return Numbers(known.epoch, Sent(known.sent[-1].next, dice.between(1, 3)))


def _again(dice: Dice, known: ProducerModel) -> Numbers:
    return Numbers(known.epoch, dice.pick(known.sent[::-1]))


def _gap(dice: Dice, known: ProducerModel) -> Numbers:
    left_out = dice.pick((1, 2, 1000, LAST_SEQUENCE))
    return Numbers(known.epoch, Sent(after(known.sent[-1].next, left_out), dice.between(1, 2)))


def _overlap(dice: Dice, known: ProducerModel) -> Numbers:
    """The beginning or the end of a stored batch, with more or fewer records."""
    of = dice.pick(known.sent[::-1])
    begins = after(of.sequence, dice.between(0, of.records - 1))
    return Numbers(known.epoch, Sent(begins, dice.between(1, of.records + 1)))


def _together(dice: Dice, known: ProducerModel) -> Numbers:
    """Several stored batches as one."""
    several = known.sent[-dice.between(2, 3) :]
    return Numbers(known.epoch, Sent(several[0].sequence, sum(each.records for each in several)))


def _rewind(dice: Dice, known: ProducerModel) -> Numbers:
    begins = dice.pick((0, after(known.sent[0].sequence, -1), after(known.sent[-1].sequence, -2)))
    return Numbers(known.epoch, Sent(begins, dice.between(1, 2)))


def _higher(dice: Dice, known: ProducerModel) -> int:
    return min(LAST_EPOCH, dice.pick((known.epoch + 1, known.epoch + 1, known.epoch + 2)))


def _epoch_up(dice: Dice, known: ProducerModel) -> Numbers:
    return Numbers(_higher(dice, known), Sent(0, dice.between(1, 3)))


def _epoch_up_midway(dice: Dice, known: ProducerModel) -> Numbers:
    begins = dice.pick((known.sent[-1].next, 1, known.sent[-1].sequence))
    return Numbers(_higher(dice, known), Sent(begins, dice.between(1, 2)))


def _epoch_down(dice: Dice, known: ProducerModel) -> Numbers:
    epoch = dice.pick((max(known.epoch - 1, -1), 0, -1))
    sent = dice.pick((Sent(0, 1), Sent(known.sent[-1].next, 1), known.sent[-1]))
    return Numbers(epoch, sent)


def _last_epoch(dice: Dice, _: ProducerModel) -> Numbers:
    return Numbers(LAST_EPOCH, Sent(0, dice.between(1, 2)))


def _negative(dice: Dice, known: ProducerModel) -> Numbers:
    return Numbers(known.epoch, Sent(dice.pick((-1, -2)), 1))


RELATIONS: tuple[tuple[int, Callable[[Dice, ProducerModel], Numbers]], ...] = (
    (40, _next),
    (16, _again),
    (6, _gap),
    (6, _overlap),
    (3, _together),
    (4, _rewind),
    (5, _epoch_up),
    (3, _epoch_up_midway),
    (4, _epoch_down),
    (1, _last_epoch),
    (1, _negative),
)
"""How a batch of a known producer stands to the last ones that are stored."""
_FIRST_SEQUENCES = (0, 0, 0, 0, 1, 5, LAST_SEQUENCE - 2, LAST_SEQUENCE - 1, LAST_SEQUENCE)
_FIRST_EPOCHS = (0, 0, 0, 0, 1, 5, LAST_EPOCH - 1, -1)


def draw_numbers(dice: Dice, log: LogModel, producer: ProducerId) -> Numbers:
    """The epoch and sequences of the next batch of a producer."""
    known = log.producers.get(producer)
    if known is None:
        sent = Sent(dice.pick(_FIRST_SEQUENCES), dice.between(1, 3))
        return Numbers(dice.pick(_FIRST_EPOCHS), sent)
    return dice.weighed(RELATIONS)(dice, known)


# ---- what a batch holds

_CODECS = ("none", "none", "none", "none", "none", "gzip", "snappy", "lz4", "zstd")


def draw_records(dice: Dice, count: int, *, dated: bool) -> Keys:
    """The records of a well-formed batch. `dated`: with times of their own, long ago; else theirs
    is the present, and no producer expires by them while brokers are compared."""
    keys: Keys = {} if count == 1 else {"records": count}
    codec = dice.pick(_CODECS)
    if codec != "none":
        keys["codec"] = codec
    if not dated:
        keys["timestamp"] = dice.pick(("now", "now-1000", "now+1000"))
    elif dice.one_in(2):
        keys["records"] = [
            {"value": str(number), "timestamp": draw_time(dice)} for number in range(1, count + 1)
        ]
    if count == 1 and dice.one_in(6):
        keys["records"] = dice.pick(_ODD_RECORDS)
    return keys


_ODD_RECORDS: tuple[list[Any], ...] = (
    [{"null": True}],
    [{"key": "k", "null": True}],
    [{"value": "", "key": ""}],
    [{"value": "v", "headers": {"a": "1", "b": ""}}],
    [{"value": "x", "repeat": LARGE}],
)


def draw_time(dice: Dice) -> int:
    """A time of a record, of which there are few, so that some are equal and some go back."""
    return BASE_TIMESTAMP + 1000 * dice.between(0, 7)


# ---- what is wrong with a batch


def _header(name: str, *values: int) -> Callable[[Dice], Keys]:
    return lambda dice: {"wrong": {name: dice.pick(values)}}


def _keys(**keys: Any) -> Callable[[Dice], Keys]:
    return lambda _: dict(keys)


def _cut(dice: Dice) -> Keys:
    return {"cut": dice.pick((1, 2, 7, 20, 60))}


def _tail(dice: Dice) -> Keys:
    return {"tail": "00" * dice.pick((1, 11, 12, 13, 30))}


def _payload(dice: Dice) -> Keys:
    return {"payload": dice.pick(("", "00", "ff", "ffffffff", "1c000000066b763100"))}


def _packed(dice: Dice) -> Keys:
    """A payload that is not what its codec makes."""
    return {**_payload(dice), "wrong": {"attributes": dice.between(1, 4)}}


def _time(dice: Dice) -> Keys:
    ahead = f"now+{2 * HOUR_MS}"
    return {"timestamp": dice.pick((ahead, -1, -2, 0, 1 << 62, f"now-{2 * HOUR_MS}"))}


def _record_time(dice: Dice) -> Keys:
    times = [dice.pick((BASE_TIMESTAMP, f"now+{2 * HOUR_MS}", -1, 0)) for _ in range(2)]
    return {"records": [{"value": "t", "timestamp": each} for each in times]}


def _several(dice: Dice) -> Keys:
    """Two fields of the header at once: which is found first?"""
    first, second = dice.weighed(_HEADERS)(dice), dice.weighed(_HEADERS)(dice)
    return {"wrong": {**first["wrong"], **second["wrong"]}}


_HEADERS: tuple[tuple[int, Callable[[Dice], Keys]], ...] = (
    (3, _header("crc", 1)),
    (2, _header("magic", 0, 1, 3, -1)),
    (3, _header("batch_length", 13, 14, 48, 49, 60, 100, 1000, -1, 0)),
    (2, _header("base_offset", 1, 5, -1)),
    (2, _header("last_offset_delta", -1, 0, 1, 2, 7)),
    (2, _header("record_count", -1, 0, 1, 2, 7)),
    (3, _header("attributes", 5, 6, 7, 0x08, 0x40, 0x80, 0x100)),
    (1, _header("attributes", 0x20, 0x28)),
    (1, _header("attributes", 0x10, 0x30)),
    (1, _header("max_timestamp", -1, 0, BASE_TIMESTAMP + 5000)),
    (1, _header("base_timestamp", -1, 0, BASE_TIMESTAMP - 5000)),
    (1, _header("partition_leader_epoch", 0, 7, -2)),
    (2, _header("producer_epoch", -2, -1)),
    (2, _header("base_sequence", -1, -2)),
    (1, _header("producer_id", -2, -1, 1_000_000_005)),
)
WRONG: tuple[tuple[int, Callable[[Dice], Keys]], ...] = (
    *_HEADERS,
    (3, _several),
    (3, _cut),
    (3, _tail),
    (2, _payload),
    (2, _packed),
    (3, _time),
    (2, _record_time),
    (1, _keys(bytes="")),
    (1, _keys(bytes="00")),
    (1, _keys(bytes="00" * 30)),
    (1, _keys(batches=[])),
)
"""What may be wrong with a batch, or odd about it."""


def draw_wrong(dice: Dice) -> Keys:
    """What is wrong with a batch."""
    return dice.weighed(WRONG)(dice)


def is_dated(keys: Keys) -> bool:
    """Whether keys of `draw_wrong` change the times of a batch."""
    times = {"max_timestamp", "base_timestamp"} & keys.get("wrong", {}).keys()
    return bool(times or {"timestamp", "records"} & keys.keys())
