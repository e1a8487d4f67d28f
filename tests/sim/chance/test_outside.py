"""What no seed decides is refused while a run of the kernel goes on, wherever it is asked for.

Modules that decide meet sets without an order, in the log and in the simulator too. What a run
leaves behind is told and copied after it, so no such set may be in there.
"""

import builtins
import importlib
import operator
import os
import random
import threading
import time
import uuid
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ottla.idempotency import table as producer_table
from ottla.idempotency.table import ProducerTable
from ottla.sim.chance.outside import FrozenMembersOnly, MembersOnly, RefusedError, ordered
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml

CONFIG = RunConfig(profile="reference-strict", load_ms=500, records=10)


def a_set():
    """One as a module of ours would make it."""
    return vars(producer_table)["set"]([1, 2])


def switched(monkeypatch, instead):
    """Let the producer table ask the outside world before it decides."""
    decide = ProducerTable.decide

    def asks(self, identity, term):
        instead(self)
        return decide(self, identity, term)

    monkeypatch.setattr(ProducerTable, "decide", asks)


@pytest.mark.parametrize(
    ("asks", "what"),
    [
        (lambda _: time.monotonic(), "time.monotonic"),
        (lambda _: time.time_ns(), "time.time_ns"),
        (lambda _: time.clock_gettime(time.CLOCK_MONOTONIC), "time.clock_gettime"),
        (lambda _: time.localtime(), "time.localtime"),
        (lambda _: time.gmtime(None), "time.gmtime"),
        (lambda _: time.ctime(), "time.ctime"),
        (lambda _: time.strftime("%H"), "time.strftime"),
        (lambda _: random.random(), "random.random"),
        (lambda _: random.Random(), "random.Random() without a seed"),
        (lambda _: uuid.uuid4(), "uuid.uuid4"),
        (lambda _: threading.Thread(target=int).start(), "Thread.start"),
        (lambda _: vars(builtins)["open"](__file__), "builtins.open"),
        (lambda _: Path(__file__).read_bytes(), "io.open"),
        (lambda _: list(Path("/").iterdir()), "os."),
        (lambda _: os.getpid(), "os.getpid"),
        (lambda _: os.uname(), "os.uname"),
        (lambda _: list(a_set()), "going through a set"),
        (lambda _: a_set().pop(), "going through a set"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_deciding_code_that_asks_the_outside_world_fails_the_run(monkeypatch, asks, what):
    # The name that a module of ours would use; while a run goes on it stands for something else.
    monkeypatch.setattr(producer_table, "set", set, raising=False)
    switched(monkeypatch, asks)
    outcome = run(3, CONFIG)
    assert outcome.verdict is Verdict.FAILED
    assert f"RefusedError: {what}" in outcome.reason
    assert __file__ in outcome.reason


@pytest.mark.parametrize(
    ("bound", "asks", "what"),
    [
        (time.time, lambda now: now(), "time.time"),
        (uuid.uuid4, lambda make: make(), "uuid.uuid4"),
        (random.getrandbits, lambda draw: draw(8), "random.getrandbits"),
        (datetime, lambda kind: kind.now(UTC), "datetime.now"),
        (datetime, lambda kind: kind.today(), "datetime.today"),
        (date, lambda kind: kind.today(), "date.today"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_deciding_code_bound_before_the_run_is_refused_too(monkeypatch, bound, asks, what):
    monkeypatch.setattr(producer_table, "bound", bound, raising=False)
    switched(monkeypatch, lambda _: asks(vars(producer_table)["bound"]))
    outcome = run(3, CONFIG)
    assert outcome.verdict is Verdict.FAILED
    assert f"RefusedError: {what}" in outcome.reason
    assert vars(producer_table)["bound"] is bound


def test_a_date_that_is_told_is_one(monkeypatch):
    told = datetime(2026, 11, 23, tzinfo=UTC)
    monkeypatch.setattr(producer_table, "bound", datetime, raising=False)
    same = []

    def asks(_):
        kind = vars(producer_table)["bound"]
        made = kind.fromtimestamp(told.timestamp(), UTC)
        same.append(made == told and isinstance(told, kind) and type(made) is datetime)

    switched(monkeypatch, asks)
    assert run(3, CONFIG).verdict is Verdict.OK
    assert set(same) == {True}


def test_a_time_that_is_told_may_be_taken_apart(monkeypatch):
    told = []
    switched(monkeypatch, lambda _: told.append(time.strftime("%Y", time.gmtime(0))))
    assert run(3, CONFIG).verdict is Verdict.OK
    assert set(told) == {"1970"}


def test_the_outside_world_is_there_again_afterwards(monkeypatch):
    switched(monkeypatch, lambda _: time.time())
    assert run(3, CONFIG).verdict is Verdict.FAILED
    assert time.time() > 0
    assert random.random() < 1
    assert vars(producer_table).get("set", set) is set


@pytest.mark.parametrize(
    "name",
    [
        *("broker.turn.barriers", "log.offset_index", "log.memory_disk", "raft.core"),
        *("sim.chance.choices", "sim.world.clocks", "sim.world.disks", "sim.world.frames"),
        *("sim.world.kernel", "sim.world.life", "sim.ending.probes", "sim.settings.swarm"),
        *("sim.world.reference_model", "sim.world.listener"),
    ],
)
def test_whoever_decides_meets_sets_without_order(name):
    module = importlib.import_module(f"ottla.{name}")
    before = {each: vars(module).get(each) for each in ("set", "frozenset")}
    with ordered():
        for each in before:
            made = vars(module)[each]([1, 2])
            with pytest.raises(RefusedError, match=f"going through a {each}"):
                list(made)
    assert all(vars(module)[each] in {was, set, frozenset} for each, was in before.items())


def test_the_configuration_that_a_seed_drew_is_read_after_the_run():
    """It is told and copied then; a set that lists no members could not be."""
    config = run(3, CONFIG).config
    assert list(config.said) == []
    assert from_toml(config.told()) == config


OTHER = {2, 3}
MADE = {
    "copy": lambda one: one.copy(),
    "union": lambda one: one.union([3], (4,)),
    "difference": lambda one: one.difference(OTHER),
    "intersection": lambda one: one.intersection(OTHER),
    "symmetric_difference": lambda one: one.symmetric_difference(OTHER),
    "|": lambda one: one | OTHER,
    "-": lambda one: one - OTHER,
    "&": lambda one: one & OTHER,
    "^": lambda one: one ^ OTHER,
}


@pytest.mark.parametrize("kind", [MembersOnly, FrozenMembersOnly])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_made_of_a_set_without_order_has_none_either(kind, make):
    made = make(kind([1, 2]))
    assert type(made) is kind
    assert made == make({1, 2})
    with pytest.raises(RefusedError, match="going through a"):
        list(made)


@pytest.mark.parametrize("combine", [operator.or_, operator.sub, operator.and_, operator.xor])
@pytest.mark.parametrize(("kind", "plain"), [(MembersOnly, set), (FrozenMembersOnly, frozenset)])
def test_nor_has_what_is_made_with_one_on_the_right(kind, plain, combine):
    made = combine(plain(OTHER), kind([1, 2]))
    assert type(made) is kind
    assert made == combine(plain(OTHER), {1, 2})
    with pytest.raises(TypeError, match="unsupported operand"):
        combine(kind([1]), [2])
