"""The configs of a topic: the 33 of Apache Kafka 4.3.1, and the effect of each in Ottla.

There are three kinds of rows:

* *served*: the value changes what Ottla does, as in Kafka.
* *no effect here*: the config is about something that this broker does not have (segments, a
  cleaner, remote storage). Every value that Kafka accepts is accepted, stored, and shown as having
  no effect (`Cluster.describe`). Tools often send such configs.
* *only as it is*: a value is accepted if it describes what Ottla does anyway. A value that asks for
  something else (compaction, deletion of records after an hour) is refused with the config's name:
  a test that needs it should fail when it creates the topic, not later.

A value that Kafka refuses is refused with Kafka's message. Values are texts, as on the wire and in
the controller's log, and are stored as they were written. `docs/reference/topic-configs.md` is
generated from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import NamedTuple

from ottla.broker.config import ClusterConfig
from ottla.broker.profiles.named import profile_named
from ottla.broker.topics.config_types import (
    BOOLEAN,
    DOUBLE,
    REPLICAS,
    ConfigType,
    UnreadableError,
    int_type,
    invalid,
    list_type,
    long_type,
    refusal_of,
    string_type,
)
from ottla.log.types import Unpacked

_INT64_MAX = 2**63 - 1
_WEEK_MS = 604_800_000
_HOUR_MS = 3_600_000
_OLD_MESSAGE_BYTES = 14
"""The least that a message set of magic 0 has."""
LOG_APPEND_TIME = "LogAppendTime"
COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class Effect(Enum):
    """The effect of a config here; see the module's docstring."""

    SERVED = "served"
    NONE = "no effect here"
    AS_IT_IS = "only as it is"


class ConfigSource(IntEnum):
    """The source of a value (Kafka's DescribeConfigs; also in CreateTopics answers from v5 on)."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5


class TopicConfig(NamedTuple):
    """One row: a config's name, type, default and effect."""

    name: str
    type: ConfigType
    default: str | Callable[[ClusterConfig], str]
    effect: Effect
    meaning: str
    """What it does here, or why it has no effect."""
    promises: Callable[[Unpacked], str] = lambda _: ""
    """In a row *only as it is*: why a value that Kafka accepts is refused here; empty: it is
    not."""
    older_type: ConfigType | None = None
    """The type before KIP-1030, if it was another one."""

    def type_in(self, settings: ClusterConfig) -> ConfigType:
        """The type in a cluster of these settings."""
        older = self.older_type
        return older if older is not None and _before_kip_1030(settings) else self.type

    def default_in(self, settings: ClusterConfig) -> str:
        """The value in a cluster of these settings if the topic does not set it."""
        return self.default if isinstance(self.default, str) else self.default(settings)


class ConfigValue(NamedTuple):
    """The present value of a topic's config."""

    name: str
    value: str
    source: ConfigSource


def _before_kip_1030(settings: ClusterConfig) -> bool:
    return profile_named(settings.profile).before_kip_1030


def _only(
    accepted: Callable[[Unpacked], bool], which: str, because: str
) -> Callable[[Unpacked], str]:
    return lambda value: "" if accepted(value) else f"only {which} is supported: {because}"


def _is(accepted: object) -> Callable[[object], bool]:
    return lambda value: bool(value == accepted)


def _kept_long_enough(ms: int) -> bool:
    return ms == -1 or ms >= _WEEK_MS


_SERVED, _NONE, _AS_IT_IS = Effect.SERVED, Effect.NONE, Effect.AS_IT_IS
_NO_CLEANER = "logs are not compacted, so it has no effect"
_NO_SEGMENTS = "a log has no segments and no files of its own"
_NO_TIERS = "there is no remote storage"
_NO_QUOTAS = "replication is never throttled"
_KEPT = "records stay until DeleteRecords or DeleteTopics"

