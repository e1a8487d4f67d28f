"""Fields that are free: of each row of the table two values that are the same, and two that are
not, if any are not."""

import pytest

from ottla.compare.free import FREE, compared, is_exact

ZERO = "00000000-0000-0000-0000-000000000000"
SOME = "6f0c2d2e-7a45-4f5b-9a0e-3c1f7f0a1b2c"
EXAMPLES = (
    ("produce", "throttle_time", (0, 900), ()),
    ("metadata", "brokers[0].host", ("a", "b"), ("a", None)),
    ("metadata", "cluster_id", ("a", "b"), ("a", None)),
    ("metadata", "controller_id", (0, 7), (7, -1)),
    ("metadata", "topics[0].partitions[0].leader_id", (0, 7), (7, -1)),
    ("metadata", "topics[0].partitions[0].isr_nodes[0]", (1, 2), (1, None)),
    ("metadata", "brokers.length", (1, 3), (1, 0)),
    ("list_offsets", "topics[0].partitions[0].leader_epoch", (0, 5), (0, -1)),
    ("fetch", "responses[0].partitions[0].records[0].partition_leader_epoch", (0, 5), (0, -1)),
    ("metadata", "topics[0].topic_id", (SOME, SOME[::-1]), (SOME, ZERO)),
    ("produce", "responses[0].partition_responses[0].error_message", ("a", "b"), ("a", None)),
    ("metadata", "topics[0].topic_authorized_operations", (1, 2), (1, None)),
    ("init_producer_id", "producer_id", (0, 4000), (0, -1)),
    ("fetch", "session_id", (1, 2), (1, 0)),
    ("create_topics", "topics[0].configs[0].value", ("a", None), ()),
)


def told(api, path, value):
    return compared(api, path, value, {}, 0)


@pytest.mark.parametrize(("api", "path", "alike", "apart"), EXAMPLES, ids=str)
def test_of_a_free_field_the_kind_is_compared(api, path, alike, apart):
    left, right = alike
    assert told(api, path, left) == told(api, path, right)
    assert not is_exact(api, path, left, {}, 0)
    if apart:
        left, right = apart
        assert told(api, path, left) != told(api, path, right)


def test_every_row_has_an_example():
    rows = {
        next(row for row in FREE if row.api in {"*", api} and row.path.fullmatch(plain))
        for api, path, _, _ in EXAMPLES
        for plain in [path.replace("[0]", "")]
    }
    assert rows == set(FREE)


def test_what_is_not_free_is_exact_unless_it_is_a_name_or_the_time():
    assert is_exact("produce", "responses[0].name", "x", {"t-1": "t"}, 0)
    assert not is_exact("produce", "responses[0].name", "t-1", {"t-1": "t"}, 0)
    time = "topics[0].partitions[0].timestamp"
    assert is_exact("list_offsets", time, 1_600_000_000_000, {}, 1_700_000_000_000)
    assert not is_exact("list_offsets", time, 1_700_000_000_001, {}, 1_700_000_000_000)
