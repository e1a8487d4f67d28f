"""Brokers over TCP: one at an address, and a profile that serves on this machine.

Of a cluster at an address the broker that was asked is node 1 of each case, and the others follow
by their ids. Topics of earlier runs may lie there, so those of this run have names of their own.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any, Self

from ottla.broker.client import Client
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.errors import ConfigError, ErrorCode, FrameError
from ottla.broker.wire.client_requests import API_KEYS
from ottla.compare.brokers import config_of, names_of, place_of, play_at
from ottla.compare.case import MOST_NODES, Case
from ottla.compare.conversation import Start
from ottla.compare.errors import CompareError
from ottla.compare.nodes import POLL_SECONDS, Place
from ottla.compare.requests import USUAL_VERSIONS, Versions
from ottla.compare.topics import served_versions
from ottla.compare.transcript import Transcript

CONNECT_SECONDS = 10.0


class LiveBroker:
    """A broker at an address, or a cluster; see the module's docstring."""

    does_faults = False

    def __init__(self, host: str, port: int, name: str = ""):
        self.name = name or f"{host}:{port}"
        self.profile = ""
        self._host, self._port = host, port
        self._runner = asyncio.Runner()
        self._run = secrets.token_hex(4)
        self._place = Place({1: (host, port)})
        self.nodes = 1
        self._versions: Versions = {}

    def __enter__(self) -> Self:
        self._runner.__enter__()
        try:
            self._runner.run(self._look())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def versions(self) -> Versions:
        """See `Broker`."""
        return self._versions

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`."""
        try:
            return self._runner.run(play_at(case, self._start(case, versions), self._place))
        except OSError as error:
            raise CompareError(f"{self.name}: {error.strerror or error}; is it up?") from None

    def _start(self, case: Case, versions: Versions) -> Start:
        names = names_of(case, self._run)
        return Start(self.name, versions, names, time.time_ns() // 1_000_000)

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """See `Broker`; `like` does not help, because names of topics are those of this run."""
        return [self.play(each, versions) for each in cases]

    async def _look(self) -> None:
        """Ask what it serves, and whether there are other brokers."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                client = await Client.connect(self._host, self._port)
                try:
                    self._versions = await served_versions(client)
                    await _until_ids_come(client, self._versions)
                    known = await client.call("metadata", 1, topics=[])
                finally:
                    client.close()
        except TimeoutError:
            raise CompareError(
                f"{self.name} does not answer within {CONNECT_SECONDS:g} s; is it a Kafka broker?"
            ) from None
        except (OSError, ConfigError) as error:
            told = getattr(error, "strerror", None) or str(error)
            raise CompareError(f"{self.name}: {told}; give the address of a broker") from None
        except FrameError as error:
            raise CompareError(f"{self.name} is no Kafka broker: {error}") from None
        self._choose(known)

    def _choose(self, known: Any) -> None:
        """If there are several brokers, number them: the one that was asked is the first."""
        if len(known.brokers) < 2:
            return
        self.nodes = len(known.brokers)
        (asked,) = self._place.addresses.values()
        every = sorted(
            known.brokers, key=lambda each: ((each.host, each.port) != asked, int(each.node_id))
        )
        self._place = Place(
            {number: (str(each.host), int(each.port)) for number, each in enumerate(every, 1)},
            {number: int(each.node_id) for number, each in enumerate(every, 1)},
        )


async def _until_ids_come(client: Client, versions: Versions) -> None:
    """Ask for a producer id until there is one: a broker that has just started answers
    COORDINATOR_LOAD_IN_PROGRESS for a moment, which no case is about."""
    served = versions.get(API_KEYS["init_producer_id"])
    while served is not None:
        answer = await client.call(
            "init_producer_id",
            min(served[1], USUAL_VERSIONS["init_producer_id"]),
            transactional_id=None,
            transaction_timeout=0,
            producer_id=-1,
            producer_epoch=-1,
        )
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        await asyncio.sleep(POLL_SECONDS)


class WireBroker(LiveBroker):
    """A profile over TCP on this machine: a cluster of one node, and one more for each case that
    needs its own."""

    does_faults = True

    def __init__(self, profile: str):
        super().__init__("127.0.0.1", 0, f"{profile} over TCP")
        self.profile, self.nodes = profile, MOST_NODES
        self._cluster = AsyncCluster(1, profile=profile)

    def __enter__(self) -> Self:
        self._runner.__enter__()
        try:
            self._runner.run(self._cluster.start())
            self._host, self._port = self._cluster.addresses[1]
            self._place = Place({1: self._cluster.addresses[1]})
            self._runner.run(self._look())
        except BaseException:
            self.__exit__()
            raise
        return self

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`."""
        if not case.own_cluster:
            return super().play(case, versions)
        return self._runner.run(self._alone(case, self._start(case, versions)))

    async def _alone(self, case: Case, start: Start) -> Transcript:
        """A case on a cluster of its own."""
        cluster = AsyncCluster(case.nodes, config=config_of(self.profile, case.settings))
        await cluster.start()
        try:
            return await play_at(case, start, place_of(cluster, case))
        finally:
            await cluster.stop()

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._cluster.stop())
        super().__exit__()
