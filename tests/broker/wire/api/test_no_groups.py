"""Consumer groups and transactions do not exist: every request that needs one is refused at once.

A client that was not answered waited, most of them without a word (`subscribe` of confluent-kafka
for ever, `close` 45 s). What clients make of the answers is in `tests/clients`.
"""

import logging

import pytest

from broker_api_world import ApiWorld
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api import find_coordinator, no_groups, table
from ottla.broker.wire.codec import API_NAMES
from ottla.broker.wire.remarks import LONGEST, MOST, Remarks
from ottla.broker.wire.translation.reading import REQUESTS

ROWS = [row for row in table.TABLE if row.module == "no_groups"]
SERVED = [(row, v) for row in ROWS for v in range(row.served[0], row.served[1] + 1)]
ONE = {"partition_index": 3, "committed_offset": 7, "committed_metadata": "", "commit_timestamp": 0}
BY_GROUP = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [3, 4]}]}]
ASKED: dict[str, dict[str, object]] = {
    "OffsetCommit": {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": [ONE, {**ONE, "partition_index": 4}]}],
    },
    "OffsetFetch": {"group_id": "g", "topics": BY_GROUP[0]["topics"], "groups": BY_GROUP},
    "JoinGroup": {"session_timeout": 1, "member_id": "", "protocol_type": "", "protocols": ()},
    "Heartbeat": {"generation_id": -1, "member_id": ""},
    "LeaveGroup": {"member_id": "", "members": ()},
    "SyncGroup": {"generation_id": -1, "member_id": "", "assignments": ()},
    "DescribeGroups": {"groups": ["g", "h"], "include_authorized_operations": False},
    "ListGroups": {"states_filter": (), "types_filter": ()},
    "DeleteGroups": {"groups_names": ["g", "h"]},
    "OffsetDelete": {"topics": ()},
    "ConsumerGroupHeartbeat": {
        "member_id": "",
        "member_epoch": 0,
        "rebalance_timeout": -1,
        "subscribed_topic_names": None,
        "server_assignor": None,
        "topic_partitions": None,
    },
    "ConsumerGroupDescribe": {"group_ids": ["g", "h"], "include_authorized_operations": False},
}
PLACES = {"OffsetCommit": 2, "DescribeGroups": 2, "DeleteGroups": 2, "ConsumerGroupDescribe": 2}
"""How many errors an answer has that has more than one; OffsetFetch has more in newer versions."""
TEXTS = {"ConsumerGroupHeartbeat": 0, "ConsumerGroupDescribe": 0, "DescribeGroups": 6}
"""Version from which on the answer has a text."""


def found(entity, name):
    """All values of a field, wherever in the answer."""
    if isinstance(entity, tuple):
        return [value for each in entity for value in found(each, name)]
    if not hasattr(entity, "__version__"):
        return []
    values = [(each, getattr(entity, each)) for each in entity.__slots__]
    return [v for each, v in values if each == name] + [
        value for each, v in values if each != name for value in found(v, name)
    ]


@pytest.mark.parametrize(
    ("row", "version"), SERVED, ids=lambda each: str(getattr(each, "name", each))
)
def test_every_version_says_so_in_every_place_it_has(row, version):
    fields = {"group_id": "g", "group_instance_id": None, **ASKED[row.name]}
    answer = ApiWorld().ask(API_NAMES[row.key], version, **fields)
    newer = row.key in {68, 69}
    code = ErrorCode.INVALID_REQUEST if newer else ErrorCode.UNSUPPORTED_VERSION
    codes = [each.value for each in found(answer, "error_code")]
    fetched = 2 + (version >= 2)
    assert codes == [code] * (fetched if row.name == "OffsetFetch" else PLACES.get(row.name, 1))
    texts = found(answer, "error_message")
    assert bool(texts) is (version >= TEXTS.get(row.name, 99))
    assert set(texts) <= {no_groups.TEXT}


@pytest.mark.parametrize("version", range(2, 10))
def test_all_offsets_of_a_group_are_refused_too(version):
    """No topics in the request: everything that was ever committed."""
    groups = [{"group_id": "g", "topics": None}]
    answer = ApiWorld().ask("offset_fetch", version, group_id="g", topics=None, groups=groups)
    assert [each.value for each in found(answer, "error_code")] == [ErrorCode.UNSUPPORTED_VERSION]
    assert found(answer, "topics")[-1] == ()


def coordinator(version, key_type, world=None):
    """The answers to one key, or to two where a version takes several."""
    world = world or ApiWorld()
    keys = {"key": "k", "coordinator_keys": ["k", "l"]}
    answer = world.ask("find_coordinator", version, key_type=key_type, **keys)
    if version < 4:
        return [answer]
    assert [each.key for each in answer.coordinators] == ["k", "l"]
    return answer.coordinators


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_looked_after_where_it_was_asked_for(version):
    """librdkafka asks for each consumer, and tells an error to those too that only assign."""
    for each in coordinator(version, find_coordinator.GROUP):
        assert (each.error_code.value, each.node_id, each.host, each.port) == (0, 1, "host1", 9001)


def test_a_node_that_is_cut_off_names_another():
    world = ApiWorld()
    world.up = world.up[1:]
    assert {each.node_id for each in coordinator(6, find_coordinator.GROUP, world)} == {2}


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize(
    ("key_type", "code", "said"),
    [
        (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "no transactions yet"),
        (2, ErrorCode.INVALID_REQUEST, "no share groups"),
        (3, ErrorCode.INVALID_REQUEST, "Unknown coordinator key type 3"),
    ],
)
def test_what_else_has_a_coordinator_is_refused_with_a_text(version, key_type, code, said):
    for each in coordinator(version, key_type):
        assert (each.error_code.value, each.node_id) == (code, -1)
        assert said in each.error_message


def test_the_log_says_so_once_for_each_client(caplog):
    world = ApiWorld()
    with caplog.at_level(logging.WARNING, "ottla"):
        for _ in range(3):
            world.ask("heartbeat", 0, group_id="g", generation_id=-1, member_id="")
            world.ask("list_groups", 0)
            coordinator(1, find_coordinator.GROUP, world)
    assert caplog.messages == [f"client 'test': {no_groups.TEXT}"]


def test_clients_that_invent_ids_neither_fill_the_log_nor_the_memory(caplog):
    remarks = Remarks()
    with caplog.at_level(logging.WARNING, "ottla"):
        for number in range(2 * MOST):
            remarks.once(f"{number} {'x' * 40_000}", "y" * 40_000)
    assert len(caplog.messages) == MOST + 1
    assert max(map(len, caplog.messages)) <= LONGEST + len("...")
    assert caplog.messages[-1].endswith("no more will be")


def test_each_api_that_needs_a_group_has_an_answer():
    """A row of the table without one would be a client that is cut off."""
    assert {REQUESTS[row.key] for row in ROWS} == set(no_groups.REFUSALS)
