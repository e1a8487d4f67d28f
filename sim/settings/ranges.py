"""The kind and the range of each setting of a run, checked by itself.

What the settings mean stands in `ottla.sim.settings.settings`. That module also checks those that
depend on one another, such as replicas and nodes. An error names the setting, what it is, and what
is possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.broker.arguments.spelling import shown
from ottla.broker.config import FlushPolicy
from ottla.broker.errors import ConfigError
from ottla.sim.settings.link_times import MAX_WAIT_US
from ottla.sim.settings.spelling import as_written

MAX_NODES = 7
MAX_SPAN = 10**12
"""More than any size or span needs."""
MAX_LOAD_MS = 24 * 3_600_000
"""A day: all that happened is kept in memory until a run ends."""
MAX_TURN_US = 500_000
"""A node with longer turns is practically frozen."""
SEQUENCES = 1 << 31
MILLION = 1_000_000
FATES = ("loss_ppm", "late_ppm", "twice_ppm")
"""What may happen to a message between nodes, at most one of them."""
LEAST_RECORD_BYTES = 8
AROUND_BYTES = 100
"""More bytes than a batch of one record has around the record's value."""
CLIENT_MODELS = ("java", "librdkafka")
WORDS = {
    "client_model": (*CLIENT_MODELS, "both"),
    "flush": tuple(each.value for each in FlushPolicy),
    "arrivals": ("bursts", "even", "random"),
    "delays": ("alike", "own"),
}
RANGES = {
    "nodes": (1, MAX_NODES),
    "replicas": (1, MAX_NODES),
    "partitions": (1, 1000),
    "records": (0, 1_000_000),
    "load_ms": (0, MAX_LOAD_MS),
    "acks": (-1, 1),
    "max_message_bytes": (1, (1 << 31) - 1),
    "in_flight": (1, 1000),
    "batch_records": (1, 10_000),
    "record_bytes": (LEAST_RECORD_BYTES, 1 << 20),
    "producers": (0, 1000),
    "consumers": (0, 1000),
    "heartbeat_ms": (1, MAX_SPAN),
    "election_timeout_ms": (1, MAX_SPAN),
    "min_insync": (1, MAX_NODES),
    "fault_kinds": (0, MAX_SPAN),
    "max_append_bytes": (1, MAX_SPAN),
    "max_append_entries": (1, MAX_SPAN),
    "max_inflight_bytes": (1, MAX_SPAN),
    "snapshot_chunk_bytes": (1, MAX_SPAN),
    "catalog_entries": (1, MAX_SPAN),
    "max_producers": (1, MAX_SPAN),
    "connection_requests": (1, MAX_SPAN),
    "leader_queue_bytes": (1, MAX_SPAN),
    "sync_stall_ms": (1, MAX_SPAN),
    # At 0, clients that cannot reach any node would ask again and again at the same time, for ever.
    "request_timeout_ms": (1, MAX_SPAN),
    "retry_backoff_ms": (1, MAX_SPAN),
    "metadata_max_age_ms": (1, MAX_SPAN),
    "producer_expiry_ms": (1, MAX_SPAN),
    "first_sequence": (0, SEQUENCES - 1),
    "flush_interval_ms": (0, MAX_WAIT_US // 1_000),
    "rtt_us": (0, MAX_WAIT_US),
    "jitter_us": (0, MAX_WAIT_US),
    "client_rtt_us": (0, MAX_WAIT_US),
    "client_jitter_us": (0, MAX_WAIT_US),
    "sync_us": (0, MAX_WAIT_US),
    "sync_jitter_us": (0, MAX_WAIT_US),
    "turn_us": (0, MAX_TURN_US),
    "loss_ppm": (0, MILLION),
    "twice_ppm": (0, MILLION),
    "late_ppm": (0, MILLION),
    "reset_ppm": (0, MILLION),
    "restart_ppm": (0, MILLION),
    "slow_sync_ppm": (0, MILLION),
}


_KINDS = {int: "a whole number", bool: "true or false", str: "a word"}


def check_kind(name: str, value: object, kind: type) -> None:
    """Raises `ConfigError` if the value of a setting is of another kind."""
    if type(value) is not kind:
        raise ConfigError(f"{name} is {as_written(value)}; {_KINDS[kind]} is expected")


def check_ranges(settings: Mapping[str, int | str | bool], models: Collection[str]) -> None:
    """Check each of these settings by itself; `models`: further words for `client_model`, those of
    plugins. Raises `ConfigError`."""
    for name, value in settings.items():
        if name != "client_model" or value not in models:
            _check_range(name, value)


def check_fates(rates: Mapping[str, int]) -> None:
    """A message has one fate of a million: the rates of `FATES` share them. Raises
    `ConfigError`."""
    total = sum(rates.values())
    if total > MILLION:
        raise ConfigError(f"{' + '.join(rates)} is {total}; a message has one fate of a million")


def _check_range(name: str, value: int | str | bool) -> None:
    """Whether a setting is within its range or one of its words. Raises `ConfigError`, which names
    the possible values."""
    if isinstance(value, str):
        if value not in WORDS.get(name, (value,)):
            raise ConfigError(f"{name} is {value!r}; one of {', '.join(WORDS[name])}")
        return
    if value < 0 and name != "acks":
        raise ConfigError(f"{name} is {shown(value)}; it must not be negative")
    low, high = RANGES.get(name, (0, MAX_SPAN))
    if not low <= value <= high:
        raise ConfigError(f"{name} is {shown(value)}; {low} to {high} are possible")
