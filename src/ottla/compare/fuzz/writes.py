"""Draws produce requests, and tells the model what they store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ottla.compare.batches import BASE_TIMESTAMP
from ottla.compare.fuzz.batches import (
    Keys,
    draw_numbers,
    draw_records,
    draw_wrong,
    is_dated,
)
from ottla.compare.fuzz.model import LogModel
from ottla.compare.fuzz.world import ABSENT, World, at

Store: TypeAlias = Callable[[], None]
_ACKS = (-1, -1, -1, -1, -1, -1, 1, 1, 1, 0)
_ODD_ACKS = (2, -2, 7)
_LEAST_VERSION = 3
"""Older ones are advertised by Kafka, and closed."""


def produce(world: World) -> dict[str, Any]:
    """One batch to one partition."""
    name, number, log = world.place()
    batch, store = _batch(world, log)
    return _step(world, {**at(name, number), **batch}, [store])


def produce_several(world: World) -> dict[str, Any]:
    """Batches to several partitions in one request, rarely twice to the same one."""
    entries: list[Keys] = []
    stores: list[Store] = []
    taken: list[tuple[str, int]] = []
    for _ in range(world.dice.between(2, 3)):
        name, number, log = world.place()
        if (name, number) in taken and not world.dice.one_in(6):
            continue
        taken.append((name, number))
        batch, store = _batch(world, log)
        entries.append({**at(name, number), **batch})
        stores.append(store)
    return _step(world, {"to": entries}, stores)


def produce_nowhere(world: World) -> dict[str, Any]:
    """To a topic or a partition that there is not."""
    batch, _ = _batch(world, LogModel())
    places: tuple[Keys, ...] = ({"topic": ABSENT}, {"partition": 2}, {"partition": -1})
    return _step(world, {**world.dice.pick(places), **batch}, [])


def _step(world: World, keys: Keys, stores: list[Store]) -> dict[str, Any]:
    acks = world.dice.pick(_ODD_ACKS if world.dice.one_in(25) else _ACKS)
    if acks != -1:
        keys["acks"] = acks
    if acks not in _ODD_ACKS:
        for store in stores:
            store()
    world.choose_version(keys, "produce", _LEAST_VERSION)
    return {"produce": keys}


def _nothing() -> None:
    """Nothing is stored."""


def _batch(world: World, log: LogModel) -> tuple[Keys, Store]:
    """The keys of a batch, and what stores it in the model. What is wrong is not stored there: the
    model need not know better."""
    dice = world.dice
    wrong = draw_wrong(dice) if dice.one_in(6) else {}
    if "bytes" in wrong or "batches" in wrong:
        return wrong, _nothing
    store: Store
    if is_dated(wrong) or dice.one_in(4):
        count = dice.between(1, 3)
        keys = draw_records(dice, count, dated=True)
        store = partial(log.store, count)
    else:
        producer = dice.pick(world.producers)
        epoch, sent = draw_numbers(dice, log, producer)
        keys = {"producer": producer, "sequence": sent.sequence}
        if epoch:
            keys["epoch"] = epoch
        keys |= draw_records(dice, sent.records, dated=False)
        store = partial(log.idempotent, producer, epoch, sent)
    if "batch_length" in wrong.get("wrong", {}):
        # What is behind such a batch is read as another one, and the time lies there: both brokers
        # must get the same.
        keys["timestamp"] = BASE_TIMESTAMP
    return {**keys, **wrong}, _nothing if wrong else store