_ROWS: tuple[TopicConfig, ...] = (
    TopicConfig(
        "cleanup.policy",
        list_type("compact", "delete"),
        "delete",
        _AS_IT_IS,
        f"no record is removed to make room: {_KEPT}",
        _only(lambda value: "compact" not in value, "delete", "logs are not compacted"),
    ),
    TopicConfig(
        "compression.gzip.level",
        int_type(1, 9, besides=-1),
        "-1",
        _NONE,
        "the broker never recompresses a batch",
    ),
    TopicConfig(
        "compression.lz4.level",
        int_type(1, 17),
        "9",
        _NONE,
        "the broker never recompresses a batch",
    ),
    TopicConfig(
        "compression.type",
        string_type(*COMPRESSIONS),
        "producer",
        _AS_IT_IS,
        "batches are stored as the producer compressed them",
        _only(_is("producer"), "producer", "the broker never recompresses a batch"),
    ),
    TopicConfig(
        "compression.zstd.level",
        int_type(-131_072, 22),
        "3",
        _NONE,
        "the broker never recompresses a batch",
    ),
    TopicConfig("delete.retention.ms", long_type(0), "86400000", _NONE, _NO_CLEANER),
    TopicConfig("file.delete.delay.ms", long_type(0), "60000", _NONE, _NO_SEGMENTS),
    TopicConfig(
        "flush.messages",
        long_type(1),
        str(_INT64_MAX),
        _NONE,
        "the cluster's `flush` says when logs are synced; by default before each answer",
    ),
    TopicConfig(
        "flush.ms",
        long_type(0),
        str(_INT64_MAX),
        _NONE,
        "the cluster's `flush` says when logs are synced; by default before each answer",
    ),
    TopicConfig("follower.replication.throttled.replicas", REPLICAS, "", _NONE, _NO_QUOTAS),
    TopicConfig("index.interval.bytes", int_type(0), "4096", _NONE, _NO_SEGMENTS),
    TopicConfig("leader.replication.throttled.replicas", REPLICAS, "", _NONE, _NO_QUOTAS),
    TopicConfig("local.retention.bytes", long_type(-2), "-2", _NONE, _NO_TIERS),
    TopicConfig("local.retention.ms", long_type(-2), "-2", _NONE, _NO_TIERS),
    TopicConfig("max.compaction.lag.ms", long_type(1), str(_INT64_MAX), _NONE, _NO_CLEANER),
    TopicConfig(
        "max.message.bytes",
        int_type(0),
        lambda settings: str(settings.max_message_bytes),
        _SERVED,
        "the largest record batch that is accepted, in bytes",
    ),
    TopicConfig(
        "message.timestamp.after.max.ms",
        long_type(0),
        lambda settings: str(_INT64_MAX if _before_kip_1030(settings) else _HOUR_MS),
        _SERVED,
        "how far ahead of the broker's clock a record's time may be",
    ),
    TopicConfig(
        "message.timestamp.before.max.ms",
        long_type(0),
        str(_INT64_MAX),
        _SERVED,
        "how far behind the broker's clock a record's time may be",
    ),
    TopicConfig(
        "message.timestamp.type",
        string_type("CreateTime", LOG_APPEND_TIME),
        "CreateTime",
        _SERVED,
        "whether records have the time that the producer set, or that of the append",
    ),
    TopicConfig("min.cleanable.dirty.ratio", DOUBLE, "0.5", _NONE, _NO_CLEANER),
    TopicConfig("min.compaction.lag.ms", long_type(0), "0", _NONE, _NO_CLEANER),
    TopicConfig(
        "min.insync.replicas",
        int_type(1),
        lambda settings: str(settings.min_insync_replicas),
        _SERVED,
        "with acks=all: how many replicas must be in sync, before the append and the answer",
    ),
    TopicConfig("preallocate", BOOLEAN, "false", _NONE, _NO_SEGMENTS),
    TopicConfig("remote.log.copy.disable", BOOLEAN, "false", _NONE, _NO_TIERS),
    TopicConfig("remote.log.delete.on.disable", BOOLEAN, "false", _NONE, _NO_TIERS),
    TopicConfig(
        "remote.storage.enable",
        BOOLEAN,
        "false",
        _AS_IT_IS,
        f"{_NO_TIERS}; Kafka without it refuses `true` too",
        lambda value: (
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
            if value
            else ""
        ),
    ),
    TopicConfig(
        "retention.bytes",
        long_type(),
        "-1",
        _AS_IT_IS,
        f"{_KEPT}, however large a partition grows",
        _only(lambda value: value < 0, "-1", "records stay until they are deleted"),
    ),
    TopicConfig(
        "retention.ms",
        long_type(-1),
        str(_WEEK_MS),
        _AS_IT_IS,
        f"{_KEPT}; Kafka's default of 7 days, and what is longer, promises no more than that",
        _only(
            _kept_long_enough,
            f"-1 or at least {_WEEK_MS} (7 days)",
            "records stay until they are deleted",
        ),
    ),
    TopicConfig(
        "segment.bytes",
        int_type(1 << 20),
        str(1 << 30),
        _SERVED,
        "no batch larger than a segment is accepted (RECORD_LIST_TOO_LARGE); there are no segments",
        older_type=int_type(_OLD_MESSAGE_BYTES),
    ),
    TopicConfig("segment.index.bytes", int_type(4), "10485760", _NONE, _NO_SEGMENTS),
    TopicConfig("segment.jitter.ms", long_type(0), "0", _NONE, _NO_SEGMENTS),
    TopicConfig("segment.ms", long_type(1), str(_WEEK_MS), _NONE, _NO_SEGMENTS),
    TopicConfig(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        _AS_IT_IS,
        "a leader is elected by a majority, and has every committed record",
        _only(_is(False), "false", "a leader has every committed record"),
    ),
)
TOPIC_CONFIGS: Mapping[str, TopicConfig] = {row.name: row for row in _ROWS}
"""All configs by name, in alphabetical order."""


