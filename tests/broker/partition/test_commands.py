"""What a log may hold is looked at again: a command that is none changes nothing, on every node.

An older version let `partitions=1.5` into the controller's log, and every node that applied it
stopped, again at each start.
"""

from __future__ import annotations

import logging
from typing import cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_control import CLUSTER_ID, controller, create, leader
from broker_core_partition import PartitionDriver, outcome
from ottla import Cluster
from ottla.broker.arguments.fields import CommandError
from ottla.broker.controller import controller as controller_module
from ottla.broker.controller.catalog import Catalog
from ottla.broker.controller.commands import PlaceTopic, logged
from ottla.broker.errors import ErrorCode, RequestFailedError
from ottla.broker.partition.commands import encode_command
from ottla.raft.types import Entry, EntryKind

RESOLVED = {
    "type": "create_topic",
    "name": "t",
    "partitions": 2,
    "replication_factor": 2,
    "nodes": [1, 2, 3],
    "unheard": [],
    "configs": {},
    "assignments": None,
    "by": [1, 2, 3],
}
BAD = [
    {"partitions": 1.5},
    {"partitions": "3"},
    {"partitions": 0},
    {"partitions": 2**40},
    {"replication_factor": 4},
    {"replication_factor": "3"},
    {"name": ""},
    {"name": 7},
    {"name": "x" * 250},
    {"nodes": []},
    {"nodes": [1, 1]},
    {"nodes": None},
    {"nodes": [1, "2"]},
    {"unheard": [1, 2, 3]},
    {"unheard": [1, 1, 1]},
    {"configs": None},
    {"configs": {"min.insync.replicas": [2]}},
    {"configs": {7: "x"}},
    {"assignments": []},
    {"assignments": [[]]},
    {"assignments": [[1, 1]]},
    {"by": [1]},
    {"by": "me"},
    {"type": "drop_topic"},
    {"type": ["create_topic"]},
]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def applied(*payloads):
    """A controller that finds these commands in its log, before one that is sound."""
    driver = controller()
    good = msgpack.packb({**RESOLVED, "name": "good", "by": None})
    entries = [Entry(n, 1, EntryKind.COMMAND, each) for n, each in enumerate([*payloads, good], 1)]
    driver.receive(entries)
    driver.commit()
    return driver.machine


@pytest.mark.parametrize("fault", BAD, ids=str)
def test_a_bad_command_in_the_controllers_log_changes_nothing(fault, caplog):
    with caplog.at_level(logging.WARNING, "ottla"):
        machine = applied(msgpack.packb({**RESOLVED, **fault}))
    assert list(machine.topics) == ["good"]
    assert [part.group for part in machine.topics["good"].partitions] == [1, 2]
    (said,) = (each.getMessage() for each in caplog.records)
    assert said.startswith("The command at index 1 of the controller's log is refused: ")


@pytest.mark.parametrize("unheard", [[7, 8, 9], [2, 7, 8], [1, 2, 7, 8]], ids=str)
def test_nodes_that_are_not_heard_may_be_none_of_the_topics(unheard):
    """As many of them as there are nodes stopped every node that applied it; so did one node three
    times, which hypothesis found."""
    machine = applied(msgpack.packb({**RESOLVED, "unheard": unheard}))
    placed = machine.topics["t"].partitions
    assert not {each.replicas[0] for each in placed} & set(unheard)


@pytest.mark.parametrize("field", [each for each in RESOLVED if each not in {"unheard", "by"}])
def test_a_command_that_lacks_a_field_changes_nothing(field):
    lacking = {name: value for name, value in RESOLVED.items() if name != field}
    left = ["t", "good"] if field == "assignments" else ["good"]
    assert list(applied(msgpack.packb(lacking)).topics) == left


@pytest.mark.slow
@given(st.binary(max_size=40) | ANYTHING.map(msgpack.packb))
def test_nor_does_anything_else(payload):
    assert list(applied(payload).topics) == ["good"]


