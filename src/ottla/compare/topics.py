"""The topics of a case: made before it, and deleted after it, with all that its steps have made.

Their names are those of this run alone, so nothing else on a live broker is touched. Their replicas
lie where the case says, by default on the one broker to which all steps are sent. They are ready
when the first replica of each answers as its leader, and all are in sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import error_name
from ottla.compare.case import Case, Topic
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.nodes import POLL_SECONDS, Nodes, Place
from ottla.compare.requests import USUAL_VERSIONS, Versions

READY_SECONDS = 30.0
"""How long the partitions of a topic may be without a leader."""
GONE_SECONDS = 30.0
"""How long a topic may exist after the answer that it is deleted: with ZooKeeper it does for some
dozen ms. The names are those of this run alone, so nobody else has made it."""
CALL_SECONDS = 60.0
"""How long a broker may take to answer a request about topics; it is told `_TIMEOUT_MS`."""
CONFIGS = {"retention.ms": "-1", "segment.ms": str((1 << 63) - 1)}
"""Configs of every topic: records of a case have any times, and must neither be deleted for that
nor lie in several segments, where a fetch and a search by time end."""
_TIMEOUT_MS = 20_000
_NOT_YET = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER)
_INVALID_CONFIG = ErrorCode.INVALID_CONFIG
_GONE = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_METADATA = {
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


async def served_versions(client: Client) -> Versions:
    """The versions that a broker serves, by API key. Raises `CompareError`."""
    answer = await client.call("api_versions", 0)
    if answer.error_code != 0:
        raise CompareError(f"ApiVersions is answered {error_name(answer.error_code)}")
    return {int(each.api_key): (each.min_version, each.max_version) for each in answer.api_keys}


class Topics:
    """Makes and deletes topics over one connection of its own."""

    def __init__(self, client: Client, versions: Versions, place: Place):
        self._client = client
        self._controller: Client | None = None
        """A connection to the broker that makes topics, if that is another one."""
        self._versions = versions
        self._place = place

    async def make(self, case: Case, names: Mapping[str, str]) -> None:
        """Make the topics of a case, and wait until they are led. Raises `CompareError`."""
        if not case.topics:
            return
        wanted = [self._wanted(each, names[each.name]) for each in case.topics]
        loop = asyncio.get_running_loop()
        until = loop.time() + GONE_SECONDS
        wanted = await self._create(case, wanted, may_exist=True)
        while wanted:
            await asyncio.sleep(POLL_SECONDS)
            wanted = await self._create(case, wanted, may_exist=loop.time() < until)
        try:
            async with asyncio.timeout(READY_SECONDS):
                for each in case.topics:
                    if case.nodes == 1:
                        await self._until_led(names[each.name], each.partitions)
                    else:
                        await self._until_ready(each, names[each.name])
        except TimeoutError:
            raise CompareError(
                f"{case.name}: its topics have no leader after {READY_SECONDS:g} s"
            ) from None

    async def _create(
        self, case: Case, wanted: list[dict[str, Any]], *, may_exist: bool
    ) -> list[dict[str, Any]]:
        """Ask for topics, and return those that are to be asked for again, because an earlier one
        of that name is still being deleted, or another broker makes them."""
        answer = await self._call(
            "create_topics", topics=wanted, timeout=_TIMEOUT_MS, validate_only=False
        )
        again = set()
        for each in answer.topics:
            if each.error_code in _NOT_YET and may_exist:
                again.add(each.name)
            elif each.error_code != 0:
                why = f"{error_name(each.error_code)} {each.error_message or ''}".strip()
                kind = UnplayableError if each.error_code == _INVALID_CONFIG else CompareError
                raise kind(f"{case.name}: its topic cannot be made: {why}")
        if any(each.error_code == ErrorCode.NOT_CONTROLLER for each in answer.topics):
            await self._follow_controller()
        return [each for each in wanted if each["name"] in again]

    async def _follow_controller(self) -> None:
        """Go on at the broker that is the controller: with ZooKeeper no other one makes topics."""
        known = await self._call("metadata", topics=[], **_METADATA)
        for each in known.brokers:
            if each.node_id == known.controller_id:
                self.close()
                self._controller = await Client.connect(str(each.host), int(each.port))

    def close(self) -> None:
        """Close what was opened here."""
        if self._controller is not None:
            self._controller.close()
            self._controller = None

    async def delete(self, names: Iterable[str]) -> None:
        """Delete topics, also those that there are not. Raises `CompareError` if one is left."""
        every = list(names)
        topics = [{"name": each, "topic_id": bytes(16)} for each in every]
        answer = await self._call(
            "delete_topics", topic_names=every, topics=topics, timeout=_TIMEOUT_MS
        )
        for each in answer.responses:
            if each.error_code not in _GONE:
                why = error_name(each.error_code)
                raise CompareError(f"topic {each.name} cannot be deleted: {why}")

    def _wanted(self, topic: Topic, name: str) -> dict[str, Any]:
        configs = {**CONFIGS, **topic.configs}
        wanted: dict[str, Any] = {
            "name": name,
            "num_partitions": topic.partitions,
            "replication_factor": 1,
            "assignments": [],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        brokers = self._place.brokers
        if brokers is not None:
            replicas = [brokers[each] for each in topic.replicas]
            wanted["num_partitions"] = wanted["replication_factor"] = -1
            wanted["assignments"] = [
                {"partition_index": number, "broker_ids": replicas}
                for number in range(topic.partitions)
            ]
        return wanted

    async def _until_ready(self, topic: Topic, name: str) -> None:
        """Wait until the first replica leads each partition, and all replicas are in sync."""
        nodes = Nodes(self._place, name, topic.replicas[0])
        try:
            for partition in range(topic.partitions):
                await nodes.until_led(topic.replicas[:1], partition)
                await nodes.until_in_sync(topic.replicas, partition)
        finally:
            nodes.close()

    async def _until_led(self, name: str, partitions: int) -> None:
        while True:
            topics = [{"topic_id": bytes(16), "name": name}]
            answer = await self._call("metadata", topics=topics, **_METADATA)
            found = answer.topics[0].partitions
            led = [each for each in found if each.error_code == 0 and each.leader_id >= 0]
            if len(led) == partitions and await self._reads(name, partitions):
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _reads(self, name: str, partitions: int) -> bool:
        """Whether all partitions answer: a leader may be named before it leads."""
        wanted = [{"partition_index": each, "timestamp": -1} for each in range(partitions)]
        topics = [{"name": name, "partitions": wanted}]
        answer = await self._call("list_offsets", replica_id=-1, isolation_level=0, topics=topics)
        return all(each.error_code == 0 for topic in answer.topics for each in topic.partitions)

    async def _call(self, api: str, **fields: object) -> Any:
        usual = USUAL_VERSIONS[api]
        _, most = self._versions.get(API_KEYS[api], (0, usual))
        try:
            async with asyncio.timeout(CALL_SECONDS):
                client = self._controller or self._client
                return await client.call(api, min(usual, most), **fields)
        except TimeoutError:
            told = f"is not answered within {CALL_SECONDS:g} s"
            raise CompareError(f"{api} for the topics of a case {told}") from None
        except (OSError, FrameError) as error:
            raise CompareError(f"{api} for the topics of a case is not answered: {error}") from None
