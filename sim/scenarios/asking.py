"""What a script lets its clients do: which client sends what to which node, and what delays it.

One method per command; `script.py` has the language. The clients themselves are in
`script_clients.py`, those with rules of their own in `models.py`.
"""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH
from ottla.broker.wire.answers import PartitionProduced
from ottla.log.types import Offset
from ottla.raft.types import Micros
from ottla.sim.clients.odd_requests import ask, flawed
from ottla.sim.clients.questions import ASKER, Asker, Question
from ottla.sim.clients.sequential import SequentialClient
from ottla.sim.clients.topic_requests import TopicRequest
from ottla.sim.ending.ending import MS
from ottla.sim.scenarios.script_clients import Reader, Sender, Sending
from ottla.sim.scenarios.stage import Stage
from ottla.sim.world.order_of_checks import Flaw

PATIENCE: Micros = 20_000 * MS
"""How long `until` and `judge` wait."""


class Asking:
    """Part of a `Script`: which client sends what to which node."""

    def __init__(self, stage: Stage):
        self._stage = stage

    def do_producers(self, *pairs: str) -> None:
        """Name producers, with their ids."""
        for pair in pairs:
            name, pid = pair.split("=")
            self._stage.enter(
                Sender(
                    self._stage.world,
                    self._stage.names,
                    name,
                    len(self._stage.script_clients) + 1,
                    int(pid),
                )
            )

    def do_init(self, name: str, _at: str, node: str) -> None:
        """Let a node give a new producer its id."""
        sender = Sender(
            self._stage.world, self._stage.names, name, len(self._stage.script_clients) + 1, -1
        )
        self._stage.enter(sender)
        sender.introduce(int(node))

    def do_send(self, name: str, records: str, _to: str, node: str, *options: str) -> None:
        """Send a batch."""
        given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
        self._sender(name).send(
            Sending(
                tuple(records.split(",")),
                int(node),
                given.get("partition", 0),
                given.get("epoch", 0),
                given["seq"],
                given.get("acks", -1),
                given.get("timeout", 30_000) * MS,
            )
        )

    def _sender(self, name: str) -> Sender:
        sender = self._stage.script_clients[name]
        assert isinstance(sender, Sender), f"{name} is no producer"
        return sender

    def do_misread(self, name: str, code: str) -> None:
        """Let the next answer say something else."""
        self._sender(name).misreads = ErrorCode[code]

    def _reader(self, name: str) -> Reader:
        if name not in self._stage.script_clients:
            self._stage.enter(
                Reader(
                    self._stage.world, self._stage.names, name, len(self._stage.script_clients) + 1
                )
            )
        reader = self._stage.script_clients[name]
        assert isinstance(reader, Reader), f"{name} is no reader"
        return reader

    def do_read(self, name: str, _from: str, node: str, _at: str, offset: str) -> None:
        """Read, and wait for the answer."""
        self._reader(name).read(int(node), int(offset))
        self._stage.run(["until", "answered"])

    def do_ask(self, number: str, node: str, what: str, *options: str) -> None:
        """Ask a question; the answer is reported when it comes."""
        given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
        question = Question(
            what,
            int(node),
            given.get("partition", 0),
            given.get("time", given.get("epoch", ANY_EPOCH)),
            given.get("at", 0),
            given.get("leads", ANY_EPOCH),
        )

        def heard(asked: Question, error: ErrorCode, off: Offset) -> None:
            answer = str(off) if error is ErrorCode.NONE else error.name
            self._stage.say(f"{asked.node} answers question {number}, {asked.what}: {answer}")

        Asker(self._stage.world, ASKER + int(number), heard).ask(question)

    def do_delete_records(self, _to: str, node: str, _below: str, offset: str) -> None:
        """Move the log start, and wait for the answer."""
        self._reader("admin").delete(int(node), int(offset), PATIENCE)
        self._stage.run(["until", "answered"])

    def do_odd(self, node: str, _acks: str, acks: str, *batches: str) -> None:
        """Send a produce request with flaws in each of its partitions."""
        told = []
        for each in batches:
            partition, _, flaws = each.partition("=")
            told.append((int(partition), frozenset(map(Flaw, flaws.split(",")))))
        heard: list[PartitionProduced] = []
        parts = flawed(self._stage.world, told, int(acks))
        ask(self._stage.world, int(node), parts, int(acks), heard.extend)
        self._stage.run(["run", "1s"])
        for part in heard:
            self._stage.say(f"{node} answers for partition {part.partition}: {part.error.name}")

    def do_topic(self, node: str, what: str, topic: str) -> None:
        """Create or delete a topic, and wait for the answer."""
        world = self._stage.world
        heard: list[str] = []
        TopicRequest(world, int(node), what, int(topic), heard.append)
        world.until(lambda: bool(heard), PATIENCE, "an answer about a topic")
        self._stage.say(f"{node} answers about topic {topic}: {heard[0]}")

    def do_steps(self, *plan: str) -> None:
        """Have the sequential client make its topic, write a batch, and take these steps."""
        world = self._stage.world
        since, client = len(world.history.rows), SequentialClient(world, plan)
        client.begin(PATIENCE, PATIENCE)
        self._stage.run(["run", "1s"])
        for row in world.history.rows[since:]:
            if row.kind == "step":
                self._stage.say(f"{row.node} answers step {row.op}, {row.code}")

    def do_hold(self, name: str, node: str) -> None:
        """Keep everything back between a client and a node."""
        self._stage.world.clients.path(
            self._stage.script_clients[name].number, int(node)
        ).cut = True

    def do_let(self, name: str, node: str) -> None:
        """Let it go on."""
        path = self._stage.world.clients.path(self._stage.script_clients[name].number, int(node))
        path.cut = False
        for connection in tuple(self._stage.world.clients.connections):
            if connection.path is path:
                connection.path_mended()

    def do_reset(self, name: str, node: str) -> None:
        """Break a connection."""
        path = self._stage.world.clients.path(self._stage.script_clients[name].number, int(node))
        for connection in tuple(self._stage.world.clients.connections):
            if connection.path is path:
                connection.reset("reset")

    def do_hang_up(self, name: str, node: str) -> None:
        """Close a connection."""
        self._stage.script_clients[name].hang_up(int(node))
