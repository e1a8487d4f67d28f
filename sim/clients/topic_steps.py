"""The steps of the sequential client that create and delete its topic, or ask for none.

A topic is created and deleted by the controller, so any node is asked. A request whose answer is
lost may still do its work later: until an answer says what became of it, the topic is not deleted.

Source: K-CREATE-TOPICS; KIP-516.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.raft.types import Micros
from ottla.sim.chance.choices import Stream
from ottla.sim.clients.own_topic import MOST_BYTES, OWN_TOPICS
from ottla.sim.clients.read_steps import ReadSteps, Step, Told, other_than
from ottla.sim.clients.worker import MS
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.frames import create_topic, delete_topic_id, error_of_topic

MISNAMED = ("orders/eu", "orders eu", "", ".", "..", "n" * 250, "straße", "orders\n")
"""Names that no topic may have."""
MOST_SHOWN = 12
"""The most characters of a name in a row."""


class TopicSteps(ReadSteps):
    """See the module's text."""

    def __init__(self, config: RunConfig, stream: Stream, decoder: Decoder):
        super().__init__(stream, decoder)
        self._config = config
        self._there = False
        """Whether the topic exists."""
        self._topic_id: bytes | None = None
        self._uncertain = False
        """Whether a request to create the topic may still be under way."""
        self._timeout: Micros = config.request_timeout_ms * MS
        self.held_back = False
        """Whether committed records may be held back from readers: if too few replicas are in sync
        (decision 0014)."""

    def create(self) -> Step:
        """Create the topic, with limits of its own."""
        config, stream = self._config, self._stream
        replicas = min(config.nodes, config.replicas)
        least = stream.pick((1, 1, 1 + stream.below(replicas)))
        self.held_back = least > 1
        configs = {"max.message.bytes": MOST_BYTES, "min.insync.replicas": least}
        request = create_topic(self.topic, 1, replicas, self._timeout, configs)
        return Step(
            "create",
            request,
            self._judge_created,
            self._created,
            self._unanswered,
            anywhere=True,
            makes_topic=True,
        )

    def _judge_created(self, answer: Any, _: bool) -> Told:
        error = error_of_topic(answer)
        if self._uncertain and error is ErrorCode.TOPIC_ALREADY_EXISTS:
            return Told(error)
        return Told(error, "", other_than(error, ErrorCode.NONE))

    def _unanswered(self) -> None:
        self._uncertain = True

    def _created(self, answer: Any) -> None:
        self._there = True
        (topic,) = answer.topics
        self._topic_id = topic.topic_id if topic.error_code is ErrorCode.NONE else None

    def create_misnamed(self) -> Step:
        """Ask for a topic with a name that none may have, on each node alike."""
        name = self._stream.pick(MISNAMED)

        def judge(answer: Any, _: bool) -> Told:
            error = error_of_topic(answer)
            return Told(error, "", other_than(error, ErrorCode.INVALID_TOPIC_EXCEPTION))

        request = create_topic(name, 1, 1, self._timeout)
        return Step(f"create '{name[:MOST_SHOWN]}'", request, judge, anywhere=True)

    def delete(self) -> Step | None:
        """Delete the topic. None: another request may still create it, so the answer is unknown."""
        last = self.model.topics == len(OWN_TOPICS)
        if last or self._uncertain or self._topic_id is None:
            return None
        request = delete_topic_id(self._topic_id, self._timeout)
        return Step(
            "delete the topic",
            request,
            self._judge_deleted,
            self._deleted,
            anywhere=True,
            deletes_topic=True,
        )

    def _judge_deleted(self, answer: Any, _: bool) -> Told:
        error = error_of_topic(answer)
        return Told(error, "", other_than(error, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID))

    def _deleted(self, _: Any) -> None:
        self._there = False
        self.model.emptied()
