"""The table of the APIs that a broker serves: keys, versions, modules.

The dispatch, the answer to ApiVersions and `docs/reference/apis.md` are generated from it. To serve
an API, write `broker/wire/api/<name>.py` with

    def handle(request, call): ...

(`request` is its NamedTuple in `ottla.broker.wire.requests`, `call` an
`ottla.broker.wire.api.call.Call`, which is answered with a NamedTuple of
`ottla.broker.wire.answers`), name the request in `ottla.broker.wire.translation.reading` and add
one row.

*Advertised* versions are in the answer to ApiVersions, *served* versions are really answered. They
differ only for Produce: librdkafka looks for Produce v0 when it decides about gzip, snappy and lz4,
so Kafka 4.x advertises 0-2 and closes the connection if they are used (KAFKA-18659; measured on
4.3.1). An API or version outside the table closes the connection; only ApiVersions is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Api(NamedTuple):
    """One row: an API as this broker serves it."""

    key: int
    name: str
    """Kafka's own name."""
    module: str
    """Module below `ottla.broker.wire.api` whose `handle` serves it; imported when first needed."""
    served: tuple[int, int]
    """First and last version that is answered."""
    advertised: tuple[int, int]
    """First and last version in the answer to ApiVersions."""
    flexible_from: int
    """First version with compact encoding and tagged fields (KIP-482)."""


TABLE: tuple[Api, ...] = (
    Api(0, "Produce", "produce", (3, 12), (0, 12), 9),
    Api(1, "Fetch", "fetch", (4, 12), (4, 12), 12),
    Api(2, "ListOffsets", "list_offsets", (1, 8), (1, 8), 6),
    Api(3, "Metadata", "metadata", (0, 12), (0, 12), 9),
    Api(8, "OffsetCommit", "no_groups", (2, 9), (2, 9), 8),
    Api(9, "OffsetFetch", "no_groups", (1, 9), (1, 9), 6),
    Api(10, "FindCoordinator", "find_coordinator", (0, 6), (0, 6), 3),
    Api(11, "JoinGroup", "no_groups", (0, 9), (0, 9), 6),
    Api(12, "Heartbeat", "no_groups", (0, 4), (0, 4), 4),
    Api(13, "LeaveGroup", "no_groups", (0, 5), (0, 5), 4),
    Api(14, "SyncGroup", "no_groups", (0, 5), (0, 5), 4),
    Api(15, "DescribeGroups", "no_groups", (0, 6), (0, 6), 5),
    Api(16, "ListGroups", "no_groups", (0, 5), (0, 5), 3),
    Api(18, "ApiVersions", "api_versions", (0, 4), (0, 4), 3),
    Api(19, "CreateTopics", "create_topics", (2, 7), (2, 7), 5),
    Api(20, "DeleteTopics", "delete_topics", (1, 6), (1, 6), 4),
    Api(21, "DeleteRecords", "delete_records", (0, 2), (0, 2), 2),
    Api(22, "InitProducerId", "init_producer_id", (0, 5), (0, 5), 2),
    Api(23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", (2, 4), (2, 4), 4),
    Api(42, "DeleteGroups", "no_groups", (0, 2), (0, 2), 2),
    Api(47, "OffsetDelete", "no_groups", (0, 0), (0, 0), 1),
    Api(60, "DescribeCluster", "describe_cluster", (0, 2), (0, 2), 0),
    Api(68, "ConsumerGroupHeartbeat", "no_groups", (0, 1), (0, 1), 0),
    Api(69, "ConsumerGroupDescribe", "no_groups", (0, 1), (0, 1), 0),
)

BY_KEY: dict[int, Api] = {row.key: row for row in TABLE}
NO_LIMITS: Mapping[int, int] = {}
"""All versions of the table are served."""


def up_to(newest: Mapping[int, int]) -> tuple[Api, ...]:
    """The table of a broker whose newest versions are these, by key (`Profile.newest`); an API
    whose newest version is -1, it does not have."""
    return tuple(
        row._replace(served=_until(row.served, last), advertised=_until(row.advertised, last))
        for row in TABLE
        if (last := newest.get(row.key, row.served[1])) >= row.served[0]
    )


def _until(versions: tuple[int, int], last: int) -> tuple[int, int]:
    return versions[0], min(versions[1], last)


def serves(key: int, version: int, newest: Mapping[int, int] = NO_LIMITS) -> bool:
    """Whether requests of this API and version are answered, with no version above `newest`."""
    row = BY_KEY.get(key)
    served = row is not None and row.served[0] <= version <= row.served[1]
    return served and version <= newest.get(key, version)
