"""The table of topic configs: what is accepted, and what stands where nothing was set.

What Kafka takes and says is measured: `topic_configs_measured.json` beside this file has what
Apache Kafka 4.3.1 answered to CreateTopics for 88 values of each config.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.broker.config import ClusterConfig
from ottla.broker.topics.config_types import refusal_of
from ottla.broker.topics.configs import (
    TOPIC_CONFIGS,
    ConfigSource,
    ConfigValue,
    Effect,
    describe,
    integer,
    refusal,
    text,
)

MEASURED = json.loads(Path(__file__).with_name("topic_configs_measured.json").read_text("utf-8"))
"""Apache Kafka 4.3.1: of each topic config, which of 88 values CreateTopics took, and what it said
of the others; `{}` stands for the value where it was said as it came."""
ONLY = {
    "cleanup.policy": (["delete", "", " delete ", "delete,delete"], ["compact", "delete,compact"]),
    "compression.type": (["producer"], ["gzip", "uncompressed", "zstd"]),
    "remote.storage.enable": (["false"], ["true"]),
    "retention.bytes": (["-1", "-2"], ["0", "1073741824"]),
    "retention.ms": (["-1", "604800000", "2592000000"], ["0", "1000", "604799999"]),
    "unclean.leader.election.enable": (["false", "FALSE"], ["true", "True"]),
}
"""What describes what happens here anyway, and what would be something else."""


def said(name, value):
    """What Kafka said of a value; None when it took it."""
    row = MEASURED["configs"][name]
    if value in row["accepted"]:
        return None
    found = [words for words, values in row["refused"].items() if value in values]
    words = found[0] if found else row["rest"]
    if not words.startswith("{}"):
        return words
    return f"Invalid value {value} for configuration {name}: {words[2:]}"


def test_there_are_the_configs_of_kafka():
    assert list(TOPIC_CONFIGS) == sorted(MEASURED["configs"])


@pytest.mark.parametrize("name", list(MEASURED["configs"]))
def test_every_value_is_read_as_kafka_reads_it(name):
    built = {"remote.storage.enable"}  # there Kafka's own broker has a word, too
    for value in MEASURED["values"]:
        got = refusal_of(TOPIC_CONFIGS[name].type, name, value) or None
        if name in built and not got:
            got = refusal({name: value}) or None
        assert got == said(name, value), value


def test_only_promises_that_are_kept_are_taken():
    assert [n for n, row in TOPIC_CONFIGS.items() if row.effect is Effect.AS_IT_IS] == list(ONLY)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (all_, _) in ONLY.items() for v in all_])
def test_a_value_that_says_what_happens_anyway_is_taken(name, value):
    assert refusal({name: value}) == ""


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (_, all_) in ONLY.items() for v in all_])
def test_a_value_that_asks_for_what_is_not_built_is_refused(name, value):
    said = refusal({name: value})
    if name == "remote.storage.enable":
        assert said == MEASURED["configs"][name]["rest"] or "Tiered Storage" in said
    else:
        assert said.startswith(f"Invalid value {value} for configuration {name}: only ")


@pytest.mark.parametrize("name", [name for name in TOPIC_CONFIGS if name not in ONLY])
def test_of_all_others_what_kafka_takes_is_taken(name):
    for value in MEASURED["configs"][name]["accepted"]:
        assert refusal({name: value}) == ""


def test_every_default_is_itself_a_value_that_can_be_set():
    config = ClusterConfig()
    defaults: dict[str, str | None] = {
        n: row.default_in(config) for n, row in TOPIC_CONFIGS.items()
    }
    assert refusal(defaults) == ""


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"nope": "1", "max.message.bytes": None}, "Null value not supported"),
        ({"segment.ms": None, "a": "1", "flush.ms": None}, "topic configs: segment.ms,flush.ms"),
        ({"min.insync.replicas": "x", "nope": "1"}, "Unknown topic config name: nope"),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            r"conflict topic config setting min.compaction.lag.ms \(10\) > max",
        ),
        ({"message.format.version": "3.0"}, "Unknown topic config name: message.format.version"),
    ],
)
def test_nulls_come_first_then_names_then_values_then_contradictions(configs, why):
    """Measured on Apache Kafka 4.3.1."""
    with pytest.raises(AssertionError, match=why):
        assert not refusal(configs), refusal(configs)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("0x1p-1", True),
        ("0X.8P0", True),
        ("+0x1.p-1d", True),
        ("0x0p0f", True),
        ("0x1p1", False),
        ("-0x1p0", False),
        ("0x1p99999", False),
        ("0x1", False),
        ("0xp1", False),
        ("0x1p", False),
        ("0x1p-1x", False),
    ],
)
def test_doubles_in_hex_are_those_of_java(text, taken):
    assert (refusal({"min.cleanable.dirty.ratio": text}) == "") is taken


@pytest.mark.parametrize("text", ["fal\u017fe", " FALSE", "False\t"])
def test_booleans_are_compared_as_java_compares(text):
    """A long s is an s to Java, where case does not count."""
    assert refusal({"preallocate": text}) == ""


@pytest.mark.parametrize("who", ["leader", "follower"])
@pytest.mark.parametrize(
    ("text", "shown"), [("*,*", "*, *"), ("*,1:1", "*, 1:1"), ("1:1,*", "1:1, *"), ("**", "**")]
)
def test_a_star_stands_alone(who, text, shown):
    """`*,*` was measured on Apache Kafka 4.3.1; here the first of a list was looked at alone."""
    name = f"{who}.replication.throttled.replicas"
    assert refusal({name: text}).startswith(f"Invalid value [{shown}] for configuration {name}: ")


@pytest.mark.parametrize("digits", [41, 5_000, 100_000])
def test_a_number_of_many_digits_is_none(digits):
    """Python refuses to read more than 4,300 digits; over the wire that stopped every node."""
    for name in ("max.message.bytes", "retention.ms", "min.cleanable.dirty.ratio"):
        assert refusal({name: "9" * digits})


def test_description_says_where_each_value_comes_from():
    settings = ClusterConfig(min_insync_replicas=2)
    values = {each.name: each for each in describe({"max.message.bytes": " 77 "}, settings)}
    assert list(values) == list(TOPIC_CONFIGS)
    expected = [
        ConfigValue("max.message.bytes", " 77 ", ConfigSource.TOPIC),  # measured: as it was written
        ConfigValue("min.insync.replicas", "2", ConfigSource.BROKER),
        ConfigValue("cleanup.policy", "delete", ConfigSource.DEFAULT),
    ]
    assert [values[each.name] for each in expected] == expected


def test_a_value_in_force_is_the_topic_s_or_the_cluster_s():
    settings = ClusterConfig(max_message_bytes=500)
    assert integer("max.message.bytes", {}, settings) == 500
    assert integer("max.message.bytes", {"max.message.bytes": " 9 "}, settings) == 9
    assert text("message.timestamp.type", {}, settings) == "CreateTime"
    own = {"message.timestamp.type": " LogAppendTime "}
    assert text("message.timestamp.type", own, settings) == "LogAppendTime"


@pytest.mark.parametrize("stored", ["", "two", "9" * 9999])
def test_a_value_that_cannot_be_read_is_as_if_nothing_had_been_said(stored):
    """Out of a log that another version wrote: an assertion stopped every node that read it."""
    settings = ClusterConfig(min_insync_replicas=2)
    assert integer("min.insync.replicas", {"min.insync.replicas": stored}, settings) == 2
    assert text("message.timestamp.type", {"message.timestamp.type": stored}, settings) == (
        "CreateTime"
    )


@pytest.mark.parametrize(("profile", "least"), [("kafka-3.9", 14), ("kafka-4.3", 1 << 20)])
def test_before_kip_1030_a_segment_may_be_tiny(profile, least):
    settings = ClusterConfig(profile=profile)
    assert refusal({"segment.bytes": str(least)}, settings) == ""
    assert refusal({"segment.bytes": str(least - 1)}, settings).endswith(f"at least {least}")
    assert integer("segment.bytes", {"segment.bytes": str(least)}, settings) == least


def test_before_kip_1030_no_time_is_too_far_ahead_and_that_is_the_default():
    name, most = "message.timestamp.after.max.ms", str(2**63 - 1)
    found = {each.name: each for each in describe({}, ClusterConfig(profile="kafka-3.9"))}
    assert found[name] == ConfigValue(name, most, ConfigSource.DEFAULT)
