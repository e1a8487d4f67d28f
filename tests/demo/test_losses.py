"""Lost records are explained by the truncation that removed them, and by nothing less."""

from ottla.demo.ledger import Ack
from ottla.demo.losses import Dropped, explain, groups, told


def dropped(value, **changes):
    """Node 1's entry of term 1, replaced by node 2's log in term 2."""
    parts = {
        "at": 5_000,
        "partition": 0,
        "node": 1,
        "value": value,
        "offset": 10,
        "index": 4,
        "term": 1,
        "new_leader": 2,
        "new_term": 2,
    }
    return Dropped(**(parts | changes))


def test_a_lost_record_is_recognised_in_a_truncation():
    found = dropped(b"v")
    (loss,) = explain([(0, Ack(b"v", 10))], [dropped(b"w"), found])
    assert loss.explained
    assert loss.dropped == found


def test_another_partition_value_or_offset_explains_nothing():
    candidates = [dropped(b"v", partition=1), dropped(b"w"), dropped(b"v", offset=11)]
    (loss,) = explain([(0, Ack(b"v", 10))], candidates)
    assert not loss.explained


def test_without_an_offset_the_value_decides():
    (loss,) = explain([(0, Ack(b"v", None))], [dropped(b"v", offset=11)])
    assert loss.explained


def test_losses_are_grouped_by_truncation_in_order_of_time():
    candidates = [
        dropped(b"c", at=9_000, term=3, new_term=4),
        dropped(b"a"),
        dropped(b"b", offset=11, index=5),
    ]
    losses = explain([(0, Ack(each.value, each.offset)) for each in candidates], candidates)
    first, second = groups(losses)
    assert (first.records, first.offsets, first.indexes) == (2, (10, 11), (4, 5))
    assert (second.records, second.term, second.new_term) == (1, 3, 4)
    assert told(first) == (
        "partition 0: 2 records at offsets 10 to 11 were appended by node 1, leader of term 1, as "
        "its entries 4 to 5; the log of node 2, leader of term 2, replaced them"
    )


def test_what_is_not_explained_is_in_no_group():
    assert groups(explain([(0, Ack(b"v", 10))], [])) == []