_PLAIN = ClusterConfig()


def refusal(configs: Mapping[str, str | None], settings: ClusterConfig = _PLAIN) -> str:
    """Why these configs cannot be set on a topic (INVALID_CONFIG) in a cluster of these settings;
    empty if they can.

    The checks are in Kafka's order: nulls, names, values, values that contradict each other.
    """
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        return f"Null value not supported for topic configs: {','.join(nulls)}"
    for name in configs:
        if name not in TOPIC_CONFIGS:
            return f"Unknown topic config name: {name}"
    for name, value in configs.items():
        why = _value_refusal(TOPIC_CONFIGS[name], value or "", settings)
        if why:
            return why
    return _contradiction(configs, settings)


def _value_refusal(row: TopicConfig, value: str, settings: ClusterConfig) -> str:
    kind = row.type_in(settings)
    why = refusal_of(kind, row.name, value)
    if why:
        return why
    promise = row.promises(kind.read(row.name, value))
    if promise.endswith("."):  # Kafka's whole message
        return promise
    return invalid(row.name, value, promise) if promise else ""


def _contradiction(configs: Mapping[str, str | None], settings: ClusterConfig) -> str:
    names = ("min.compaction.lag.ms", "max.compaction.lag.ms")
    given = {name: value for name, value in configs.items() if value is not None}
    least, most = (integer(name, given, settings) for name in names)
    if least <= most:
        return ""
    return f"conflict topic config setting {names[0]} ({least}) > {names[1]} ({most})"


def describe(configs: Mapping[str, str], settings: ClusterConfig) -> list[ConfigValue]:
    """All configs of a topic that sets `configs`, with their present values, in alphabetical
    order."""
    plain = ClusterConfig(profile=settings.profile)
    values = []
    for row in TOPIC_CONFIGS.values():
        default = row.default_in(settings)
        if row.name in configs:
            value = ConfigValue(row.name, configs[row.name], ConfigSource.TOPIC)
        elif default != row.default_in(plain):
            value = ConfigValue(row.name, default, ConfigSource.BROKER)
        else:
            value = ConfigValue(row.name, default, ConfigSource.DEFAULT)
        values.append(value)
    return values


def has_effect(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> bool:
    """Whether a config that a topic sets has an effect. `segment.bytes` has one only if it is
    smaller than the largest batch that is accepted."""
    if name == "segment.bytes":
        most = integer("max.message.bytes", configs, settings)
        return integer(name, configs, settings) < most
    return name in TOPIC_CONFIGS and TOPIC_CONFIGS[name].effect is Effect.SERVED


def _in_force(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> Unpacked:
    """A config's present value. If its text cannot be read (another version wrote the log), the
    value is the default."""
    row = TOPIC_CONFIGS[name]
    kind = row.type_in(settings)
    try:
        return kind.read(name, configs.get(name, row.default_in(settings)))
    except UnreadableError:
        return kind.read(name, row.default_in(settings))


def text(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> str:
    """The present value of a config that is a word, such as `message.timestamp.type`."""
    return str(_in_force(name, configs, settings))


def integer(name: str, configs: Mapping[str, str], settings: ClusterConfig) -> int:
    """The present value of a numeric config, such as `max.message.bytes`."""
    value = _in_force(name, configs, settings)
    assert isinstance(value, int), f"{name} of a topic is {value!r}, which is no number"
    return value
