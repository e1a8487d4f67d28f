"""Topic requests: a client that has extra topics created and deleted, besides the one for records.

In one run of two it sends a few requests over the load: to create a new topic, one that exists,
or one that was deleted; to delete a topic, or one that is gone. One request is open at a time, to
any node. A request may have no definite outcome: its connection broke, or the controller was not
reached in time. Then its topic is left alone: whether it exists is unknown, but all nodes must
agree about it. Every step is a `topic` row, and so is, at the end, what each node knows
(`sim/ending/topics.py`); sim-I48 judges them.

All choices come from a stream of their own, so other runs do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.requests import CreateTopicsRequest, DeleteTopicsRequest
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.worker import MS
from ottla.sim.world.frames import Frame, create_topic, delete_topic, error_of_topic
from ottla.sim.world.world import World

NUMBER = 3_000_000
"""Its client number."""
ONE_RUN_IN = 2
REQUESTS = 16
"""How many such a run has at most: none is sent while an answer is awaited."""
MOST_PARTITIONS = 2
CREATE, DELETE = "create", "delete"
LATE = "timeout"
"""The outcome of a request that was not answered in time."""
_DONE = {CREATE: "created", DELETE: "deleted"}
_PREFIX = "topic-"
_AGAIN = {ErrorCode.TOPIC_ALREADY_EXISTS.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name}
"""Proper answers about a topic that exists already, or is gone."""


def name_of(topic: int) -> str:
    """The name of a topic."""
    return f"{_PREFIX}{topic}"


def is_numbered(name: str) -> bool:
    """Whether `name_of` could have given a topic this name."""
    return name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal()


def number_of(name: str) -> int:
    """The number of the topic of that name."""
    return int(name.removeprefix(_PREFIX))


def partitions_of(topic: int) -> int:
    """With how many partitions a topic is created."""
    return 1 + topic % MOST_PARTITIONS


class TopicRequest:
    """One request to `node`, to create or delete a topic. Its begin and its end are rows. `heard`
    is called with the code of the end: what was done, the name of an error, or why there is no
    answer."""

    def __init__(
        self, world: World, node: NodeId, what: str, topic: int, heard: Callable[[str], None]
    ):
        self._what = what
        self._heard = heard
        self._open = True
        count = partitions_of(topic)
        self._note = partial(
            world.history.add, "topic", client=NUMBER, node=node, op=topic, aux=count
        )
        self._note(code=what)
        timeout = world.config.request_timeout_ms * MS
        self._connection = world.clients.connect(NUMBER, node, self._answered, self._end)
        self._connection.send(Frame(1, _request(world, what, topic, timeout)))
        world.kernel.after(2 * timeout, self._late)

    def _answered(self, answer: Frame) -> None:
        self._connection.close()
        error = error_of_topic(answer.value)
        self._end(_DONE[self._what] if error is ErrorCode.NONE else error.name)

    def _late(self) -> None:
        if self._open:
            self._connection.close()
            self._end(LATE)

    def _end(self, code: str) -> None:
        self._open = False
        self._note(code=code)
        self._heard(code)


def _request(
    world: World, what: str, topic: int, timeout: Micros
) -> CreateTopicsRequest | DeleteTopicsRequest:
    name = name_of(topic)
    if what == DELETE:
        return delete_topic(name, timeout)
    replicas = min(len(world.nodes), world.config.replicas)
    return create_topic(name, partitions_of(topic), replicas, timeout)


class TopicRequests:
    """See the module's docstring."""

    def __init__(self, world: World):
        self._world = world
        self._stream = world.choices.stream("topic requests")
        self._made: list[int] = []
        self._gone: list[int] = []
        self._topics = 0
        self._waiting = False
        """Whether a request is under way."""

    def start(self) -> None:
        """Schedule the requests at random times of the load, if this run has any."""
        world, stream = self._world, self._stream
        if stream.below(ONE_RUN_IN) == 1:
            for _ in range(REQUESTS):
                world.kernel.after(stream.below(world.config.load_ms * MS), self.strike)

    def strike(self) -> None:
        """Send a request, unless an answer is awaited."""
        stream = self._stream
        node, which = stream.pick(self._world.nodes), stream.below(7)
        if self._waiting:
            return
        if which == 1 and self._made:
            self._ask(node, CREATE, stream.pick(self._made))
        elif which == 2 and self._gone:
            self._ask(node, DELETE, stream.pick(self._gone))
        elif which in {3, 4} and self._made:
            self._ask(node, DELETE, stream.pick(self._made))
        elif which in {5, 6} and self._gone:
            self._ask(node, CREATE, stream.pick(self._gone))
        else:
            self._topics += 1
            self._ask(node, CREATE, self._topics)

    def _ask(self, node: NodeId, what: str, topic: int) -> None:
        self._waiting = True
        TopicRequest(self._world, node, what, topic, partial(self._over, topic))

    def _over(self, topic: int, code: str) -> None:
        """Update what is known of the topic."""
        self._waiting = False
        if code in _AGAIN:
            return
        for known in (self._made, self._gone):
            if topic in known:
                known.remove(topic)
        if code in _DONE.values():
            (self._made if code == _DONE[CREATE] else self._gone).append(topic)
