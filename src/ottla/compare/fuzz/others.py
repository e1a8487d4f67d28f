"""Draws requests about topics, producer ids and brokers, and frames that are none.

Topics are only made where that is refused or tried (`validate_only`): a topic takes a broker some
time, and comes and goes for its clients when the broker likes.
"""

from __future__ import annotations

from typing import Any

from ottla.compare.fuzz.world import ABSENT, World

_NAMES: tuple[list[str], ...] = (
    ["t"],
    ["u"],
    ["t", "u"],
    ["u", "t", ABSENT],
    [ABSENT],
    [],
    ["t", "t"],
    ["a b"],
)
_REFUSED: tuple[dict[str, Any], ...] = (
    {"name": "t"},
    {"name": "a b"},
    {"name": ABSENT, "partitions": 0},
    {"name": ABSENT, "partitions": -2},
    {"name": ABSENT, "replication_factor": 0},
    {"name": ABSENT, "replication_factor": 9},
    {"name": ABSENT, "configs": {"no.such.config": "1"}},
    {"name": ABSENT, "configs": {"max.message.bytes": "many"}},
    {"name": ABSENT, "configs": {"min.insync.replicas": "0"}},
    {"topics": [{"name": ABSENT}, {"name": ABSENT}]},
    {"topics": []},
)
_TRIED: tuple[dict[str, Any], ...] = (
    {"name": ABSENT},
    {"name": ABSENT, "partitions": 3},
    {"name": ABSENT, "partitions": -1, "replication_factor": -1},
    {"name": ABSENT, "configs": {"message.timestamp.type": "LogAppendTime"}},
)
_IDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"producer": 7},
    {"epoch": 0},
    {"producer": 7, "epoch": 0},
    {"producer": -1, "epoch": 3},
    {"transactional_id": ""},
)
_VERSIONS_ASKED: tuple[dict[str, Any], ...] = (
    {"version": 3, "software_name": ""},
    {"version": 3, "software_name": "a b"},
    {"version": 3, "software_version": ""},
)
_FRAMES: tuple[dict[str, Any], ...] = (
    {"request": {"key": 999, "version": 0}},
    {"request": {"key": -1, "version": 0}},
    {"request": {"api": "metadata", "version": 99, "body": "", "unserved": True}},
    {"request": {"api": "fetch", "version": 99, "body": "", "unserved": True}},
    {"request": {"api": "produce", "version": 99, "body": "", "unserved": True}},
    {
        "request": {
            "api": "api_versions",
            "version": 99,
            "body": "",
            "unserved": True,
            "answered_in": 0,
        }
    },
    {"request": {"api": "list_offsets", "version": 2, "body": "ff"}},
    {"raw": "00000000"},
    {"raw": "ffffffff"},
    {"text": "GET / HTTP/1.1\r\n\r\n"},
)
"""What closes a connection, or is answered all the same."""


def metadata(world: World) -> dict[str, Any]:
    """Topics that there are, and some that there are not."""
    keys: dict[str, Any] = {"topics": list(world.dice.pick(_NAMES))}
    # Before version 4 a topic that there is not is made, and before 1 no names mean all topics.
    there = keys["topics"] and set(keys["topics"]) <= {"t", "u"}
    world.choose_version(keys, "metadata", 0 if there else 4)
    return {"metadata": keys}


def create_topics(world: World) -> dict[str, Any]:
    """Topics that cannot be made, or are only tried."""
    if world.dice.one_in(2):
        keys = {**world.dice.pick(_TRIED), "validate_only": True}
    else:
        keys = dict(world.dice.pick(_REFUSED))
    world.choose_version(keys, "create_topics", 2)
    return {"create_topics": keys}


def delete_topics(world: World) -> dict[str, Any]:
    """Topics that there are not."""
    keys: dict[str, Any] = {"topics": world.dice.pick(([ABSENT], []))}
    world.choose_version(keys, "delete_topics", 1)
    return {"delete_topics": keys}


def init_producer_id(world: World) -> dict[str, Any]:
    """A producer id that no later step uses."""
    keys = dict(world.dice.pick(_IDS))
    world.choose_version(keys, "init_producer_id")
    return {"init_producer_id": keys}


def api_versions(world: World) -> dict[str, Any]:
    """Versions, asked for in a way that is refused: the lists of two brokers always differ."""
    return {"api_versions": dict(world.dice.pick(_VERSIONS_ASKED))}


def describe_cluster(world: World) -> dict[str, Any]:
    """The brokers."""
    keys: dict[str, Any] = {}
    world.choose_version(keys, "describe_cluster")
    return {"describe_cluster": keys}


def frame(world: World) -> dict[str, Any]:
    """A frame that is no request, or has bytes too many or too few."""
    dice = world.dice
    if dice.one_in(2):
        return dict(dice.pick(_FRAMES))
    keys: dict[str, Any] = {"timestamp": -1}
    keys |= dice.pick(({"tail_frame": "0102030405"}, {"cut_frame": 1}, {"cut_frame": 20}))
    return {"list_offsets": keys}
