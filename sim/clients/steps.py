"""The steps of the sequential client: what it asks next, and what the answer should be.

The model (`sim/clients/topic_model.py`) knows the answer to each step that `Steps.next` draws. A
step creates or deletes the topic (`sim/clients/topic_steps.py`), asks for a producer id, writes, or
writes what must be refused; or it reads (`sim/clients/read_steps.py`).

Source: KIP-98; KIP-360; K-RULES; K-CREATE-TOPICS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.requests import InitProducerIdRequest
from ottla.log.types import Millis, Offset
from ottla.sim.chance.choices import Stream
from ottla.sim.clients.consumer import LATEST
from ottla.sim.clients.own_topic import MOST_BYTES
from ottla.sim.clients.read_steps import MUCH, Judge, Step, Told, other_than
from ottla.sim.clients.topic_model import Written
from ottla.sim.clients.topic_steps import TopicSteps
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.frames import (
    delete_records,
    deleted,
    list_offsets,
    listed,
    produce,
    produced,
)
from ottla.sim.world.reference_model import SEQUENCES, WINDOW

MOST_AT_RISK = 4
"""The most batches in a row with acks of 1 or 0."""
MOST_RECORDS = 4
"""The most records in a batch."""
FAR_AHEAD: Millis = 1 << 52
"""A time that no clock will ever show."""
ALL, LEADER, NOBODY = -1, 1, 0
"""Acks."""


class Steps(TopicSteps):
    """See the module's text. `plan`: names of the steps to take, instead of drawn ones."""

    def __init__(
        self, config: RunConfig, stream: Stream, decoder: Decoder, plan: Sequence[str] = ()
    ):
        super().__init__(config, stream, decoder)
        self._plan = deque(plan)

    @property
    def planned(self) -> int:
        """How many steps of the plan are left."""
        return len(self._plan)

    def next(self, *, deposed: bool = False) -> Step:
        """The next step. `deposed`: whether an older leader is left, which should lack much."""
        if not self._there:
            return self.create()
        if self.model.pid < 0:
            return self.ask_id()
        if not self.model.batches:
            return self.append()
        if self._plan:
            step: Step = getattr(self, self._plan.popleft().replace("-", "_"))()
            return step
        return self._stream.pick(_BESIDE_THE_DEPOSED if deposed else _STEPS)(self)

    # ---- producers

    def delete_topic(self) -> Step:
        """Delete the topic, unless another request may still create it."""
        return self.delete() or self.append()

    def ask_id(self) -> Step:
        """Ask for a producer id, with which this client writes from now on."""

        def judge(answer: Any, _: bool) -> Told:
            error, pid, epoch = answer.error_code, answer.producer_id, answer.producer_epoch
            text = f"id {pid}, epoch {epoch}"
            if error is not ErrorCode.NONE:
                return Told(error, "", other_than(error, ErrorCode.NONE))
            fits = pid >= 0 and epoch == 0 and pid not in self.model.ids
            return Told(error, text, "" if fits else "a new id, epoch 0")

        def done(answer: Any) -> None:
            first = SEQUENCES - 1 - self._stream.below(3) if self._anywhere() else 0
            self.model.began(answer.producer_id, first)

        return Step("ask for an id", InitProducerIdRequest(), judge, done, anywhere=True)

    def _batch(self, *, epoch: int | None = None, seq: int | None = None) -> Written:
        model, first = self.model, self._values
        self._values += 1 + self._stream.below(MOST_RECORDS)
        return Written(
            tuple(range(first, self._values)),
            model.pid,
            model.epoch if epoch is None else epoch,
            model.next_seq if seq is None else seq,
        )

    def _produce(self, batch: Written, acks: int = ALL) -> Any:
        return self._send(batch.encode(), acks)

    def _send(self, data: bytes, acks: int = ALL) -> Any:
        return produce(acks, self._timeout, ((0, data),), self.topic)

    def append(self, batch: Written | None = None) -> Step:
        """Write a batch with acks=all: the next one, unless `batch` is given."""
        model, stream = self.model, self._stream
        if batch is None:
            batch = self._batch()
        if not model.coming:
            model.writes(batch)
        where = model.end

        def judge(answer: Any, _: bool) -> Told:
            return self._stored_at(answer, where, sure=True)

        what = f"write {len(batch.values)} records, epoch {batch.epoch}, sequence {batch.seq}"
        beside = self.fetch(self.anywhere(), MUCH) if stream.below(4) == 1 else None
        return Step(
            what,
            self._produce(batch),
            judge,
            lambda _: model.stored(batch),
            then=self._settle if len(model.coming) > 1 else None,
            reads_beside=beside,
        )

    def _settle(self) -> Step:
        """Write, with acks=all, the next of the batches that were written at risk."""
        return self.append(self.model.coming[0])

    def append_at_risk(self) -> Step:
        """Write the next batches with acks=1 or 0: all of them twice at once, or one after the
        other. Then write them with acks=all, whether they are stored or not."""
        batch = self._batch()
        self.model.writes(batch)
        for _ in range(self._stream.below(MOST_AT_RISK)):
            self.model.writes(self._batch(seq=self.model.coming[-1].next_seq))
        return self._pile() if self._stream.below(3) == 1 else self._risk(0)

    def _at_risk(self, place: int) -> Judge:
        batch = self.model.coming[place]

        def judge(answer: Any, sure: bool) -> Told:
            (part,) = produced(answer)
            if place and part.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                return Told(part.error)  # the one before it was not stored, or was lost
            return self._stored_at(answer, batch.off, sure=sure)

        return judge

    def _pile(self) -> Step:
        """All that is coming at once, each batch twice: more than the leader may have in flight,
        perhaps."""
        requests = [
            (self._produce(batch, LEADER), self._at_risk(place))
            for place, batch in enumerate(self.model.coming)
            for _ in range(2)
        ]
        first, judge = requests.pop(0)
        what = f"write {len(self.model.coming)} batches twice at once, acks=1"
        return Step(what, first, judge, once=True, behind=requests, then=self._settle)

    def _risk(self, place: int) -> Step:
        coming = self.model.coming
        batch, acks = coming[place], self._stream.pick((LEADER, LEADER, LEADER, NOBODY))
        judge = self._at_risk(place)
        request = self._produce(batch, acks)
        behind = (request, judge)
        if acks == NOBODY:
            behind = (list_offsets(0, LATEST, topic=self.topic), self._seen)
        last = place + 1 == len(coming)
        return Step(
            f"write epoch {batch.epoch}, sequence {batch.seq}, acks={acks}",
            request,
            judge,
            once=True,
            answered=acks != NOBODY,
            behind=(behind,),
            ends_connection=acks == NOBODY,
            then=self._settle if last else partial(self._risk, place + 1),
        )

    def _seen(self, answer: Any, _: bool) -> Told:
        """Only whether the node leads is of interest."""
        error = listed(answer).error_code
        return Told(error, "", other_than(error, ErrorCode.NONE))

    def _stored_at(self, answer: Any, where: Offset, *, sure: bool) -> Told:
        (part,) = produced(answer)
        if part.error is not ErrorCode.NONE:
            return Told(part.error, "", other_than(part.error, ErrorCode.NONE))
        start = self.model.start
        right = part.base_offset == where if sure else 0 <= part.base_offset <= where
        right = right and part.log_start_offset <= start
        text = f"offset {part.base_offset}, log start {part.log_start_offset}"
        return Told(part.error, text, "" if right else f"offset {where}, log start {start}")

    def again(self) -> Step:
        """Write a stored batch again: it is recognised, or too old for that."""
        known = self.model.known_again()
        if not known:
            return self.append()
        place = self._stream.below(min(len(known), WINDOW + 2))
        batch = known[-1 - place]
        what = f"write again epoch {batch.epoch}, sequence {batch.seq}"
        if place >= WINDOW:
            return self._refused(what, batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

        def judge(answer: Any, _: bool) -> Told:
            return self._stored_at(answer, batch.off, sure=True)

        acks = self._stream.pick((ALL, ALL, LEADER))
        return Step(what, self._produce(batch, acks), judge)

    def for_the_deposed(self) -> Step | None:
        """A request to a deposed node: it reads what that node may lack, or writes again a batch
        whose predecessor that node may lack. The answer may come late: by then the node may lead
        again, and the client may be many steps ahead."""
        model, asked, stream = self.model, self.model.topics, self._stream
        known = model.known_again()
        if not known or stream.below(2):
            return self.fetch(model.end - stream.below(2)) if model.batches else None
        batch = known[-1 - stream.below(min(len(known), WINDOW - 1))]

        def judge(answer: Any, _: bool) -> Told:
            if model.topics != asked:
                return Told(ErrorCode.REQUEST_TIMED_OUT)  # the topic is another one, or gone
            (part,) = produced(answer)
            over = (model.pid, model.epoch) != (batch.pid, batch.epoch) or model.coming
            if over or batch not in model.known_again()[-WINDOW:]:
                return Told(part.error)
            return self._stored_at(answer, batch.off, sure=True)

        what = f"write again epoch {batch.epoch}, sequence {batch.seq}"
        return Step(what, self._produce(batch), judge)

    def _refused(self, what: str, batch: Written, error: ErrorCode, request: Any = None) -> Step:
        def judge(answer: Any, _: bool) -> Told:
            (part,) = produced(answer)
            return Told(part.error, "", other_than(part.error, error))

        return Step(what, request or self._produce(batch), judge)

    def _anywhere(self) -> bool:
        """Whether an unknown producer may begin at any sequence."""
        return profile_named(self._config.profile).rulebook.begins_anywhere

    def gap(self) -> Step:
        """Write a batch after one that is missing. If a producer may begin with any sequence, the
        first batch must come before that."""
        if (
            not self.model.known_again()
            and profile_named(self._config.profile).rulebook.begins_anywhere
        ):
            return self.append()
        ahead = self.model.next_seq + 1 + self._stream.below(3)
        batch = self._batch(seq=ahead % SEQUENCES)
        return self._refused("leave out", batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def stale(self) -> Step:
        """Write a batch of an old epoch."""
        if not self.model.epoch or not self.model.known_again():
            return self.append()
        batch = self._batch(epoch=self.model.epoch - 1, seq=self._stream.below(3))
        return self._refused("write in an old epoch", batch, ErrorCode.INVALID_PRODUCER_EPOCH)

    def new_epoch(self) -> Step:
        """Write the first batch of the next epoch."""
        if not self.model.known_again():
            return self.append()
        return self.append(self._batch(epoch=self.model.epoch + 1, seq=0))

    def epoch_from_within(self) -> Step:
        """Write a batch of the next epoch that is not its first."""
        if not self.model.known_again():
            return self.append()
        batch = self._batch(epoch=self.model.epoch + 1, seq=1 + self._stream.below(3))
        what = f"begin epoch {batch.epoch} with sequence {batch.seq}"
        return self._refused(what, batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def too_large(self) -> Step:
        """Write a batch above the topic's own limit."""
        batch = self._batch()
        request = self._send(batch.encode(size=MOST_BYTES))
        return self._refused("write too much", batch, ErrorCode.MESSAGE_TOO_LARGE, request)

    def far_ahead(self) -> Step:
        """Write a batch with a time in the distant future."""
        batch = self._batch()
        request = self._send(batch.encode(time=FAR_AHEAD))
        return self._refused("write of another age", batch, ErrorCode.INVALID_TIMESTAMP, request)

    def delete_records(self) -> Step:
        """Move the log start, unless it is there already. A second request, sent at once, asks for
        less."""
        model, stream = self.model, self._stream
        off, lower = stream.below(model.end + 1), stream.below(model.end + 1)
        off, lower = max(off, lower), min(off, lower)
        right, least = max(off, model.start), max(lower, model.start)

        def judge(least: Offset, answer: Any, _: bool) -> Told:
            part = deleted(answer)
            if part.error_code is not ErrorCode.NONE:
                return Told(part.error_code, "", other_than(part.error_code, ErrorCode.NONE))
            fits = least <= part.low_watermark <= right
            wrong = "" if fits else f"log start {least} to {right}"
            return Told(part.error_code, f"log start {part.low_watermark}", wrong)

        def done(_: Any) -> None:
            model.start = right

        request = delete_records(0, off, self._timeout, self.topic)
        behind = delete_records(0, lower, self._timeout, self.topic)
        what = f"delete up to {off}, and up to {lower}"
        # The second may be decided before the first is committed.
        second = ((behind, partial(judge, least)),)
        return Step(what, request, partial(judge, right), done, behind=second)


_STEPS: tuple[Callable[[Steps], Step], ...] = (
    *(Steps.append,) * 6,
    *(Steps.append_at_risk,) * 3,
    *(Steps.again,) * 4,
    *(Steps.gap, Steps.gap, Steps.stale, Steps.new_epoch, Steps.new_epoch),
    *(Steps.epoch_from_within, Steps.ask_id, Steps.too_large, Steps.far_ahead),
    *(Steps.latest, Steps.earliest, Steps.by_time, Steps.by_time, Steps.largest),
    *(Steps.read, Steps.read, Steps.read, Steps.read_beyond, Steps.read_beyond),
    *(Steps.delete_records, Steps.delete_topic, Steps.create_misnamed),
)
"""The steps to draw from. A step is drawn as often as it appears here."""
_BESIDE_THE_DEPOSED = (
    *(Steps.append, Steps.append, Steps.append, Steps.append_at_risk),
    *(Steps.new_epoch, Steps.new_epoch, Steps.delete_records),
)
"""The same, while two nodes lead: what the deposed one then lacks."""
