"""The sequential client: the only writer of its topic, with one request at a time.

Therefore it knows what each answer must be. In five runs of six, such a client creates a topic of
its own and works with it under the same faults as all other clients. It writes, sends stored
batches again, leaves sequences out, begins epochs, asks for producer ids, sends batches that are
too large or too far ahead in time, deletes records, reads from any offset, asks for offsets,
deletes the topic, and asks for topics with names that none may have (`sim/clients/steps.py`). Each
answer is compared with a model (`sim/clients/topic_model.py`) and becomes a `step` row. If the
model gives another answer, a row of node 0 follows and says which (sim-I49). Now and then it has
its own leader deposed.

A *step* is one request. The client sends it again, to various nodes, until an answer says what
became of it; a retriable error does not say that. The client asks the leader, sometimes any node,
and often a node that leads an older term: it was deposed, and may not know that. Besides its steps,
the client sends requests to such nodes and does not wait; a frozen node answers when it goes on.

The model knows the rules of two profiles, so runs with other profiles have no such client. Runs in
which producers are soon forgotten, or with a fault beyond the budget, have none either. All choices
come from a stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.raft.roles import Role
from ottla.raft.types import GroupId, Micros, NodeId, Term
from ottla.sim.clients.read_steps import Step, Told
from ottla.sim.clients.steps import Steps
from ottla.sim.clients.worker import MS
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame
from ottla.sim.world.world import World

NUMBER = 4_000_000
"""Its client number."""
RUNS_WITHOUT = 6
"""One run in this many has no such client."""
MOST_STEPS = 48
"""The most steps in a run."""
DEPOSED = 8
"""How often at most it has the leader of its partition deposed in a run."""
DEPOSES_AT = 3
"""One step in this many begins with that."""
ACKS_0_WAIT: Micros = 100_000
"""How long it waits after a produce request with acks=0, which is never answered."""
PROFILES = ("reference", "reference-strict")
"""The profiles whose rules the model knows."""
MOST_OPEN = 6
"""The most requests that wait for deposed nodes at one time."""
SHORT: Micros = 300_000
"""How long most of these clients wait for an answer before they ask another node."""
LONG: Micros = 12_000_000
"""Longer than any request may take: the patience of the other clients."""
LEAST_EXPIRY_MS = 3_600_000
LEAST_PRODUCERS = 100
"""With fewer producers in the table, or a shorter expiry, its producers may be forgotten."""
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
"""Retriable errors: they do not say what became of the request."""


Following: TypeAlias = tuple[int, Term]
"""The life and term of a node that does not lead."""


class Claim(NamedTuple):
    """A node that leads the topic's partition, or believes that it does."""

    term: Term
    node: NodeId


def may_work(config: RunConfig) -> bool:
    """Whether the model knows each answer in runs with these settings."""
    return (
        config.profile in PROFILES
        and config.producer_expiry_ms >= LEAST_EXPIRY_MS
        and config.max_producers >= LEAST_PRODUCERS
    )


