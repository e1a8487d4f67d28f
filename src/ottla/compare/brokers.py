"""The brokers that can be compared: who plays a case, and where.

| class | a broker |
|---|---|
| `ProfileBroker` | a profile of Ottla's, on the deterministic loop: a fresh cluster for each case |
| `WireBroker` | the same profile as a cluster that serves over TCP, for all cases of one node |
| `LiveBroker` | at an address, over TCP; whatever it is |
| `RecordedBroker` | a broker that was recorded |

A case is played with the versions that the target serves, also to the other broker. A case with
several nodes or with faults has a cluster of its own where a profile serves it. A cluster at an
address can be asked on several nodes, but nobody there does what a fault asks for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, Self, cast

from ottla.broker.client import Client
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import ClusterConfig, Settings, with_settings
from ottla.broker.errors import ConfigError
from ottla.compare.case import MOST_NODES, Case
from ottla.compare.conversation import Conversation, Start
from ottla.compare.errors import CompareError
from ottla.compare.nodes import Nodes, Place
from ottla.compare.requests import Versions
from ottla.compare.topics import Topics, served_versions
from ottla.compare.transcript import Transcript
from ottla.sim.asyncio_runs.clockwork import LoopClockwork, LoopPort
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.outside import PATCHES
from ottla.sim.asyncio_runs.run import run
from ottla.sim.world.clocks import EPOCH_MS

LAG_MS = 500
"""Lag time of the replicas in sync where a profile serves a case that needs its own cluster."""
SEED = 1
NO_SETTINGS: Mapping[str, int] = {}
_NO_NAME = re.compile(r"[^a-zA-Z0-9-]+")
_OURS = [each for each in PATCHES if not each.module.startswith("aiokafka")]
"""No client library runs here."""


class Broker(Protocol):
    """Who plays cases. Used as a context."""

    name: str
    """For people."""
    profile: str
    """The profile that it shows; empty: it is a broker of its own."""
    nodes: int
    """How many nodes a case may have."""
    does_faults: bool
    """Whether it does what the faults of a case ask for."""

    def versions(self) -> Versions:
        """The versions it serves, by API key. Raises `CompareError`."""

    def play(self, case: Case, versions: Versions) -> Transcript:
        """Play a case. Raises `CompareError` if that is not possible."""

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """Play cases one after the other. `like`: what another broker was asked in them, to whose
        requests these are equal where the two stand alike. Raises `CompareError`."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""


def names_of(case: Case, run_name: str) -> dict[str, str]:
    """The topics of a case, and their names in one run: no two cases of a run share one."""
    told = _NO_NAME.sub("-", case.name)[-120:]
    return {each: f"ottla-compare-{run_name}-{told}-{each}" for each in case.names}


async def play_at(case: Case, start: Start, place: Place) -> Transcript:
    """Make the topics, play the case, delete the topics unless nothing is left of their cluster."""
    client = await Client.connect(*place.addresses[1])
    topics = Topics(client, start.versions, place)
    left = () if place.faults is not None else start.names.values()
    first = start.names[case.topics[0].name] if case.topics else ""
    nodes = Nodes(place, first, case.topics[0].replicas[0] if case.topics else 1)
    try:
        async with _deleted(topics, left):
            await topics.make(case, start.names)

            async def dial(node: int) -> Any:
                return await asyncio.open_connection(*place.addresses[node])

            return await Conversation(case, dial, start, nodes).play()
    finally:
        nodes.close()
        topics.close()
        client.close()


@asynccontextmanager
async def _deleted(topics: Topics, names: Collection[str]) -> AsyncIterator[None]:
    """Delete these topics in the end, whatever happens. Raises `CompareError` if one is left; an
    error on the way is more important."""
    try:
        yield
    except BaseException:
        with suppress(CompareError):
            await topics.delete(names)
        raise
    if names:
        await topics.delete(names)


# ---- a profile, in process


class ProfileBroker:
    """A profile on the deterministic loop: see the module's docstring."""

    nodes = MOST_NODES
    does_faults = True

    def __init__(self, profile: str):
        self.name = profile
        self.profile = profile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left of a case."""

    def versions(self) -> Versions:
        """See `Broker`."""

        async def ask(cluster: AsyncCluster) -> Versions:
            client = await Client.connect(*cluster.addresses[1])
            try:
                return await served_versions(client)
            finally:
                client.close()

        found: Versions = self._run(ask, 1)
        return found

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`."""
        if not case.own_cluster:
            return self.play_all([case], versions)[0]

        async def played(cluster: AsyncCluster) -> Transcript:
            start = Start(self.name, versions, names_of(case, "0"), EPOCH_MS)
            return await play_at(case, start, place_of(cluster, case))

        found: Transcript = self._run(played, case.nodes, case.settings)
        return found

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """See `Broker`: cases of one node without faults, on one node, whose start takes as long as
        some dozen requests."""

        async def played(cluster: AsyncCluster) -> list[Transcript]:
            found, place = [], Place({1: cluster.addresses[1]})
            for number, case in enumerate(cases):
                start = Start(self.name, versions, names_of(case, "0"), EPOCH_MS)
                if like:
                    start = start._replace(frames=_frames(case, start, like[number]))
                found.append(await play_at(case, start, place))
            return found

        found: list[Transcript] = self._run(played, 1)
        return found

    def _run(
        self,
        program: Callable[[AsyncCluster], Any],
        nodes: int,
        settings: Mapping[str, int] = NO_SETTINGS,
    ) -> Any:
        async def main(loop: DeterministicLoop) -> Any:
            cluster = AsyncCluster(
                nodes,
                config=config_of(self.profile, settings),
                clockwork=lambda _: LoopClockwork(loop),
                open_port=LoopPort,
            )
            await cluster.start()
            try:
                return await program(cluster)
            finally:
                await cluster.stop()

        try:
            return run(main, seed=SEED, patches=_OURS).result
        except ConfigError as error:
            raise CompareError(str(error)) from None


def config_of(profile: str, settings: Mapping[str, int]) -> ClusterConfig:
    """The configuration of a cluster that a case has for itself."""
    given = cast("Settings", dict(settings))
    return with_settings(ClusterConfig(profile=profile, replica_lag_ms=LAG_MS, seed=SEED), given)


def place_of(cluster: AsyncCluster, case: Case) -> Place:
    """A cluster that has no other case than this one."""
    numbers = range(1, case.nodes + 1)
    return Place(cluster.addresses, {each: each for each in numbers}, cluster)


def _frames(case: Case, start: Start, like: Transcript) -> dict[int, bytes]:
    """The requests of another broker that are the same here: if topics have the same names, the
    clocks the same time and the APIs the same versions, all but those that refer to an answer."""
    if (start.names, start.now, start.versions) != (like.names, like.now, like.versions):
        return {}
    own = {each.number for each in case.steps if each.refers}
    return {each.step: each.request for each in like.replies if each.step not in own}
