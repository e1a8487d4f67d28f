"""The swarm: every seed draws its own configuration.

Averages hide bugs: a run with every fault at its middle rate never has a long quiet time, a full
queue, or a disk slower than an election. So each setting is drawn by itself, often from its edges,
and many keep their plain value. What the caller sets stays: every setting that is not at its
default, or that a file or the command line gives, even with the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.broker.config import FlushPolicy
from ottla.raft.types import Micros
from ottla.sim.chance.choices import Choices
from ottla.sim.settings.ranges import AROUND_BYTES, FATES, LEAST_RECORD_BYTES, MAX_SPAN, MILLION
from ottla.sim.settings.settings import SETTINGS, RunConfig
from ottla.sim.settings.situations import SITUATIONS

_ELECTIONS = (500, 500, 200, 1000)
TABLE: Mapping[str, Sequence[int | str | bool]] = {
    "nodes": (3, 3, 3, 5),
    "replicas": (3, 3, 3, 3, 3, 5, 5, 2, 1),
    "partitions": (1, 1, 1, 2, 3),
    "min_insync": (1, 1, 2, 1, 2, 3, 5),
    "max_message_bytes": (1_048_588, 1_048_588, 1_048_588, 150),
    "election_timeout_ms": _ELECTIONS,
    "replica_lag_ms": (10_000, 10_000, 1_000),
    "leader_queue_bytes": (32 << 20, 32 << 20, 2_000),
    "max_producers": (1_000, 1_000, 1_000, 1_000, 1_000, 2),
    "producer_expiry_ms": (86_400_000, 86_400_000, 86_400_000, 86_400_000, 86_400_000, 300),
    "max_append_bytes": (1 << 20, 1 << 20, 300),
    "max_append_entries": (500, 500, 2),
    "max_inflight_bytes": (16 << 20, 16 << 20, 600),
    "snapshot_chunk_bytes": (256 << 10, 256 << 10, 64),
    "catalog_entries": (1_000, 3),
    "connection_requests": (64, 64, 1, 5),
    "rtt_us": (400, 400, 2_000, 20_000, 100_000),
    "jitter_us": (200, 200, 2_000, 20_000),
    "client_rtt_us": (400, 400, 2_000, 50_000),
    "client_jitter_us": (200, 200, 5_000),
    "sync_us": (300, 300, 0, 5_000, 30_000),
    "sync_jitter_us": (200, 200, 5_000),
    "turn_us": (20, 20, 200, 2_000),
    "load_ms": (20_000, 2_000, 5_000, 1_000, 2_000, 5_000),
    "producers": (2, 1, 2, 3),
    "consumers": (1, 1, 2),
    "client_model": ("both", "both", "java", "librdkafka"),
    "arrivals": ("bursts", "bursts", "bursts", "even", "even"),
    "record_bytes": (16, 16, 16, 200),
    "in_flight": (5, 5, 5, 1, 2, 3, 4, 6, 7, 8),
    "batch_records": (4, 1, 4, 16),
    "request_timeout_ms": (1_500, 1_500, 400, 5_000),
    "delivery_timeout_ms": (30_000, 30_000, 3_000),
    "retry_backoff_ms": (50, 50, 5),
    "metadata_max_age_ms": (5_000, 5_000, 100),
    "leader_epochs": (True, True, False),
    "fetch_bytes": (1 << 20, 1 << 20, 300),
    "loss_ppm": (0, 0, 10_000, 100_000),
    "twice_ppm": (0, 0, 10_000, 100_000),
    "late_ppm": (0, 0, 10_000, 100_000),
    "reset_ppm": (0, 0, 2_000, 20_000),
    "restart_ppm": (0, 0, 50_000),
    "slow_sync_ppm": (0, 0, 10_000),
    "fault_every_ms": (1_000, 500, 2_000, 5_000),
    "probes": (True, True, False),
    "delays": ("alike", "alike", "own"),
}
"""The values that each setting is drawn from; the first is the plain one. Without
probes nothing is written at the end, and what is stored must be shown all the same. Not drawn:
random arrivals, which go on when a run ends and then meet delivery timeouts; and the settings that
studies vary: acks, idempotence, the flush policy, the first sequence, bandwidth, links. The number
of records depends on the length (`RECORDS`)."""
RECORDS: Mapping[int, int] = {20_000: 360, 5_000: 120, 2_000: 60, 1_000: 40}
"""Records by `load_ms`. Most runs are short, with more records and faults in a second, so that the
same time is enough for several times the seeds. Some are long, because elections, programs and
timeouts take seconds."""
_STRIKES = 4
"""How many times at least a run draws a program of the nemesis."""

_LEAST_LAG_MS = 50
"""Below this, heartbeats would have to come every few milliseconds to keep a follower in sync."""
_CLIENT_SPANS = ("client_rtt_us", "client_jitter_us", "turn_us")
_SPANS = ("rtt_us", "jitter_us", "sync_us", "sync_jitter_us")
SWARM = "swarm"
"""The stream from which settings are drawn."""
SITUATION = "situation"
"""The stream from which a situation is drawn, and its open settings."""
_PLAIN = RunConfig()


def draw(choices: Choices, base: RunConfig) -> RunConfig:
    """A configuration of its own. Settings that `base` gives, or that are not at their default,
    stay."""
    stream = choices.stream(SWARM)
    drawn: dict[str, int | str | bool] = {}
    for name in SETTINGS:
        if name in TABLE:
            value = stream.pick(TABLE[name])
            if free(base, name):
                drawn[name] = value
    _meet(choices, base, drawn)
    _fit_length(base, drawn)
    _fit_groups(base, drawn)
    _fit(base, drawn)
    _fit_fates(base, drawn)
    _fit_clients(base, drawn)
    _fit_batches(base, drawn)
    # Not a new frozenset: one that is made during a run does not list its members (`outside.py`),
    # but a configuration is copied and shown long after it.
    return replace(base.with_(**drawn), said=_PLAIN.said)


def _meet(choices: Choices, base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """In half of the seeds a situation, unless one of its settings was given."""
    stream = choices.stream(SITUATION)
    number = stream.below(2 * len(SITUATIONS))
    names = [*SITUATIONS]
    if number and number <= len(names):
        situation = SITUATIONS[names[number - 1]]
        if all(free(base, name) for name in situation):
            drawn.update({name: stream.pick(values) for name, values in situation.items()})


def free(base: RunConfig, name: str) -> bool:
    """Whether a seed may draw this setting: it was not given."""
    return name not in base.said and getattr(base, name) == getattr(_PLAIN, name)


def _fit_length(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """Records that fit the length, and some faults within it."""
    if "load_ms" in drawn and free(base, "records"):
        drawn["records"] = RECORDS[int(drawn["load_ms"])]
    if "fault_every_ms" in drawn:
        most = int(drawn.get("load_ms", base.load_ms)) // _STRIKES
        drawn["fault_every_ms"] = min(int(drawn["fault_every_ms"]), max(1, most))


def _fit_groups(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """Fit the numbers to each other: replicas at most nodes, in sync at most replicas. Drawn nodes
    are enough for the replicas, or the replicas in sync, that were given; if more replicas are
    given, nodes come with them (`sim/settings/told.py`)."""
    if "replicas" in drawn:
        least = 1 if "min_insync" in drawn else base.min_insync
        nodes = int(drawn.get("nodes", base.nodes))
        drawn["replicas"] = min(max(int(drawn["replicas"]), least), nodes)
    if "min_insync" in drawn:
        replicas = int(drawn.get("replicas", base.replicas))
        drawn["min_insync"] = min(int(drawn["min_insync"]), replicas)


def _fit(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """Fit drawn settings that contradict others. A round trip must be well within an election
    timeout, or no leader is ever elected, which is no finding."""
    spans = (*_SPANS, "turn_us")
    election = "election_timeout_ms"
    if election in drawn:
        slowest = max((getattr(base, name) for name in spans if name not in drawn), default=0)
        slowest = max(slowest, _linked(base, drawn))
        if base.flush == FlushPolicy.INTERVAL.value:  # votes wait for a flush, too
            slowest = max(slowest, 1_000 * base.flush_interval_ms)
        beats = 0 if free(base, "heartbeat_ms") else 2 * base.heartbeat_ms
        drawn[election] = max(int(drawn[election]), slowest // 100, beats)
    timeout_ms = int(drawn.get(election, base.election_timeout_ms))
    if "replica_lag_ms" in drawn:
        drawn["replica_lag_ms"] = max(int(drawn["replica_lag_ms"]), timeout_ms)
    else:  # followers must be heard, and answer, within the lag time, if they must be in sync
        if "min_insync" in drawn and base.replica_lag_ms < _LEAST_LAG_MS:
            drawn["min_insync"] = 1
        if int(drawn.get("min_insync", base.min_insync)) > 1:
            timeout_ms = min(timeout_ms, max(1, base.replica_lag_ms))
    for name in spans:
        if name in drawn:
            drawn[name] = min(int(drawn[name]), timeout_ms * 100)
    _fit_syncs(base, drawn)
    if free(base, "heartbeat_ms"):
        drawn["heartbeat_ms"] = max(1, timeout_ms // 10)


def _fit_syncs(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """Leaders resign at a sync that takes longer than `sync_stall_ms`."""
    left = base.sync_stall_ms * 1_000
    if "sync_us" in drawn:
        jitter = 0 if "sync_jitter_us" in drawn else base.sync_jitter_us
        drawn["sync_us"] = min(int(drawn["sync_us"]), left - 3 * jitter)
    left -= int(drawn.get("sync_us", base.sync_us))
    if "sync_jitter_us" in drawn:
        drawn["sync_jitter_us"] = min(int(drawn["sync_jitter_us"]), left // 3)


def _fit_fates(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """A message has one fate: the drawn rates share what the given ones leave."""
    left = MILLION - sum(getattr(base, name) for name in FATES if name not in drawn)
    for name in FATES:
        if name in drawn:
            drawn[name] = min(int(drawn[name]), left)
            left -= drawn[name]


def _linked(base: RunConfig, drawn: Mapping[str, int | str | bool]) -> Micros:
    """How far apart the given links keep a majority of any group, whatever the others take."""
    if not base.links:
        return 0
    told = {name: drawn[name] for name in ("nodes", "replicas", "partitions") if name in drawn}
    plain = {"rtt_us": 0} if "rtt_us" in drawn else {}
    return base.with_(**told, **plain).farthest[0]


def _fit_clients(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """A client that gives up before an answer can come never gets one. So it waits longer; or if
    that is fixed, what it waits for gets faster."""
    request, delivery = "request_timeout_ms", "delivery_timeout_ms"
    names: tuple[str, ...] = _CLIENT_SPANS
    if base.client_bytes_per_ms:
        names += ("in_flight", "batch_records", "record_bytes")
    limits = [getattr(base, name) for name in (request, delivery) if name not in drawn]
    limit = min(limits, default=MAX_SPAN)
    taken = {name: drawn[name] for name in (*names, *_SPANS) if name in drawn}
    if limits and base.with_(**taken).patience_ms > limit:
        for name in taken:
            del drawn[name]
    fitted = base.with_(**{name: drawn[name] for name in names if name in drawn})
    if request in drawn:
        drawn[request] = max(min(int(drawn[request]), limit), fitted.patience_ms)
    if delivery in drawn:
        least = max(2 * fitted.line_ms(base.records), 4 * fitted.retry_backoff_ms)
        # Both libraries refuse a delivery timeout shorter than the request timeout.
        least = max(least, int(drawn.get(request, base.request_timeout_ms)))
        election_ms = int(drawn.get("election_timeout_ms", base.election_timeout_ms))
        if election_ms > max(_ELECTIONS):
            least = max(least, 10 * election_ms)
        drawn[delivery] = min(MAX_SPAN, max(int(drawn[delivery]), least))


def _fit_batches(base: RunConfig, drawn: dict[str, int | str | bool]) -> None:
    """A batch may be refused for its size, a single record may not: then all records would be
    lost."""
    limit = "max_message_bytes"
    if limit in drawn:
        record_bytes = int(drawn.get("record_bytes", base.record_bytes))
        drawn[limit] = max(int(drawn[limit]), AROUND_BYTES + record_bytes)
    elif "record_bytes" in drawn:
        most = max(LEAST_RECORD_BYTES, base.max_message_bytes - AROUND_BYTES)
        drawn["record_bytes"] = min(int(drawn["record_bytes"]), most)
