"""Steps of the sequential client that read, and what a step is.

A `Step` has a request, a judge of its answer, and a function by which the model
(`sim/clients/topic_model.py`) learns from the answer. Nothing is drawn twice for one step: a step
that is sent again is the same request. `ReadSteps` makes the steps that only read;
`sim/clients/steps.py` adds the others.

Source: K-FETCH; K-LIST-OFFSETS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.log.types import Millis, Offset
from ottla.raft.types import Micros
from ottla.sim.chance.choices import Stream
from ottla.sim.clients.consumer import EARLIEST, LATEST
from ottla.sim.clients.own_topic import OWN_TOPICS
from ottla.sim.clients.topic_model import Found, TopicModel
from ottla.sim.world.batch import time_of
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.frames import fetch, fetched, list_offsets, listed

LARGEST: Millis = -3
"""The special time of the record with the largest time (K-LIST-OFFSETS)."""
FAR = 1_000
"""How many records beyond the end a distant offset is."""
WAITS: Micros = 50_000
"""How long a fetch waits."""
ONE_BATCH = 1
MUCH = 1 << 20
"""Bytes of a fetch: more than the topic ever has."""


class Told(NamedTuple):
    """What an answer says, and what the model says if that is wrong."""

    error: ErrorCode
    text: str = ""
    """The answer in words; empty if it is an error."""
    wrong: str = ""
    """What the model says; empty if the answer is right."""


Judge = Callable[[Any, bool], Told]
"""Judges an answer. Its second argument: whether the node led in the highest term when asked."""


def _nothing(*_: object) -> None:
    """Learn nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, until an answer says what became of it."""

    what: str
    request: Any
    judge: Judge
    done: Callable[[Any], None] = _nothing
    """The model learns from the answer."""
    tried: Callable[[], None] = _nothing
    """The model learns that the outcome of one attempt is unknown."""
    once: bool = False
    """It is sent only once: the next step finds out what became of it."""
    answered: bool = True
    anywhere: bool = False
    """Any node may be asked, because the controller decides."""
    makes_topic: bool = False
    deletes_topic: bool = False
    then: Callable[[], Step] | None = None
    """The step that must follow."""
    behind: Sequence[tuple[Any, Judge]] = ()
    """More requests, sent at once on the same connection, and the judge of each answer."""
    ends_connection: bool = False
    """Whether a node that does not lead must close the connection, and answer nothing after it."""
    reads_beside: Step | None = field(default=None)
    """A fetch that waits in the meantime."""


class ReadSteps:
    """See the module's text."""

    def __init__(self, stream: Stream, decoder: Decoder):
        self.model = TopicModel()
        self._stream = stream
        self._decoder = decoder
        self._values = 0
        """How many records there have been in all topics."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        return OWN_TOPICS[self.model.topics - 1]

    def _lists(self, what: str, time: Millis, wrong: Callable[..., str]) -> Step:
        def judge(answer: Any, sure: bool) -> Told:
            part = listed(answer)
            if part.error_code is not ErrorCode.NONE:
                return Told(part.error_code, "", other_than(part.error_code, ErrorCode.NONE))
            text = f"offset {part.offset}, time {part.timestamp}, epoch {part.leader_epoch}"
            return Told(part.error_code, text, wrong(part, sure=sure))

        return Step(f"ask for {what}", list_offsets(0, time, topic=self.topic), judge)

    def latest(self) -> Step:
        """Where the log ends."""
        return self._lists("the end", LATEST, partial(self.model.wrong_end, True))

    def earliest(self) -> Step:
        """Where the log begins."""
        return self._lists("the start", EARLIEST, partial(self.model.wrong_end, False))

    def by_time(self) -> Step:
        """The first record that is not older than a time: the time of a record, or 1 ms beside it.
        Half of the time it is the last record that was deleted, if there is one."""
        model, stream = self.model, self._stream
        value = model.last_deleted() if stream.below(2) else None
        value = stream.below(self._values) if value is None else value
        time = time_of(value) + stream.pick((0, 0, 1, -1))
        return self._finds(f"time {time}", time, self.model.first_of(time))

    def largest(self) -> Step:
        """The record with the largest time."""
        return self._finds("the largest time", LARGEST, self.model.largest())

    def _finds(self, what: str, time: Millis, right: Found) -> Step:
        return self._lists(what, time, partial(self.model.wrong_time, right))

    def fetch(self, off: Offset, least: int = ONE_BATCH) -> Step:
        """Read from an offset, or wait a while for `least` bytes."""
        model, asked, topics = self.model, self.model.extent, self.model.topics
        most = self._stream.pick((MUCH, ONE_BATCH))
        request = fetch(0, off, most, WAITS, topic=self.topic)._replace(min_bytes=least)

        def judge(answer: Any, sure: bool) -> Told:
            part, wrong = fetched(answer), ""
            told = [f"{each.base_offset}-{each.last_offset}" for each in part.batches]
            text = f"high watermark {part.high_watermark}, batches {' '.join(told) or 'none'}"
            if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                text = ""
                if asked.start <= off <= asked.end and model.start <= off:
                    wrong = f"there are {asked.start} to {asked.end}"
            elif part.error is not ErrorCode.NONE:
                text, wrong = "", other_than(part.error, ErrorCode.NONE)
            elif model.topics == topics:
                wrong = model.wrong_fetch(off, part, self._decoder, asked, sure=sure)
            return Told(part.error, text, "" if model.topics != topics else wrong)

        return Step(f"read from {off}", request, judge)

    def anywhere(self) -> Offset:
        """The offset of a record, or the end."""
        start, end = self.model.start, self.model.end
        return start + self._stream.below(end - start + 1)

    def read(self) -> Step:
        """Read from any offset."""
        return self.fetch(self.anywhere(), self._stream.pick((ONE_BATCH, ONE_BATCH, MUCH)))

    def read_beyond(self) -> Step:
        """Read from beyond the end, or from below the start."""
        model = self.model
        ahead = model.end + self._stream.pick((1, 2, FAR))
        return self.fetch(self._stream.pick((ahead, model.start - 1)) if model.start else ahead)


def other_than(error: ErrorCode, *right: ErrorCode) -> str:
    """What the model says, if the answer has another error. The sender of the step ignores that for
    retriable errors."""
    return "" if error in right else " or ".join(each.name for each in right)
