"""Draws what readers and operators ask of a log: near its ends, its times and its epochs."""

from __future__ import annotations

from typing import Any

from ottla.compare.fuzz.batches import draw_time
from ottla.compare.fuzz.model import LogModel
from ottla.compare.fuzz.world import ABSENT, World, at

_END = -1
_LARGEST_TIME = -3
_TIMES = (_END, _END, -2, -2, _LARGEST_TIME, _LARGEST_TIME, -4, -5, -7)
"""What ListOffsets has instead of a time: the end, the beginning, the largest time, ..."""
_LIMITS = (1 << 20, 1 << 20, 1 << 20, 0, 1, 70, 150, 300)
"""Bytes that a fetch takes at most; a small batch has about 70."""
_NOWHERE: tuple[dict[str, Any], ...] = ({"topic": ABSENT}, {"partition": 2})
"""What there is not."""
_FAR_AHEAD = 4_000_000_000_000
"""A time that no record has."""
_READ_VERSION = 12
"""From 13 on Fetch names topics by their ids."""


def _near(world: World, log: LogModel) -> int:
    """An offset at or beside an end of the log or an edge of a batch."""
    dice = world.dice
    edge = dice.pick((log.start, log.end, log.end, dice.pick(log.edges)))
    return edge + dice.pick((0, 0, 0, -1, 1))


def _place(world: World) -> tuple[dict[str, Any], str, int, LogModel]:
    name, number, log = world.place()
    if world.dice.one_in(40):
        return dict(world.dice.pick(_NOWHERE)), name, number, log
    return at(name, number), name, number, log


def _with_epoch(keys: dict[str, Any], key: str, epoch: int | str) -> None:
    if epoch != -1:
        keys[key] = epoch


def list_offsets(world: World) -> dict[str, Any]:
    """An end of a log, or the first record from a time on."""
    dice = world.dice
    keys, name, number, log = _place(world)
    around = draw_time(dice) + dice.pick((0, 0, -1, 1))
    time = dice.pick((dice.pick(_TIMES), dice.pick(_TIMES), around, _FAR_AHEAD))
    unknown = log.deleted or (world.stamped and name == "u")
    keys["timestamp"] = _END if time == _LARGEST_TIME and unknown else time
    _with_epoch(keys, "leader_epoch", world.leader_epoch(name, number))
    if dice.one_in(5):
        keys["isolation_level"] = 1
    world.choose_version(keys, "list_offsets", 1)
    return {"list_offsets": keys}


def fetch(world: World) -> dict[str, Any]:
    """Records from an offset, at once."""
    dice = world.dice
    keys, name, number, log = _place(world)
    keys["offset"] = _near(world, log)
    for key in ("partition_max_bytes", "max_bytes"):
        limit = dice.pick(_LIMITS)
        if limit != _LIMITS[0]:
            keys[key] = limit
    _with_epoch(keys, "leader_epoch", world.leader_epoch(name, number))
    if dice.one_in(5):
        keys["isolation_level"] = 1
    world.choose_version(keys, "fetch", 4)
    if "version" in keys:
        keys["version"] = min(keys["version"], _READ_VERSION)
    return {"fetch": keys}


def leader_epoch(world: World) -> dict[str, Any]:
    """Where a leader epoch ends."""
    keys, name, number, _ = _place(world)
    keys["epoch"] = world.leader_epoch(name, number)
    _with_epoch(keys, "current", world.leader_epoch(name, number))
    world.choose_version(keys, "offset_for_leader_epoch", 2)
    return {"leader_epoch": keys}


def delete_records(world: World) -> dict[str, Any]:
    """Records below an offset."""
    dice = world.dice
    keys, _, _, log = _place(world)
    # Mostly below the end: a log that is always empty says little about reads.
    low = dice.pick(log.edges[: 1 + len(log.edges) // 2])
    offset = dice.pick((low, low, low + 1, _near(world, log), -1, -2))
    if keys not in _NOWHERE:
        log.delete_below(offset)
    keys["offset"] = offset
    world.choose_version(keys, "delete_records")
    return {"delete_records": keys}
