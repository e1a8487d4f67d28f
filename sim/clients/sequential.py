"""The sequential client: it alone writes to a topic, one request at a time, and knows each answer.

In two runs of three, a client makes a topic of its own and works with it under the same faults as
all others. It writes, writes again what is stored, leaves sequences out, begins epochs, asks for
ids, sends what is too large or too late, deletes records, reads from anywhere, asks for offsets,
and deletes the topic (`sim/clients/steps.py`). Each answer is compared with a model
(`sim/clients/topic_model.py`) and becomes a `step` row. Behind an answer that the model does not
give, a row of node 0 says what it gives (sim-I49).

A *step* is one request. It is sent again, to this node and that, until an answer says what became
of it; errors that have a client try again do not. The client asks the leader, now and then any
node, and often one that leads an older term: that node was deposed and may not know it. Beside its
steps it leaves requests for such nodes, which a frozen one answers when it goes on.

Its model knows the rules of two profiles; others have no such client, nor have runs in which
producers are soon forgotten, or in which a fault goes beyond the budget. All choices come from a
stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.raft.types import GroupId, Micros, NodeId, Term
from ottla.sim.clients.base import MS
from ottla.sim.clients.read_steps import Step, Told
from ottla.sim.clients.steps import Steps
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame
from ottla.sim.world.world import World

NUMBER = 4_000_000
"""Its number as a client."""
RUNS_WITHOUT = 3
"""One run of so many has none."""
MOST_STEPS = 48
"""Of a run."""
ACKS_0_WAIT: Micros = 100_000
"""Nobody answers a produce request with acks=0."""
PROFILES = ("reference", "reference-strict")
"""The rules that its model knows."""
MOST_OPEN = 3
"""Requests that may wait for deposed nodes at once."""
SHORT: Micros = 300_000
"""For as long most of these clients wait for an answer: then they ask another node."""
LONG: Micros = 12_000_000
"""Longer than any request may take."""
LEAST_EXPIRY_MS = 3_600_000
LEAST_PRODUCERS = 100
"""With fewer, or a shorter expiry, its producers may be forgotten in a run."""
AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that have a client try again: they do not say what became of the request."""


class Claim(NamedTuple):
    """A node that leads the topic's partition, or believes so."""

    term: Term
    node: NodeId


def may_work(config: RunConfig) -> bool:
    """Whether a model can know each answer in such a run."""
    return (
        config.profile in PROFILES
        and config.producer_expiry_ms >= LEAST_EXPIRY_MS
        and config.max_producers >= LEAST_PRODUCERS
    )


