"""The brokers that can be compared: who plays a case, and where.

| class | a broker |
|---|---|
| `LiveBroker` | at an address, over TCP; whatever it is |
| `ProfileBroker` | a profile of Ottla's, on the deterministic loop: a fresh node for each case |
| `WireBroker` | the same profile as a cluster that serves over TCP, for all cases |
| `ottla.compare.recordings` | a broker that was recorded |

A case is played with the versions that the target serves, also to the other broker.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, Self

from ottla.broker.client import Client
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.errors import ConfigError, ErrorCode, FrameError
from ottla.broker.wire.client_requests import API_KEYS
from ottla.compare.case import Case
from ottla.compare.conversation import Conversation, Start
from ottla.compare.errors import CompareError
from ottla.compare.requests import USUAL_VERSIONS, Versions
from ottla.compare.topics import POLL_SECONDS, Topics, served_versions
from ottla.compare.transcript import Transcript
from ottla.sim.asyncio_runs.clockwork import LoopClockwork, LoopPort
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.outside import PATCHES
from ottla.sim.asyncio_runs.run import run
from ottla.sim.world.clocks import EPOCH_MS

CONNECT_SECONDS = 10.0
SEED = 1
_NO_NAME = re.compile(r"[^a-zA-Z0-9-]+")
_OURS = [each for each in PATCHES if not each.module.startswith("aiokafka")]
"""No client library runs here."""


class Broker(Protocol):
    """Who plays cases. Used as a context."""

    name: str
    """For people."""

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


async def _played(
    case: Case, start: Start, address: tuple[str, int], broker: int | None
) -> Transcript:
    """Make the topics, play the case, delete the topics."""
    host, port = address
    client = await Client.connect(host, port)
    topics = Topics(client, start.versions, broker)
    try:
        async with _deleted(topics, start):
            await topics.make(case, start.names)

            async def dial() -> Any:
                return await asyncio.open_connection(host, port)

            return await Conversation(case, dial, start).play()
    finally:
        client.close()


@asynccontextmanager
async def _deleted(topics: Topics, start: Start) -> AsyncIterator[None]:
    """Delete the topics of a case in the end, whatever happens. Raises `CompareError` if one is
    left; an error on the way is more important."""
    try:
        yield
    except BaseException:
        with suppress(CompareError):
            await topics.delete(start.names.values())
        raise
    if start.names:
        await topics.delete(start.names.values())


# ---- a profile, in process


class ProfileBroker:
    """A profile on the deterministic loop: see the module's docstring."""

    def __init__(self, profile: str):
        self.name = profile
        self._profile = profile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left of a case."""

    def versions(self) -> Versions:
        """See `Broker`."""

        async def ask(address: tuple[str, int]) -> Versions:
            client = await Client.connect(*address)
            try:
                return await served_versions(client)
            finally:
                client.close()

        found: Versions = self._run(ask)
        return found

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`."""
        return self.play_all([case], versions)[0]

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """See `Broker`: on one node, whose start takes as long as some dozen requests."""

        async def played(address: tuple[str, int]) -> list[Transcript]:
            found = []
            for number, case in enumerate(cases):
                start = Start(self.name, versions, names_of(case, "0"), EPOCH_MS)
                if like:
                    start = start._replace(frames=_frames(case, start, like[number]))
                found.append(await _played(case, start, address, None))
            return found

        found: list[Transcript] = self._run(played)
        return found

    def _run(self, program: Callable[[tuple[str, int]], Any]) -> Any:
        async def main(loop: DeterministicLoop) -> Any:
            cluster = AsyncCluster(
                1,
                profile=self._profile,
                seed=SEED,
                clockwork=lambda _: LoopClockwork(loop),
                open_port=LoopPort,
            )
            await cluster.start()
            try:
                return await program(cluster.addresses[1])
            finally:
                await cluster.stop()

        try:
            return run(main, seed=SEED, patches=_OURS).result
        except ConfigError as error:
            raise CompareError(str(error)) from None


def _frames(case: Case, start: Start, like: Transcript) -> dict[int, bytes]:
    """The requests of another broker that are the same here: if topics have the same names, the
    clocks the same time and the APIs the same versions, all but those that refer to an answer."""
    if (start.names, start.now, start.versions) != (like.names, like.now, like.versions):
        return {}
    own = {each.number for each in case.steps if each.refers}
    return {each.step: each.request for each in like.replies if each.step not in own}


# ---- a broker at an address


class LiveBroker:
    """A broker at an address; of a cluster the one at that address, else the first that it
    names."""

    def __init__(self, host: str, port: int, name: str = ""):
        self.name = name or f"{host}:{port}"
        self._host, self._port = host, port
        self._runner = asyncio.Runner()
        self._run = secrets.token_hex(4)
        self._address = host, port
        self._only_broker: int | None = None
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
        names = names_of(case, self._run)
        start = Start(self.name, versions, names, time.time_ns() // 1_000_000)
        try:
            return self._runner.run(_played(case, start, self._address, self._only_broker))
        except OSError as error:
            raise CompareError(f"{self.name}: {error.strerror or error}; is it up?") from None

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
        """All topics of cases lie on one broker: with several, the one that is asked is named."""
        if len(known.brokers) < 2:
            return
        here = [each for each in known.brokers if (each.host, each.port) == self._address]
        chosen = (here or sorted(known.brokers, key=lambda each: int(each.node_id)))[0]
        self._only_broker = int(chosen.node_id)
        self._address = str(chosen.host), int(chosen.port)


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
    """A profile as a cluster of one node, over TCP on this machine."""

    def __init__(self, profile: str):
        super().__init__("127.0.0.1", 0, f"{profile} over TCP")
        self._cluster = AsyncCluster(1, profile=profile)

    def __enter__(self) -> Self:
        self._runner.__enter__()
        try:
            self._runner.run(self._cluster.start())
            self._host, self._port = self._address = self._cluster.addresses[1]
            self._runner.run(self._look())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._cluster.stop())
        super().__exit__()
