"""Plays a case to a broker over its connections, and writes down what the broker does.

Requests of a group (a step and the pipelined ones behind it) are written at once, then their
answers are awaited; those of steps that stay in flight are awaited in the end. A request that has
no answer is followed by a question about versions: if that one is answered, the connection serves
on; if the connection ends instead, it was closed; if neither happens, there is silence. A
connection that was closed is opened again by the next step on it.

It runs on any event loop: with real time, or in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ottla.broker.client import MAX_ANSWER_BYTES
from ottla.compare.case import Act, Case, Outcome, Raw, Request, Step, Wait
from ottla.compare.nodes import Nodes
from ottla.compare.requests import Situation, Versions, frame_of, with_correlation_id
from ottla.compare.transcript import Reply, Transcript, expects_answer, reply_to, resolver

PATIENCE_SECONDS = 8.0
"""How long an answer may take. A step that expects silence waits `SILENCE_SECONDS` instead."""
SILENCE_SECONDS = 1.0
PROBE_CLIENT_ID = "ottla-probe"
"""The client id of the question about versions, so that a broker's log shows which it was."""

Dial: TypeAlias = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a node, by its number in the case."""
_PROBE = Request("api_versions", 18, 0, {}, client_id=PROBE_CLIENT_ID)


class Start(NamedTuple):
    """What is known when a case begins."""

    broker: str
    versions: Versions
    names: Mapping[str, str]
    now: int
    frames: Mapping[int, bytes] = {}
    """Frames by the number of their step, from a broker that was asked the same; those that are not
    there are built."""


@dataclass
class _Asked:
    """A request that was written."""

    step: Step | None
    """None: a probe."""
    correlation_id: int
    frame: bytes
    answered: bool
    """Whether a broker must answer it: not with acks=0, and not raw bytes."""
    at: float = 0.0


@dataclass
class _Channel:
    """One connection: what was asked on it, and what has come."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asked: list[_Asked] = field(default_factory=list)
    answers: dict[int, tuple[bytes, float]] = field(default_factory=dict)
    """By correlation id: the frame, and when it came."""
    latest: int = 0
    """The highest correlation id of a request that must be answered and is."""
    disordered: set[int] = field(default_factory=set)
    closed: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Read frames until the connection ends."""
        loop = asyncio.get_running_loop()
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self.reader.readexactly(4)
                size = int.from_bytes(head, signed=True)
                if not 4 <= size <= MAX_ANSWER_BYTES:
                    break
                body = await self.reader.readexactly(size)
                self._came(int.from_bytes(body[:4], signed=True), head + body, loop.time())
        self.closed = True
        self.news.set()

    def _came(self, correlation_id: int, frame: bytes, at: float) -> None:
        for each in self.asked:
            if each.correlation_id == correlation_id:
                if each.answered:
                    self.latest = max(self.latest, correlation_id)
                break
            if each.answered and each.correlation_id not in self.answers:
                self.disordered.add(correlation_id)
        self.answers[correlation_id] = frame, at
        self.news.set()

    def over(self, asked: _Asked) -> bool:
        """Whether it is known what became of a request."""
        if asked.correlation_id in self.answers or self.closed:
            return True
        return self._passed(asked)

    def _passed(self, asked: _Asked) -> bool:
        """Whether it is a request without an answer, and a later one is answered."""
        return not asked.answered and self.latest > asked.correlation_id

    async def _until_over(self, asked: _Asked, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.over(asked):
                    self.news.clear()
                    await self.news.wait()

    async def wait(self, asked: _Asked, seconds: float) -> Outcome:
        """What becomes of a request."""
        if not self.over(asked):
            await self._until_over(asked, seconds)
        if asked.correlation_id in self.answers:
            disordered = asked.correlation_id in self.disordered
            return Outcome.DISORDERED if disordered else Outcome.ANSWERED
        if not self.over(asked):
            return Outcome.SILENT
        return Outcome.UNANSWERED if self._passed(asked) else Outcome.CLOSED


class Conversation:
    """One case, played once; see the module's docstring."""

    def __init__(self, case: Case, dial: Dial, start: Start, nodes: Nodes | None = None):
        """`nodes`: None if the case is about one node, and does nothing to it."""
        self._case = case
        self._dial = dial
        self._nodes = nodes
        self._start = start
        self._replies: dict[int, Reply] = {}
        self._channels: dict[tuple[str, int], _Channel] = {}
        """By connection and node."""
        self._in_flight: list[tuple[_Channel, _Asked]] = []
        self._readers: list[asyncio.Task[None]] = []
        self._next = 1
        resolve = resolver(case, self._replies)
        self._situation = Situation(start.versions, start.names, start.now, resolve)

    async def play(self) -> Transcript:
        """Play all steps. Raises `OSError` if the broker cannot be reached, `CompareError` if a
        step cannot be asked because an earlier one was not answered as it must be."""
        try:
            for group in groups(self._case.steps):
                ask = group[0].ask
                if isinstance(ask, Wait):
                    await asyncio.sleep(ask.ms / 1000)
                elif isinstance(ask, Act):
                    assert self._nodes is not None, "brokers that play acts have nodes"
                    await self._nodes.perform(ask)
                else:
                    await self._play(group)
            for channel, asked in self._in_flight:
                await self._await(channel, asked)
        finally:
            await self._hang_up()
        start = self._start
        replies = tuple(self._replies[number] for number in sorted(self._replies))
        return Transcript(
            self._case.name, start.broker, start.now, start.names, start.versions, replies
        )

    async def _play(self, group: list[Step]) -> None:
        written: list[tuple[_Channel, _Asked]] = []
        for step in group:
            channel = await self._channel((step.connection, self._node(step)))
            asked = self._ask(step)
            channel.asked.append(asked)
            written.append((channel, asked))
        now = asyncio.get_running_loop().time()
        for channel in {id(each): each for each, _ in written}.values():
            mine = [asked for each, asked in written if each is channel]
            for each in mine:
                each.at = now
            # In one write: one more would fail if the broker has closed the connection meanwhile,
            # and asyncio would drop what it has answered before.
            frames = [each.frame for each in mine]
            if not all(each.answered for each in mine):
                frames.append(self._probe(channel))
            channel.writer.write(b"".join(frames))
        for channel, asked in written:
            if asked.step is not None and asked.step.in_flight:
                self._in_flight.append((channel, asked))
            else:
                await self._await(channel, asked)

    def _ask(self, step: Step) -> _Asked:
        number, self._next = self._next, self._next + 1
        if isinstance(step.ask, Raw):
            return _Asked(step, number, step.ask.data, answered=False)
        assert isinstance(step.ask, Request)
        known = self._start.frames.get(step.number)
        if known is None:
            # Loading has built it once; only what an answer is put into may not fit.
            frame = frame_of(step.ask, number, self._situation, checked=not step.refers)
        else:
            frame = with_correlation_id(known, number)
        return _Asked(step, number, frame, answered=expects_answer(step))

    def _probe(self, channel: _Channel) -> bytes:
        number, self._next = self._next, self._next + 1
        frame = frame_of(_PROBE, number, self._situation)
        channel.asked.append(_Asked(None, number, frame, answered=True))
        return frame

    async def _await(self, channel: _Channel, asked: _Asked) -> None:
        step = asked.step
        assert step is not None
        outcome = await channel.wait(asked, _patience(step))
        frame, at = channel.answers.get(asked.correlation_id, (None, asked.at))
        took = round((at - asked.at) * 1000, 3)
        versions = self._start.versions
        reply = reply_to(step, outcome, asked.frame, frame, took=took, versions=versions)
        self._replies[step.number] = reply

    def _node(self, step: Step) -> int:
        """The number of the node that a step goes to."""
        return int(step.node) if self._nodes is None else self._nodes.number(step.node)

    async def _channel(self, name: tuple[str, int]) -> _Channel:
        found = self._channels.get(name)
        if found is not None:
            if not found.closed:
                return found
            found.writer.close()
        channel = self._channels[name] = _Channel(*await self._dial(name[1]))
        self._readers.append(asyncio.create_task(channel.read()))
        return channel

    async def _hang_up(self) -> None:
        for channel in self._channels.values():
            channel.writer.close()
        for each in self._readers:
            each.cancel()
        for each in self._readers:
            with suppress(asyncio.CancelledError):
                await each


def groups(steps: tuple[Step, ...]) -> Iterator[list[Step]]:
    """Steps that are written together."""
    group: list[Step] = []
    for step in steps:
        if group and not step.pipelined:
            yield group
            group = []
        group.append(step)
    yield group


def _patience(step: Step) -> float:
    wanted = [step.expect, *step.differs.values()]
    silent = any(each.outcome is Outcome.SILENT for each in wanted)
    return SILENCE_SECONDS if silent else PATIENCE_SECONDS
