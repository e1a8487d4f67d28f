"""Statements in order: never before what they read, several at once, all ended by an error."""

import re
import threading
from collections import Counter

import pytest

from ottla.sim.studies.order import in_order, needs
from ottla.sim.studies.sheets import sheets

STATEMENTS = {
    "last": "SELECT * FROM middle m\nJOIN (SELECT x FROM first) f ON f.x = m.x",
    "middle": "SELECT * FROM first",
    "first": "SELECT x FROM ev",
    "alone": "WITH first_one AS (SELECT 1) SELECT middle.x FROM first_one",
}


class Worker:
    """An engine that is asked for nothing but how many statements it is given at once."""

    def __init__(self, at_once: int):
        self.at_once = at_once
        self.interrupted = threading.Event()

    def interrupt(self) -> None:
        self.interrupted.set()


def test_a_statement_needs_what_it_reads_from():
    assert needs(STATEMENTS) == {
        "last": {"first", "middle"},
        "middle": {"first"},
        "first": set(),
        "alone": set(),
    }


def test_tables_of_a_layer_need_only_what_is_shared():
    for layer in ("silver", "gold"):
        shared = {each.name for each in sheets(layer) if each.shared}
        found = needs({each.name: each.text for each in sheets(layer)})
        assert set.union(*found.values()) <= shared


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_none_is_done_before_what_it_reads(at_once):
    begun: list[str] = []
    done = list(in_order(Worker(at_once), STATEMENTS, begun.append))
    assert sorted(done) == sorted(begun) == sorted(STATEMENTS)
    for order in (begun, done):
        assert order.index("first") < order.index("middle") < order.index("last")


def test_as_many_are_done_at_once_as_the_engine_is_given():
    """Each waits for a second one; alone it would wait for ever."""
    together = threading.Barrier(2, timeout=30)
    statements = dict.fromkeys("abcd", "SELECT 1")
    assert set(in_order(Worker(2), statements, lambda _: together.wait())) == set("abcd")


def test_an_error_interrupts_what_is_under_way_and_begins_no_more():
    engine = Worker(2)
    begun = Counter[str]()

    def do(name):
        begun[name] += 1
        if name == "middle":
            raise ValueError(name)
        if name == "alone":
            assert engine.interrupted.wait(30)

    with pytest.raises(ValueError, match=re.escape("middle")):
        list(in_order(engine, STATEMENTS, do))
    assert begun == {"first": 1, "middle": 1, "alone": 1}
