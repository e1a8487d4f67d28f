"""Nothing that a user types stops a node: what is no sensible value is refused where it is written.

`create_topic("t", partitions=1.5)`, `configs={"min.insync.replicas": 2}`, `partitions="3"` stopped
one node after the other: the one that applied the command, and with each retry the next.
"""

from __future__ import annotations

import asyncio
import decimal
import enum
import math
from fractions import Fraction
from inspect import signature
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla import Cluster, DiskFault, OttlaError, Topic
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ConfigError, RequestFailedError
from ottla.log.build import build_batch


class Colour(enum.StrEnum):
    RED = "red"


class Unprintable:
    def __repr__(self):
        raise RuntimeError("not for your eyes")


ODD = st.one_of(
    st.sampled_from(
        [
            *(
                None,
                True,
                False,
                0,
                -1,
                1,
                2,
                3,
                1.0,
                1.5,
                2.5,
                -0.0,
                math.nan,
                math.inf,
                -math.inf,
            ),
            *(10**30, -(10**30), 2**31, 2**63, 10**5000, 1e300, 3 + 0j, Fraction(1, 3)),
            *(
                decimal.Decimal("1.5"),
                "",
                " ",
                "3",
                "t",
                "odd",
                "1.5",
                "a b",
                "\ud800",
                "x" * 10_000,
            ),
            *("\0", "t:1", "..", b"t", bytearray(b"t"), [], [1], [[1]], [[1, 1]], [["1"]], {}, ()),
            *(
                {"min.insync.replicas": 2},
                {"retention.ms": -1},
                {"flush.ms": True},
                {7: 7},
                {"": ""},
            ),
            *({"preallocate": True}, {"max.message.bytes": "9" * 5000}, {"retention.ms": 10**40}),
            *({"cleanup.policy": "compact"}, {"min.insync.replicas": None}, {"nope": object()}),
            *(
                Colour.RED,
                Colour,
                object(),
                Unprintable(),
                len,
                Topic("u"),
                DiskFault.FULL,
                Path("x"),
            ),
            *(range(3), iter([1]), {1, 2}, frozenset(), Ellipsis, NotImplemented, type),
        ]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.integers(-2, 5) | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
)
QUICK = st.sampled_from([0, 0.01])
"""A wait that may be in vain is not a long one."""
CALLS = {
    "create_topic": (
        "name",
        "partitions",
        "replication_factor",
        "configs",
        "assignment",
        "timeout",
    ),
    "delete_topic": ("name", "timeout"),
    "leader": ("topic", "partition", "timeout"),
    "transfer_leadership": ("topic", "partition", "to", "timeout"),
    "kill": ("node",),
    "restart": ("node",),
    "pause": ("node",),
    "resume": ("node",),
    "isolate": ("node",),
    "heal": ("node",),
    "cut_connections": ("node",),
    "break_disk": ("node", "fault"),
    "mend_disk": ("node",),
}
MADE_OF = [*signature(Cluster).parameters][:-1]
"""What a cluster is made of beside its settings."""
GOOD = {
    "name": st.sampled_from(["t", "odd"]),
    "topic": st.sampled_from(["t", "odd"]),
    "partitions": st.just(1),
    "partition": st.just(0),
    "timeout": QUICK,
    "fault": st.sampled_from(["stalled", DiskFault.STALLED]),
    "node": st.just(9),
    "to": st.just(9),
}


@st.composite
def calls(draw):
    """A method and arguments, one or two of them odd, the others left out or good."""
    method = draw(st.sampled_from(list(CALLS)))
    names = CALLS[method]
    odd = draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))
    arguments = {}
    for name in names:
        if name in odd and name != "timeout":
            arguments[name] = draw(ODD)
        elif name in GOOD:
            arguments[name] = draw(GOOD[name])
    if method in {"kill", "pause", "isolate"}:
        # A node that there is would be gone for good reason.
        node = arguments["node"]
        arguments["node"] = -1 if type(node) is int else node
    return method, arguments


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=3, topics=["t"], max_partitions_per_topic=5) as cluster:
        yield cluster


def refused(call, **arguments):
    """In which words a call was refused; empty when it was not. Other exceptions get out."""
    try:
        call(**arguments)
    except OttlaError as error:
        return str(error)
    return ""


def restore(cluster):
    """What a call was allowed to do is undone."""
    for node in (1, 2, 3):
        cluster.mend_disk(node)
    cluster.heal()
    for name in cluster.describe().topics:
        if name != "t":
            cluster.delete_topic(name)


@pytest.mark.slow
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_odd_values_end_in_a_documented_exception_and_stop_no_node(cluster, call):
    method, arguments = call
    required = {"name", "topic", "to", "node", "fault"} & set(CALLS[method]) - {*arguments}
    words = refused(getattr(cluster, method), **arguments, **dict.fromkeys(required))
    assert "\n" not in words.split("\ncluster ")[0]
    restore(cluster)
    assert [each.state for each in cluster.describe().nodes.values()] == ["running"] * 3


def test_and_a_topic_can_still_be_created(cluster):
    cluster.create_topic("after", partitions=2)
    cluster.delete_topic("after")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MADE_OF), ODD)
