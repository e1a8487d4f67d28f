"""A table in which a batch counts from its append on: Kafka's window of five (K-SEQUENCE).

Before KIP-360 epoch -1 had an order there, too; later any batch of that epoch is the next one of
its producer.
"""

from __future__ import annotations

import pytest

from ottla.idempotency.appended import AppendedTable
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.sessions import make_table
from ottla.log.types import BatchIdentity


@pytest.fixture
def table():
    made = make_table(RULEBOOKS["kafka-4.3"], 10)
    assert isinstance(made, AppendedTable)
    return made


def one(sequence, epoch=0):
    """A batch of one record."""
    return BatchIdentity(7, epoch, sequence, sequence)


def apply(table, batch):
    index = table.applied_index + 1
    table.apply(batch, index * 10, 5, index=index, term=1)


def append(table, *batches):
    for batch in batches:
        assert row(table, batch) in {"next", "unknown-start", "epoch-start", "without-order"}
        table.begin(batch, 1)


def row(table, batch):
    return table.decide(batch, 1).row.label


def rows(table, *batches):
    return [row(table, each) for each in batches]


def test_five_are_known_however_many_are_replicated(table):
    for n in range(3):
        apply(table, one(n))
    append(table, *(one(n) for n in (3, 4, 5)))
    told = rows(table, *(one(n) for n in range(7)))
    assert told == ["out-of-order", *["duplicate"] * 2, *["appended"] * 3, "next"]


def test_more_than_five_in_flight_push_out_the_first_of_them(table):
    apply(table, one(0))
    append(table, *(one(n) for n in range(1, 8)))
    assert rows(table, *(one(n) for n in range(8))) == ["out-of-order"] * 3 + ["appended"] * 5


@pytest.mark.parametrize("replicated", range(9))
@pytest.mark.parametrize("in_flight", range(1, 9))
def test_whatever_is_replicated_the_last_five_are_known(table, replicated, in_flight):
    for n in range(replicated):
        apply(table, one(n))
    end = replicated + in_flight
    append(table, *(one(n) for n in range(replicated, end)))
    told = ["duplicate"] * replicated + ["appended"] * in_flight
    told[:-5] = ["out-of-order"] * max(end - 5, 0)
    assert rows(table, *(one(n) for n in range(end + 1))) == [*told, "next"]


def test_a_new_epoch_begins_with_an_empty_window(table):
    apply(table, one(0))
    append(table, one(0, epoch=1))
    assert rows(table, one(0), one(0, epoch=1)) == ["stale-epoch", "appended"]


def test_before_kip_360_epoch_minus_one_has_an_order():
    """Also of batches that are replicated, and a newer epoch that does not begin at 0 is unknown:
    measured on Apache Kafka 2.4.1 (found by `ottla compare --fuzz`)."""
    table = make_table(RULEBOOKS["kafka-2.4"], 10)
    assert rows(table, one(1, epoch=-1)) == ["unknown-elsewhere"]
    for add in (apply, append):
        add(table, one(0, epoch=-1) if add is apply else one(1, epoch=-1))
        last = table.decide(one(0, epoch=-1), 1).row.label
        assert last == "duplicate"
        after = 1 if add is apply else 2
        told = rows(table, one(after, epoch=-1), one(after + 1, epoch=-1))
        assert told == ["next", "out-of-order"]
    assert rows(table, one(1, epoch=-1)) == ["appended"]
    assert rows(table, one(5, epoch=0), one(0, epoch=0)) == ["unknown-elsewhere", "unknown-start"]


def test_the_reference_knows_all_in_flight_and_five_more():
    table = make_table(RULEBOOKS["reference"], 10)
    for n in range(5):
        apply(table, one(n))
    append(table, *(one(n) for n in range(5, 11)))
    assert rows(table, *(one(n) for n in range(11))) == ["duplicate"] * 5 + ["in-flight"] * 6


def test_without_an_epoch_any_batch_but_the_last_five_is_new(table):
    append(table, *(one(n, epoch=-1) for n in range(6)))
    told = rows(table, *(one(n, epoch=-1) for n in range(6)))
    assert told == ["without-order", *["appended"] * 5]