class SequentialClient:
    """See the module's text. `plan`: names of steps (`Steps`) that it takes, and then stops."""

    def __init__(self, world: World, plan: Sequence[str] = ()):
        self._world = world
        self._stream = world.choices.stream("sequential client")
        self._steps = Steps(world.config, self._stream, world.decoder, plan)
        self._count = 0
        self._planned = bool(plan)
        self._open = 0
        """Requests that wait for a deposed node."""
        self._until: Micros = 0
        self._known_in: dict[NodeId, int] = {}
        """The life of each node in which the topic was there already; later lives must know it."""
        self._patience: Micros = 0
        """For how long it waits for an answer."""
        self._maker: NodeId | None = None
        """The node that has just made the topic, until it was asked about it."""

    def start(self) -> None:
        """Begin, if this run has any: early in its load."""
        world, stream = self._world, self._stream
        if stream.below(RUNS_WITHOUT) and may_work(world.config):
            span = world.config.load_ms * MS
            patience = stream.pick(
                (SHORT, SHORT, SHORT, world.config.request_timeout_ms * MS, LONG)
            )
            self.begin(span, patience, after=stream.below(span // 8))

    def begin(self, span: Micros, patience: Micros, *, after: Micros = 0) -> None:
        """Begin `after` a while, and stop when `span` is over. `patience`: for how long it waits
        for an answer, unless that is too short."""
        world = self._world
        self._until = world.kernel.now + span
        self._patience = max(patience, world.config.patience_ms * MS // 2)
        world.other_group = self._group
        world.kernel.after(after, self._next)

    # ---- step by step

    def _next(self, then: Callable[[], Step] | None = None) -> None:
        """Take the next step, or the one that belongs behind the last."""
        self._count += 1
        over = self._count > MOST_STEPS or self._world.kernel.now >= self._until
        if over or (then is None and self._planned and not self._steps.planned):
            return
        step = self._steps.next() if then is None else then()
        if step.reads_beside is not None:
            self._ask(step.reads_beside, _nobody)
        self._ask_deposed()
        self._go(step)

    def _ask_deposed(self) -> None:
        """Leave something for a node that was deposed and may not know it, frozen or cut off."""
        claims = sorted(self._claims())
        if len(claims) > 1 and self._open < MOST_OPEN:
            step = self._steps.for_the_deposed()
            if step is not None:
                self._open += 1
                self._ask(step, self._closed, claims[0].node)

    def _closed(self, _: Any) -> None:
        self._open -= 1

    def _go(self, step: Step) -> None:
        if self._world.kernel.now < self._until:
            self._ask(step, lambda answer: self._came(step, answer))

    def _came(self, step: Step, answer: Any) -> None:
        """There is an answer that says what became of it, or none."""
        world, stream = self._world, self._stream
        if answer is not None:
            step.done(answer)
        if answer is not None or step.once:
            pause = stream.below(2) * stream.below(world.config.load_ms * MS // MOST_STEPS)
            world.kernel.after(pause, self._next, step.then)
        else:
            step.tried()
            world.kernel.after(world.config.retry_backoff_ms * MS, self._go, step)

    # ---- one request

    def _ask(self, step: Step, end: Callable[[Any], None], deposed: NodeId | None = None) -> None:
        """Send a step's request to a node: a `deposed` one, or one that is drawn. `end` is called
        once: with the answer, if that says what became of the request."""
        world = self._world
        claims = sorted(self._claims(), reverse=True)
        node = deposed or self._maker or self._node(claims, step)
        if deposed is None:
            self._maker = None
        sure = bool(claims) and node == claims[0].node and claims[0].term >= self._highest()
        sure = sure and not self._steps.held_back
        requests = [(step.request, step.judge), *([step.behind] if step.behind else [])]
        open_ = len(requests)
        first: Any = None

        def over(*_: Any) -> None:
            nonlocal open_
            if open_:
                open_ = 0
                connection.close()
                end(first)

        def come(answer: Frame) -> None:
            nonlocal open_, first
            told = requests[answer.number][1](answer.value, sure)
            self._note(step, node, told)
            if not answer.number and told.error not in AGAIN:
                first = answer.value
                if step.makes_topic:
                    self._made(node if told.error is ErrorCode.NONE else None)
            if open_ == 1:
                over()
            open_ = max(0, open_ - 1)

        connection = world.clients.connect(NUMBER, node, come, over)
        for number, (request, _) in enumerate(requests):
            connection.send(Frame(number, request))
        patience = LONG if deposed else self._patience
        world.kernel.after(patience if step.answered else ACKS_0_WAIT, over)

    def _made(self, node: NodeId | None) -> None:
        """The topic is there: whoever starts from here on knows it. So does a `node` that says that
        it was made; one that says that it was there already may not have heard of it."""
        lives = self._world.lives
        self._known_in = {each: life.inc for each, life in lives.items()}
        if node in lives:
            self._known_in[node] -= 1
            self._maker = node

    def _note(self, step: Step, node: NodeId, told: Told) -> None:
        note = self._world.history.add
        wrong = "" if told.error in AGAIN else told.wrong
        if told.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._must_know(node):
            wrong = "the topic was there before this node began"
        code = f"{step.what}: {told.text or told.error.name}"
        note("step", client=NUMBER, node=node, op=self._count, code=code)
        if wrong:
            note("step", client=NUMBER, node=MODEL_NODE, op=self._count, code=wrong)

    def _must_know(self, node: NodeId) -> bool:
        """Whether the node began its life when the topic was there: then it may not say that there
        is none. One that was there may lag behind."""
        life = self._world.lives.get(node)
        return life is not None and life.inc > self._known_in.get(node, 0)

    # ---- whom to ask

    def _node(self, claims: list[Claim], step: Step) -> NodeId:
        world, stream = self._world, self._stream
        which = stream.below(4)
        if not claims or which == 1 or step.anywhere:
            return stream.pick(world.nodes)
        return claims[-1 if which == 2 else 0].node

    def _claims(self) -> Iterator[Claim]:
        """Who leads the partition, or believes so."""
        group = self._group()
        if group is None:
            return
        for node, life in self._world.lives.items():
            view = life.view.replica(group)
            if view is not None and view.of_partition().serves:
                yield Claim(view.of_partition().term, node)

    def _highest(self) -> Term:
        """The highest term that any replica of the partition has known."""
        group = self._group()
        if group is None:
            return 0
        views = (life.view.replica(group) for life in self._world.everybody())
        return max((view.soft.term for view in views if view is not None), default=0)

    def _group(self) -> GroupId | None:
        """The topic's group, as the first node that knows the topic has it."""
        for life in self._world.lives.values():
            image = life.node.topics().get(self._steps.topic)
            if image is not None:
                return image.partitions[0].group
        return None


def _nobody(_: Any) -> None:
    """Nothing follows."""
