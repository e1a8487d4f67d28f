"""Scenarios as text: commands to a simulated world, with what follows from them.

A transcript is a file of comments (`#`), commands (`>`) and, below each, what happened until the
next one. `play` runs the commands and writes the file anew; a test compares the two. All choices
are the plain ones, but that node N waits (N - 1) / 10 election timeouts longer before it stands for
election, and a loss of power takes all that is not synced; nothing is random.

| command | meaning |
|---|---|
| `nodes N [SETTING=VALUE ...]` | a world of N nodes, booted; settings are those of `RunConfig` |
| `producers P=ID ...` | clients that send with these producer ids |
| `send P A,B to N seq S [epoch E] [acks K] [partition X] [timeout MS]` | records as one batch |
| `read R from N at OFFSET` · `delete-records to N below OFFSET` | other requests |
| `hold P N` · `let P N` | what is between client and node waits, goes on |
| `reset P N` · `hang-up P N` | their connection breaks, or the client closes it |
| `run SPAN` | let time pass (`500ms`, `2s`) |
| `until leader N` · `until committed OFFSET` · `until answered [P ...]` | until that is so |
| `until N holds A` · `until N follows M` · `until N up` · `until N down` | |
| `crash N ...` · `power N ...` · `start N ...` · `freeze N ...` · `thaw N ...` | lives |
| `cut LINK ...` · `isolate N ...` · `mend [LINK ...]` | links: `1>2`, or `1-2` for both ways |
| `clog LINK ...` · `release LINK ...` | keep what is sent there; let it go on |
| `drop KIND [LINK] [COUNT]` | the next messages of that kind are lost |
| `stall N SPAN` · `disk-error N` | no sync of its disk ends within that; the next one fails |
| `at POINT N [KIND]: COMMAND` | when the node gets there (`life.py` lists points; a message, |
| | or `records`, `term`, `vote`, says with what), in the middle of its turn |
| `transfer N to M` · `campaign N` | leadership |
| `show` · `tables` | logs; producer tables |
| `watch KIND ...` | tell more rows of the history (`telling.py`) |
| `if A CODE: COMMAND` | only if that was the last answer about A; *refused*: any but success |
| `heal [N ...]` | nothing goes wrong any more at these nodes (all), and between them |
| `judge` | heal, let what is healed come to rest, and give the whole history to the judge |
| `mutant ID -> INVARIANT ...` | play all since `nodes` again without one safety mechanism |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.partition import Partition
from ottla.raft.types import Micros, NodeId
from ottla.sim.choices import Choices, Replayed, Tape
from ottla.sim.ending import MS
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.judge import attach, judge
from ottla.sim.scenarios.faults import Faults, span_of
from ottla.sim.scenarios.people import Names, Person, Reader, Sender, Sending
from ottla.sim.scenarios.telling import KINDS, PLAIN, found, logs, tables, tell, verdict
from ottla.sim.settings import MAX_NODES, RunConfig
from ottla.sim.world import STEP, BrokerBug, World

PATIENCE: Micros = 20_000 * MS
"""How long `until` and `judge` wait."""
_QUIET = {"jitter_us": 0, "client_jitter_us": 0, "sync_jitter_us": 0, "producers": 0}
_MANY = 1000


def choices_of(config: RunConfig) -> Choices:
    """The plain choices, with elections one after the other and losses of power that lose."""
    step = config.election_timeout_ms * MS // 10
    taken = {}
    for node in range(1, MAX_NODES + 1):
        taken[f"election {node}"] = dict.fromkeys(range(_MANY), (node - 1) * step)
        taken[f"disk {node}"] = dict.fromkeys(range(_MANY), _MANY)
    return Replayed(Tape(taken))


class Script(Faults):
    """Plays one file. `anomalies`: what every `mutant` and `judge` found, in order."""

    def __init__(self, mutant: str = ""):
        self.out: list[str] = []
        self.mutant = mutant
        self.found: list[Anomaly] = []
        """Of the last `judge`, or what ended the run before it."""
        self.unexpected: list[str] = []
        """Invariants that do not hold, and mutants that are not caught by what their line names."""
        self.acts = 0
        self.acts_judged = 0
        self._act: list[str] = []
        self._watched: set[str] = set(PLAIN)

    def play(self, text: str) -> str:
        """Run every command of a transcript; the transcript with what it says now."""
        for line in text.splitlines():
            if line.startswith(">"):
                self.out.append(line)
                self._command(line[1:])
            elif not line.startswith("  "):
                self.out.append(line)
        return "\n".join(self.out) + "\n"

    def say(self, text: str) -> None:
        """Write a line of what happened."""
        self.out.append(f"  {text}")

    def _command(self, line: str) -> None:
        words = line.split()
        if words[0] == "nodes":
            self._act = []
        if words[0] != "mutant":
            self._act.append(line)
        self.run(words)

    def run(self, words: list[str]) -> None:
        """Run one command. Raises `ValueError` for one that there is not."""
        method: Callable[..., None] | None = getattr(self, f"do_{words[0].replace('-', '_')}", None)
        if method is None:
            raise ValueError(f"no such command: {words[0]}")
        method(*words[1:])

    # ---- the world

    def do_nodes(self, count: str, *settings: str) -> None:
        """Begin."""
        self.acts += 1
        self.core: tuple[NodeId, ...] = ()
        told = dict(pair.split("=") for pair in settings)
        values: dict[str, Any] = {
            name: int(text) if text.lstrip("-").isdigit() else text for name, text in told.items()
        }
        nodes = int(count)
        config = RunConfig().with_(**_QUIET, nodes=nodes, replicas=nodes, mutants=self.mutant)
        config = config.with_(**values)
        self.names = Names()
        self.people: dict[str, Person] = {}
        self.world = World(config, choices_of(config))
        self.online = attach(self.world.history)
        self.world.history.listen(KINDS, self._told)
        self.world.boot()

    def _told(self, row: Any) -> None:
        if row.kind in self._watched:
            said = tell(row, self.names)
            if said is not None:
                self.say(said)

    def do_watch(self, *kinds: str) -> None:
        """Tell these rows as well."""
        self._watched.update(kinds)

    def do_run(self, span: str) -> None:
        """Let time pass."""
        self.world.kernel.run(self.world.kernel.now + span_of(span))

    def do_until(self, *words: str) -> None:
        """Let time pass until something holds."""
        condition = self._condition(words)
        if not self._await(condition):
            self.say(f"= not within {PATIENCE // MS // 1000} s")

    def _await(self, condition: Callable[[], bool]) -> bool:
        kernel = self.world.kernel
        end = kernel.now + PATIENCE
        while not condition():
            if kernel.now >= end:
                return False
            kernel.run(kernel.now + STEP)
        return True

    def _condition(self, words: tuple[str, ...]) -> Callable[[], bool]:
        world = self.world
        if words[0] == "leader":
            wanted = int(words[1])
            return lambda: (life := world.leader(0)) is not None and life.node_id == wanted
        if words[0] == "committed":
            offset = int(words[1])
            return lambda: self._committed() >= offset
        if words[0] == "answered":
            asked = words[1:] or tuple(self.people)
            return lambda: not any(self.people[each].waiting for each in asked)
        node = int(words[0])
        if words[1] == "down":
            return lambda: node not in world.lives
        if words[1] == "up":
            return lambda: node in world.seats(0)
        if words[1] == "follows":
            leader = int(words[2])
            return lambda: (
                (seat := world.seats(0).get(node)) is not None
                and seat.replica.core.leader == leader
            )
        assert words[1] == "holds", f"no such condition: {' '.join(words)}"
        return lambda: any(
            line.startswith(f"{node}:") and f" {words[2]}/" in line
            for line in logs(world, self.names)
        )

    def _committed(self) -> int:
        life = self.world.leader(0)
        if life is None:
            return -1
        machine = self.world.seats(0)[life.node_id].replica.machine
        assert isinstance(machine, Partition), "a partition of the topic"
        return machine.state.high_watermark

    # ---- clients

    def do_producers(self, *pairs: str) -> None:
        """Name producers."""
        for pair in pairs:
            name, pid = pair.split("=")
            self._person(Sender(self.world, self.names, name, len(self.people) + 1, int(pid)))

    def _person(self, person: Person) -> None:
        person.say = self.say
        self.people[person.name] = person

    def do_send(self, name: str, records: str, _to: str, node: str, *options: str) -> None:
        """Send a batch."""
        given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
        sender = self.people[name]
        assert isinstance(sender, Sender), f"{name} is no producer"
        sender.send(
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

    def _reader(self, name: str) -> Reader:
        if name not in self.people:
            self._person(Reader(self.world, self.names, name, len(self.people) + 1))
        reader = self.people[name]
        assert isinstance(reader, Reader), f"{name} is no reader"
        return reader

    def do_read(self, name: str, _from: str, node: str, _at: str, offset: str) -> None:
        """Read, and wait for the answer."""
        self._reader(name).read(int(node), int(offset))
        self.do_until("answered")

    def do_delete_records(self, _to: str, node: str, _below: str, offset: str) -> None:
        """Move the log start, and wait for the answer."""
        self._reader("admin").delete(int(node), int(offset), PATIENCE)
        self.do_until("answered")

    def do_hold(self, name: str, node: str) -> None:
        """Keep everything back between the two."""
        self.world.clients.path(self.people[name].number, int(node)).cut = True

    def do_let(self, name: str, node: str) -> None:
        """Let it go on."""
        path = self.world.clients.path(self.people[name].number, int(node))
        path.cut = False
        for connection in tuple(self.world.clients.connections):
            if connection.path is path:
                connection.path_mended()

    def do_reset(self, name: str, node: str) -> None:
        """Break a connection."""
        self.people[name].connections[int(node)].reset("reset")

    def do_hang_up(self, name: str, node: str) -> None:
        """Close a connection."""
        self.people[name].hang_up(int(node))

    # ---- looking

    def do_show(self) -> None:
        """Logs."""
        for line in logs(self.world, self.names):
            self.say(line)

    def do_tables(self) -> None:
        """Producer tables."""
        for line in tables(self.world):
            self.say(line)

    def do_heal(self, *nodes: str) -> None:
        """Mend these nodes and what is between them; clients reach everybody."""
        world = self.world
        self.core = tuple(map(int, nodes)) or world.nodes
        for node in self.core:
            world.history.add("phase", code="heal", node=node)
        world.heal(self.core)

    def do_if(self, record: str, code: str, *words: str) -> None:
        """Run a command if that was heard of a record last."""
        senders = [each for each in self.people.values() if isinstance(each, Sender)]
        heard = {each.heard_of(record) for each in senders} - {""}
        wanted = code.rstrip(":")
        if wanted in heard or (wanted == "refused" and heard != {ErrorCode.NONE.name}):
            self.run(list(words))

    def do_judge(self) -> None:
        """Let it come to rest, and judge."""
        world = self.world
        if not self.core:
            self.do_heal()
        if not self._await(self._at_rest):
            self.say("= did not come to rest")
        unknown = [
            name
            for person in self.people.values()
            if isinstance(person, Sender)
            for name in person.end()
        ]
        if unknown:
            self.say(f"unknown to their clients: {', '.join(unknown)}")
        world.history.add("phase", code="done")
        world.observer.final(world)
        judged = judge(world.history.rows)
        self.found = list(judged.anomalies)
        self.acts_judged += 1
        for line in verdict(world.history.rows, judged, self.names):
            self.say(line)
        self.unexpected.extend(each.invariant for each in self.found)

    def _at_rest(self) -> bool:
        leader = self.world.leader(0)
        if (
            leader is None
            or leader.node_id not in self.core
            or any(each.waiting for each in self.people.values())
        ):
            return False
        ends = []
        for node, seat in self.world.seats(0).items():
            machine = seat.replica.machine
            assert isinstance(machine, Partition), "a partition of the topic"
            if node in self.core:
                ends += [machine.applied, machine.last_index]
        return len(ends) == 2 * len(self.core) and len(set(ends)) == 1

    def do_mutant(self, mutant: str, _arrow: str, *wanted: str) -> None:
        """Play the act again without a safety mechanism."""
        again = Script(mutant)
        try:
            for line in self._act:
                again.run(line.split())
        except BrokerBug as bug:
            online = again.online.first.values()
            again.found = [*online, Anomaly("sim-I00", 0, str(bug))]
        for each in again.found:
            self.say(found(each))
        seen = {each.invariant for each in again.found}
        if not seen & set(wanted):
            self.say("= not caught")
            self.unexpected.append(f"{mutant} is not caught by {' or '.join(wanted)}")
