"""The configs a topic can have: one table, and nothing in it that has no meaning here.

A name is in the table if it changes what Ottla does, or if the one value it accepts describes what
Ottla does anyway (records are kept until DeleteRecords, timestamps are the producer's): tools set
such values explicitly, and a value that would promise something else is refused with INVALID_CONFIG
instead of being stored and ignored. Values are strings, as on the wire and in the controller's log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.broker.config import ClusterConfig

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
LOG_APPEND_TIME = "LogAppendTime"


class ConfigSource(IntEnum):
    """Where a value comes from (Kafka's DescribeConfigs; CreateTopics v5 answers use it too)."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5


class TopicConfig(NamedTuple):
    """One row: what a config is called, what it may be, and what it is when nobody says."""

    name: str
    meaning: str
    default: Callable[[ClusterConfig], str]
    refusal: Callable[[str], str]
    """Why a value is not accepted; empty when it is."""


class ConfigValue(NamedTuple):
    """A topic's config as it stands."""

    name: str
    value: str
    source: ConfigSource


def whole_number(text: str) -> int | None:
    """A decimal integer as Kafka parses one; None if it is none."""
    digits = text.strip()
    unsigned = digits[1:] if digits[:1] in {"-", "+"} else digits
    return int(digits) if unsigned.isascii() and unsigned.isdigit() else None


def _integer(least: int) -> Callable[[str], str]:
    def refusal(text: str) -> str:
        value = whole_number(text)
        if value is None or value > _INT32_MAX:
            return "it must be a 32 bit integer"
        return "" if value >= least else f"it must be at least {least}"

    return refusal


def _long(text: str) -> str:
    value = whole_number(text)
    if value is None or not -_INT64_MAX <= value <= _INT64_MAX:
        return "Not a number of type LONG"
    return "" if value >= 0 else "Value must be at least 0"


def _one_of(*names: str) -> Callable[[str], str]:
    def refusal(text: str) -> str:
        return "" if text.strip() in names else f"String must be one of: {', '.join(names)}"

    return refusal


def _only(accepted: str, because: str) -> Callable[[str], str]:
    def refusal(text: str) -> str:
        return "" if text.strip() == accepted else f"only {accepted} is supported: {because}"

    return refusal


def _always(value: str) -> Callable[[ClusterConfig], str]:
    return lambda _: value


TOPIC_CONFIGS: Mapping[str, TopicConfig] = {
    row.name: row
    for row in (
        TopicConfig(
            "cleanup.policy",
            "What happens to old records: they go when the log start moves.",
            _always("delete"),
            _only("delete", "logs are not compacted"),
        ),
        TopicConfig(
            "compression.type",
            "Batches are stored as the producer compressed them.",
            _always("producer"),
            _only("producer", "the broker never compresses again"),
        ),
        TopicConfig(
            "max.message.bytes",
            "Largest record batch that is accepted, in bytes.",
            lambda config: str(config.max_message_bytes),
            _integer(0),
        ),
        TopicConfig(
            "message.timestamp.after.max.ms",
            "How far ahead of the broker's clock a record's time may be.",
            _always("3600000"),
            _long,
        ),
        TopicConfig(
            "message.timestamp.before.max.ms",
            "How far behind the broker's clock a record's time may be: as far as it likes.",
            _always(str(_INT64_MAX)),
            _long,
        ),
        TopicConfig(
            "message.timestamp.type",
            "Record timestamps are those the producer set, or the time of the append.",
            _always("CreateTime"),
            _one_of("CreateTime", LOG_APPEND_TIME),
        ),
        TopicConfig(
            "min.insync.replicas",
            "With acks=all: how many replicas must be in sync, before the append and the answer.",
            lambda config: str(config.min_insync_replicas),
            _integer(1),
        ),
        TopicConfig(
            "retention.bytes",
            "How large a partition may grow before old records go: without limit.",
            _always("-1"),
            _only("-1", "records stay until they are deleted"),
        ),
        TopicConfig(
            "retention.ms",
            "How long records are kept: without limit.",
            _always("-1"),
            _only("-1", "records stay until they are deleted"),
        ),
        TopicConfig(
            "unclean.leader.election.enable",
            "Whether a replica that lacks committed records may lead: never.",
            _always("false"),
            _only("false", "a leader is elected by a majority that has every committed record"),
        ),
    )
}
"""All of them, in the order of their names."""


def refusal(configs: Mapping[str, str | None]) -> str:
    """Why these configs cannot be set on a topic (INVALID_CONFIG); empty when they can."""
    for name, value in configs.items():
        row = TOPIC_CONFIGS.get(name)
        if row is None:
            return f"Unknown topic config name: {name}"
        if value is None:
            return f"Null value not supported for topic configs: {name}"
        why = row.refusal(value)
        if why:
            return f"Invalid value {value} for configuration {name}: {why}"
    return ""


def describe(configs: Mapping[str, str], settings: ClusterConfig) -> list[ConfigValue]:
    """Every config of a topic that set `configs`, by name, with the value in force."""
    plain = ClusterConfig()
    values = []
    for row in TOPIC_CONFIGS.values():
        default = row.default(settings)
        if row.name in configs:
            value = ConfigValue(row.name, configs[row.name].strip(), ConfigSource.TOPIC)
        elif default != row.default(plain):
            value = ConfigValue(row.name, default, ConfigSource.BROKER)
        else:
            value = ConfigValue(row.name, default, ConfigSource.DEFAULT)
        values.append(value)
    return values


def text(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> str:
    """The value in force of a config, such as `message.timestamp.type`."""
    return configs.get(name, TOPIC_CONFIGS[name].default(settings)).strip()


def integer(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> int:
    """The value in force of a numeric config, such as `max.message.bytes`."""
    value = whole_number(configs.get(name, TOPIC_CONFIGS[name].default(settings)))
    assert value is not None, f"{name} of a topic is {configs.get(name)!r}, which is no number"
    return value
