"""Commands of the controller as values, and their bytes in the log.

The bytes are those that the versions before commands were values have written: a log that one of
them began goes on, and nodes of both read the same in it.
"""

from __future__ import annotations

from typing import get_args

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_control import controller, create, leader
from ottla.broker.controller.commands import Logged, PlaceTopic, logged, pack
from ottla.broker.turn.commands import AllocateProducerIds, CreateTopic, DeleteTopic
from ottla.raft.types import EntryKind

NODES = (1, 2, 3)
WRITTEN: list[tuple[Logged, str]] = [
    (
        PlaceTopic("t", 2, 2, NODES, {"flush.ms": "5", "cleanup.policy": "delete"}, by=(2, 77, 1)),
        (
            "89a474797065ac6372656174655f746f706963a46e616d65a174a7636f6e6669677382a8666c7573"
            "682e6d73a135ae636c65616e75702e706f6c696379a664656c657465aa706172746974696f6e7302"
            "b27265706c69636174696f6e5f666163746f7202a56e6f64657393010203a7756e686561726490ab"
            "61737369676e6d656e7473c0a2627993024d01"
        ),
    ),
    (
        PlaceTopic("t", 1, 3, NODES, {}),
        (
            "88a474797065ac6372656174655f746f706963a46e616d65a174a7636f6e6669677380aa70617274"
            "6974696f6e7301b27265706c69636174696f6e5f666163746f7203a56e6f64657393010203a7756e"
            "686561726490ab61737369676e6d656e7473c0"
        ),
    ),
    (
        PlaceTopic("t", 1, 1, NODES, {}, unheard=(3,)),
        (
            "88a474797065ac6372656174655f746f706963a46e616d65a174a7636f6e6669677380aa70617274"
            "6974696f6e7301b27265706c69636174696f6e5f666163746f7201a56e6f64657393010203a7756e"
            "68656172649103ab61737369676e6d656e7473c0"
        ),
    ),
    (
        PlaceTopic("t", 2, 2, NODES, {}, assignments=((1, 2), (2, 3)), by=(1, 5, 2**40)),
        (
            "88a474797065ac6372656174655f746f706963a46e616d65a174a7636f6e6669677380aa70617274"
            "6974696f6e7302b27265706c69636174696f6e5f666163746f7202a56e6f64657393010203ab6173"
            "7369676e6d656e747392920102920203a26279930105cf0000010000000000"
        ),
    ),
    (
        DeleteTopic("old", by=(3, 1, 9)),
        (
            "84a474797065ac64656c6574655f746f706963a46e616d65a36f6c64a8746f7069635f6964c0a262"
            "7993030109"
        ),
    ),
    (
        DeleteTopic(topic_id=bytes.fromhex("8c6de92fd23e88b58f0c66b5ae3f87e0")),
        (
            "83a474797065ac64656c6574655f746f706963a46e616d65c0a8746f7069635f6964c4108c6de92f"
            "d23e88b58f0c66b5ae3f87e0"
        ),
    ),
    (
        AllocateProducerIds(2),
        "82a474797065b5616c6c6f636174655f70726f64756365725f696473a46e6f646502",
    ),
]
SMALL = st.integers(1, 2**31 - 1)
NODE_LISTS = st.lists(SMALL, min_size=1, max_size=4, unique=True).map(tuple)
ORIGINS = st.none() | st.tuples(SMALL, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
TEXTS = st.text(min_size=1, max_size=9)
COMMANDS = (
    st.builds(
        PlaceTopic,
        TEXTS,
        st.integers(1, 1 << 20),
        st.just(1),
        NODE_LISTS,
        st.dictionaries(TEXTS, TEXTS),
        by=ORIGINS,
    )
    | st.builds(
        PlaceTopic,
        TEXTS,
        st.integers(1, 9),
        SMALL,
        NODE_LISTS,
        st.dictionaries(TEXTS, TEXTS),
        assignments=st.lists(NODE_LISTS, min_size=1, max_size=3).map(tuple),
        by=ORIGINS,
    )
    | st.builds(DeleteTopic, TEXTS, st.none(), ORIGINS)
    | st.builds(DeleteTopic, st.none(), st.binary(min_size=16, max_size=16), ORIGINS)
    | st.builds(AllocateProducerIds, SMALL, ORIGINS)
)


@pytest.mark.parametrize(("command", "written"), WRITTEN, ids=lambda part: type(part).__name__)
def test_the_bytes_in_the_log_are_those_of_earlier_versions(command, written):
    assert pack(command).hex() == written
    assert logged(bytes.fromhex(written)) == command


def test_every_command_has_its_bytes_here():
    assert {type(command) for command, _ in WRITTEN} == set(get_args(Logged))


@pytest.mark.slow
@given(COMMANDS)
def test_what_is_packed_is_read_again(command):
    assert logged(pack(command)) == command


def written_by(driver, command, origin=None):
    """The last entry of the log after a command was asked for."""
    driver.ask(command, origin)
    entry = driver.log[-1]
    assert entry.kind is EntryKind.COMMAND
    return entry.payload.hex()


def test_a_leader_writes_these_bytes():
    configs = {"flush.ms": "5", "cleanup.policy": "delete"}
    asked = [
        (create("t", partitions=2, replication_factor=2, configs=configs), (2, 77, 1)),
        (CreateTopic("t"), None),
        (create("t", assignments=[[1, [2, 3]], [0, [1, 2]]]), (1, 5, 2**40)),
        (DeleteTopic("old"), (3, 1, 9)),
        (AllocateProducerIds(2), (2, 77, 1)),
    ]
    found = []
    for command, origin in asked:
        driver = leader()
        driver.decided(create("old"))
        found.append(written_by(driver, command, origin))
    driver = controller(unheard=(3,))
    driver.lead(term=1)
    driver.commit()
    found.append(written_by(driver, create("t")))
    assert sorted(found) == sorted(
        bytes_ for command, bytes_ in WRITTEN if command != WRITTEN[5][0]
    )


def test_a_leader_writes_the_id_of_a_topic():
    driver = leader()
    driver.decided(create("old"))
    topic_id = driver.machine.topics["old"].topic_id
    found = written_by(driver, DeleteTopic(topic_id=topic_id))
    assert found == pack(DeleteTopic(topic_id=topic_id)).hex()


def test_fields_that_nobody_knows_are_left_out():
    """A newer version may write more than this one reads."""
    later = {**msgpack.unpackb(pack(AllocateProducerIds(2))), "of": "tomorrow"}
    assert logged(msgpack.packb(later)) == AllocateProducerIds(2)