@pytest.mark.slow
@given(st.sampled_from(list(RESOLVED)), ANYTHING)
def test_every_node_takes_the_same_for_a_command(field, value):
    """Whatever one field holds, it is refused, or applied alike and read back from a snapshot."""
    payload = msgpack.packb({**RESOLVED, field: value})
    one, other = applied(payload).catalog, applied(payload).catalog
    assert one.encode() == other.encode()
    assert Catalog.decode(CLUSTER_ID, one.encode()).topics == one.topics


def test_what_older_versions_let_in_and_could_apply_still_counts():
    """Were it refused, the groups of all later partitions would have other numbers."""
    odd = {"assignments": [[1.0, 2]], "partitions": True, "configs": {"min.insync.replicas": 2}}
    machine = applied(msgpack.packb({**RESOLVED, **odd}))
    (partition,) = machine.topics["t"].partitions
    assert (partition.replicas, partition.group) == ((1, 2), 1)
    assert [type(node) for node in partition.replicas] == [int, int]
    assert machine.topics["t"].configs == {"min.insync.replicas": "2"}
    assert machine.topics["good"].partitions[0].group == 2


def test_what_the_leader_resolves_is_what_the_log_takes():
    driver = leader()
    driver.ask(create("t", partitions=3, replication_factor=2, configs={"flush.ms": "5"}))
    (entry,) = (each for each in driver.log if each.kind is EntryKind.COMMAND)
    command = logged(cast(bytes, entry.payload))
    assert isinstance(command, PlaceTopic)
    assert command.configs == {"flush.ms": "5"}
    with pytest.raises(CommandError):
        logged(b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [{"partitions": 1.5}, {"replication_factor": 9}], ids=["partitions", "factor"]
)
def test_a_cluster_with_such_a_log_runs_and_starts_again(fault, tmp_path, monkeypatch):
    """As an older version would have written it: its leader proposed what it was asked for."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        with monkeypatch.context() as patched:
            bad = {name: value for name, value in RESOLVED.items() if name != "by"}
            patched.setattr(controller_module, "pack", lambda _: msgpack.packb({**bad, **fault}))
            with pytest.raises(RequestFailedError, match="INVALID_REQUEST"):
                cluster.create_topic("t")
        cluster.create_topic("after")
        assert {each.state for each in cluster.describe().nodes.values()} == {"running"}
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        assert list(cluster.describe().topics) == ["after"]
        cluster.leader("after")


def partition_with(payload):
    """A partition that finds this command in its log, behind a batch of three records."""
    driver = PartitionDriver()
    driver.serve()
    driver.produce(count=3)
    driver.settle()
    last = len(driver.log)
    driver.receive([*driver.log, Entry(last + 1, driver.term, EntryKind.COMMAND, payload)])
    driver.commit()
    return driver


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        msgpack.packb(7),
        msgpack.packb(["expire"]),
        msgpack.packb([["expire"], []]),
        msgpack.packb(["compact", 3]),
        *(encode_command("delete_records", each) for each in (4, -1, 2.0, "3", None, 2**63)),
        *(encode_command("expire", each) for each in (3, ["x"], [[1]], [-1], [1.5], [[1, 2, 3]])),
    ],
    ids=repr,
)
def test_a_bad_command_in_a_partitions_log_changes_nothing(payload, caplog):
    with caplog.at_level(logging.WARNING, "ottla"):
        driver = partition_with(payload)
    state = driver.machine.state
    assert (state.log_start_offset, state.high_watermark) == (0, 3)
    (said,) = (each.getMessage() for each in caplog.records)
    assert "is refused, and changes nothing: " in said
    later = driver.produce()
    driver.settle()
    assert outcome(later) == (ErrorCode.NONE, 3)


@pytest.mark.slow
@given(st.binary(max_size=20) | ANYTHING.map(msgpack.packb))
def test_nor_does_anything_else_there(payload):
    assert partition_with(payload).machine.state.log_start_offset == 0


def test_a_sound_command_there_counts():
    assert partition_with(encode_command("delete_records", 3)).machine.state.log_start_offset == 3
