"""The table of topic configs: what is accepted, and what stands where nothing was set."""

from __future__ import annotations

import pytest

from ottla.broker.config import ClusterConfig
from ottla.broker.topic_configs import (
    TOPIC_CONFIGS,
    ConfigSource,
    ConfigValue,
    describe,
    integer,
    refusal,
    text,
)

REFUSED = {
    "cleanup.policy": ["compact", "delete,compact", ""],
    "compression.type": ["gzip", "uncompressed"],
    "max.message.bytes": ["-1", "1e6", "1.5", "", "2147483648", "٣", "0x10", "--1"],
    "message.timestamp.after.max.ms": ["-1", "x", "9223372036854775808"],
    "message.timestamp.before.max.ms": ["-1", "1.5", ""],
    "message.timestamp.type": ["createtime", "CREATE_TIME", "LogAppendTime,CreateTime", ""],
    "min.insync.replicas": ["0", "-1", "two"],
    "retention.bytes": ["0", "1073741824"],
    "retention.ms": ["604800000", "0"],
    "unclean.leader.election.enable": ["true", "yes"],
}
ACCEPTED = {
    "max.message.bytes": ["0", "2147483647", " 1000 ", "+5"],
    "message.timestamp.after.max.ms": ["0", " 5 ", "9223372036854775807"],
    "message.timestamp.before.max.ms": ["0", "86400000"],
    "message.timestamp.type": ["CreateTime", " LogAppendTime "],
    "min.insync.replicas": ["1", "3"],
}


def test_every_row_is_tried_here():
    assert list(TOPIC_CONFIGS) == sorted(REFUSED)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, all_ in REFUSED.items() for v in all_])
def test_a_value_that_would_have_no_effect_or_makes_no_sense_is_refused(name, value):
    assert refusal({name: value}).startswith(f"Invalid value {value} for configuration {name}: ")


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, all_ in ACCEPTED.items() for v in all_])
def test_a_sound_value_is_accepted(name, value):
    assert refusal({name: value}) == ""


def test_every_default_is_itself_a_value_that_can_be_set():
    config = ClusterConfig()
    defaults: dict[str, str | None] = {n: row.default(config) for n, row in TOPIC_CONFIGS.items()}
    assert refusal(defaults) == ""


def test_description_says_where_each_value_comes_from():
    settings = ClusterConfig(min_insync_replicas=2)
    values = {each.name: each for each in describe({"max.message.bytes": " 77 "}, settings)}
    assert list(values) == list(TOPIC_CONFIGS)
    expected = [
        ConfigValue("max.message.bytes", "77", ConfigSource.TOPIC),
        ConfigValue("min.insync.replicas", "2", ConfigSource.BROKER),
        ConfigValue("cleanup.policy", "delete", ConfigSource.DEFAULT),
    ]
    assert [values[each.name] for each in expected] == expected


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("message.timestamp.before.max.ms", "-1", "Value must be at least 0"),
        ("message.timestamp.before.max.ms", "x", "Not a number of type LONG"),
        ("message.timestamp.after.max.ms", "9223372036854775808", "Not a number of type LONG"),
        (
            "message.timestamp.type",
            "createtime",
            "String must be one of: CreateTime, LogAppendTime",
        ),
    ],
)
def test_of_times_it_is_said_in_kafkas_words(name, value, why):
    """Measured on Apache Kafka 4.3.1."""
    assert refusal({name: value}) == f"Invalid value {value} for configuration {name}: {why}"


def test_a_number_in_force_is_the_topic_s_or_the_cluster_s():
    settings = ClusterConfig(max_message_bytes=500)
    assert integer("max.message.bytes", {}, settings) == 500
    assert integer("max.message.bytes", {"max.message.bytes": " 9 "}, settings) == 9
    assert text("message.timestamp.type", {}, settings) == "CreateTime"
    assert text("message.timestamp.type", {"message.timestamp.type": " x "}, settings) == "x"