class SequentialClient:
    """See the module's text. `plan`: names of the steps (`Steps`) that it takes before it stops.
    `depose`: deposes the leader of its partition (`Nemesis.depose`)."""

    def __init__(
        self, world: World, plan: Sequence[str] = (), depose: Callable[[], object] | None = None
    ):
        self._world = world
        self._depose = depose
        self._deleting = False
        """Whether the topic may be gone: other requests are still open then (seed 401350)."""
        self._deposed = 0
        """How often it did that."""
        self._stream = world.choices.stream("sequential client")
        self._steps = Steps(world.config, self._stream, world.decoder, plan)
        self._count = 0
        self._planned = bool(plan)
        self._open = 0
        """Requests that wait for a deposed node."""
        self._until: Micros = 0
        self._known_in: dict[NodeId, int] = {}
        """For each node, its incarnation when the topic existed; later ones must know the topic."""
        self._patience: Micros = 0
        """How long it waits for an answer."""
        self._maker: NodeId | None = None
        """The node that has just created the topic; the next request goes there."""

    def start(self) -> None:
        """Begin early in the load, if this run has such a client."""
        world, stream = self._world, self._stream
        if stream.below(RUNS_WITHOUT) and may_work(world.config):
            span = world.config.load_ms * MS
            patience = stream.pick(
                (SHORT, SHORT, SHORT, world.config.request_timeout_ms * MS, LONG)
            )
            self.begin(span, patience, after=stream.below(span // 8))

    def begin(self, span: Micros, patience: Micros, *, after: Micros = 0) -> None:
        """Begin `after` a while, and stop when `span` is over. `patience`: how long it waits for an
        answer, unless that is too short."""
        world = self._world
        self._until = world.kernel.now + span
        self._patience = max(patience, world.config.patience_ms * MS // 2)
        world.other_group = self._group
        world.kernel.after(after, self._next)

    # ---- step by step

    def _next(self, then: Callable[[], Step] | None = None) -> None:
        """Take the next step, or `then`, which belongs to the step before."""
        self._count += 1
        over = self._count > MOST_STEPS or self._world.kernel.now >= self._until
        if over or (then is None and self._planned and not self._steps.planned):
            return
        step = self._steps.next(deposed=self._two_lead()) if then is None else then()
        self._deleting = self._deleting or step.deletes_topic
        if step.reads_beside is not None:
            self._ask(step.reads_beside, _nobody)
        self._ask_deposed()
        written = self._deposed < DEPOSED and self._steps.model.batches
        depose = self._depose if written else None
        if depose is not None and self._stream.below(DEPOSES_AT) == 1:
            self._deposed += 1
            depose()
            # It asks its followers whether it leads; it may hear them when it is deposed.
            self._ask(self._steps.read_beyond(), _nobody)
        self._go(step)

    def _ask_deposed(self) -> None:
        """Send a request to a deposed node, which may be frozen or cut off and not know it."""
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
        """The step ended: with an answer that says what became of it, or without one."""
        world, stream = self._world, self._stream
        if answer is not None:
            step.done(answer)
        if answer is not None or step.once:
            pause = stream.below(2) * stream.below(world.config.load_ms * MS // MOST_STEPS)
            if self._two_lead():
                pause = 0  # the more is stored that the deposed leader lacks, the better
            world.kernel.after(pause, self._next, step.then)
        else:
            step.tried()
            world.kernel.after(world.config.retry_backoff_ms * MS, self._go, step)

    # ---- one request

    def _ask(self, step: Step, end: Callable[[Any], None], deposed: NodeId | None = None) -> None:
        """Send a step's request to a node: to `deposed`, or to a node that is drawn. `end` is
        called once: with the answer, if it says what became of the request, else with None."""
        world = self._world
        claims = sorted(self._claims(), reverse=True)
        node = deposed or self._maker or self._node(claims, step)
        if deposed is None:
            self._maker = None
        sure = bool(claims) and node == claims[0].node and claims[0].term >= self._highest()
        sure = sure and not self._steps.held_back
        requests = [(step.request, step.judge), *step.behind]
        open_ = len(requests) - (not step.answered)
        first: Any = None
        follows = self._follows(node) if step.ends_connection else None

        def over(*_: Any) -> None:
            nonlocal open_
            if open_:
                open_ = 0
                connection.close()
                end(first)

        def come(answer: Frame) -> None:
            nonlocal open_, first
            told = requests[answer.number][1](answer.value, sure)
            self._note(step, node, self._after_acks_0(told, node, follows))
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
        """The topic exists: a node that starts from now on must know it. So must `node`, which said
        that it created the topic. (A node that says that it existed already may only repeat the
        controller's answer: then `node` is None.)"""
        lives = self._world.lives
        self._deleting = False
        self._known_in = {each: life.inc for each, life in lives.items()}
        if node in lives:
            self._known_in[node] -= 1
            self._maker = node

    def _note(self, step: Step, node: NodeId, told: Told) -> None:
        note = self._world.history.add
        wrong = "" if told.error in AGAIN else told.wrong
        if told.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._must_know(node):
            wrong = "the topic existed before this node started"
        code = f"{step.what}: {told.text or told.error.name}"
        note("step", client=NUMBER, node=node, op=self._count, code=code)
        if wrong:
            note("step", client=NUMBER, node=MODEL_NODE, op=self._count, code=wrong)

    def _must_know(self, node: NodeId) -> bool:
        """Whether the topic existed before the node started: then the node may not deny it. A node
        that was up before may lag behind."""
        life = self._world.lives.get(node)
        began = life is not None and life.inc > self._known_in.get(node, 0)
        return began and not self._deleting

    # ---- whom to ask

    def _node(self, claims: list[Claim], step: Step) -> NodeId:
        world, stream = self._world, self._stream
        which = stream.below(4)
        if not claims or which == 1 or step.anywhere:
            return stream.pick(world.nodes)
        return claims[-1 if which == 2 else 0].node

    def _claims(self) -> Iterator[Claim]:
        """The nodes that lead the partition, or believe that they do."""
        group = self._group()
        if group is None:
            return
        for node, life in self._world.lives.items():
            view = life.view.replica(group)
            if view is not None and view.of_partition().serves:
                yield Claim(view.of_partition().term, node)

    def _after_acks_0(self, told: Told, node: NodeId, follows: Following | None) -> Told:
        """What an answer says; `follows`: what the node was when it got a request with acks=0
        before, if it did not lead. If it did not lead all the time, no answer may come."""
        refused = told.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and follows is not None
        if refused and self._follows(node) == follows:
            return Told(ErrorCode.NONE, "an answer", "the connection ends: acks=0 and no leader")
        return told

    def _follows(self, node: NodeId) -> Following | None:
        """The life and term of a node that has a replica and does not lead; else None."""
        group, life = self._group(), self._world.lives.get(node)
        view = None if group is None or life is None else life.view.replica(group)
        if life is None or view is None or view.soft.role is Role.LEADER:
            return None
        return life.inc, view.soft.term

    def _two_lead(self) -> bool:
        return len(list(self._claims())) > 1

    def _highest(self) -> Term:
        """The highest term that any replica of the partition has known."""
        group = self._group()
        if group is None:
            return 0
        views = (life.view.replica(group) for life in self._world.everybody())
        return max((view.soft.term for view in views if view is not None), default=0)

    def _group(self) -> GroupId | None:
        """The topic's group, as known to the first node that knows the topic."""
        for life in self._world.lives.values():
            image = life.node.topics().get(self._steps.topic)
            if image is not None:
                return image.partitions[0].group
        return None


def _nobody(_: Any) -> None:
    """Ignore the answer."""