def test_a_cluster_of_odd_arguments_is_made_or_refused_in_one_line(name, value):
    words = refused(Cluster, **{name: value})
    assert not words or name in words
    assert "\n" not in words


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(ClusterConfig.__dataclass_fields__)), ODD)
def test_so_is_one_of_odd_settings(name, value):
    words = refused(Cluster, **{name: value})
    assert not words or name in words
    assert "\n" not in words


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"partitions": 1.5}, "partitions is 1.5; a whole number from -1 to 2147483647 is wanted"),
        ({"partitions": "3"}, "partitions is '3'; a whole number from -1 to"),
        ({"partitions": True}, "partitions is True; a whole number from -1 to"),
        ({"partitions": 2**31}, "partitions is 2147483648; -1 to 2147483647 are possible"),
        ({"replication_factor": "3"}, "replication_factor is '3'; a whole number"),
        ({"name": b"t"}, "name is b't'; a text is wanted"),
        ({"configs": ["x"]}, "configs is ['x']; a dict of names and values is wanted"),
        (
            {"configs": {"min.insync.replicas": 2.5}},
            "configs['min.insync.replicas'] is 2.5; a whole number is wanted",
        ),
        (
            {"configs": {"min.insync.replicas": True}},
            "configs['min.insync.replicas'] is True; a whole number is wanted",
        ),
        ({"configs": {"preallocate": 1}}, "configs['preallocate'] is 1; True or False is wanted"),
        ({"configs": {"nope": None}}, "configs['nope'] is None; a text or a number is wanted"),
        ({"assignment": [1, 2]}, "assignment[0] is 1; a list of nodes is wanted"),
        ({"assignment": [["1"]]}, "assignment[0] is '1'; a whole number"),
        ({"assignment": [{1, 2}]}, "assignment[0] is {1, 2}, which has no order; a list of nodes"),
        ({"assignment": {1: 2}.keys()}, "assignment is dict_keys([1]), which has no order; a list"),
        (
            {"configs": {"max.message.bytes": 10**100}},
            "configs['max.message.bytes'] is 10000000000000000000000000000000000",
        ),
        ({"timeout": "5"}, "timeout is '5'; a number is wanted"),
        ({"timeout": math.nan}, "timeout is nan; 0 to inf are possible"),
        ({"timeout": -1}, "timeout is -1; 0 to inf are possible"),
    ],
    ids=str,
)
def test_the_argument_is_named_and_what_it_takes(cluster, arguments, said):
    with pytest.raises(ConfigError) as refused:
        cluster.create_topic(**{"name": "t", **arguments})
    assert str(refused.value).startswith(said)


def test_a_number_is_taken_where_a_person_would_write_one(cluster):
    configs = {"min.insync.replicas": 2, "preallocate": True, "min.cleanable.dirty.ratio": 0.5}
    cluster.create_topic("numbers", replication_factor=3, configs=configs, timeout=math.inf)
    cluster.delete_topic("numbers")


def test_what_kafka_refuses_is_answered_with_its_code(cluster):
    for configs in ({"nope": 1}, {"min.insync.replicas": 0}, {"max.message.bytes": "9" * 5000}):
        with pytest.raises(RequestFailedError, match="INVALID_CONFIG"):
            cluster.create_topic("t2", configs=configs)
    # It was told the range of 64 bits, which is not that of the config.
    with pytest.raises(RequestFailedError, match=r"max\.message\.bytes: Not a number of type INT"):
        cluster.create_topic("t2", configs={"max.message.bytes": 10**30})
    with pytest.raises(RequestFailedError, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("t2", replication_factor=0)


def test_a_fault_of_a_disk_may_be_a_word(cluster):
    cluster.break_disk(1, "stalled")
    assert list(cluster.events)[-1].kind == "disk stalled"
    cluster.mend_disk(1)
    cluster.break_disk(1, "STALLED")
    cluster.mend_disk(1)
    with pytest.raises(ConfigError, match="fault: there is no stuck; there are stalled, failed"):
        cluster.break_disk(1, "stuck")
    with pytest.raises(ConfigError, match="fault is 7; one of stalled, failed, full is wanted"):
        cluster.break_disk(1, 7)


@pytest.mark.parametrize("rule", ["cut", "hold", "release", "isolate", "heal"])
@pytest.mark.parametrize("node", [0, 4, "1", 1.0, True, [1]], ids=repr)
def test_a_rule_about_a_node_that_is_not_there_is_no_rule(rule, node):
    network = AsyncCluster(3).network
    nodes = (1, node) if rule in {"cut", "hold", "release"} else (node,)
    with pytest.raises(ConfigError):
        getattr(network, rule)(*nodes)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ODD, st.sampled_from(["topic", "partition", "batch", "acks", "timeout"]))
def test_stages_are_begun_or_refused(value, odd):
    good = {"topic": "t", "partition": 0, "batch": build_batch([b"x"]), "acks": 1, "timeout": 1}

    async def main():
        async with Cluster(nodes=1, topics=["t"]) as cluster:
            try:
                stages = cluster.replicate_in_stages(**{**good, odd: value})
            except OttlaError:
                pass
            else:
                await stages.replicated
            assert cluster.describe().nodes[1].state == "running"

    asyncio.run(main())
