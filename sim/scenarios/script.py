"""Scenarios as text: commands to a simulated world, with their results.

A transcript is a file of comments (`#`), commands (`>`) and, below each, what happened until the
next one. `play` runs the commands and writes the file anew; a test compares the two. All choices
are the plain ones, with two exceptions: node N waits (N - 1) / 10 election timeouts longer before
it stands for election, and a crash takes all that is not synced. Nothing is random.

| command | meaning |
|---|---|
| `nodes N [SETTING=VALUE ...]` | a world of N nodes, booted; settings are those of `RunConfig` |
| `producers P=ID ...` · `init P at N` | clients with these producer ids; with an id from N |
| `send P A,B to N seq S [epoch E] [acks K] [partition X] [timeout MS]` | records as one batch |
| `clients P=MODEL ...` | clients with rules of their own: `java`, `librdkafka`, `consumer` |
| `hand P A,B [partition X]` | records for one of them |
| `read R from N at OFFSET` · `delete-records to N below OFFSET` | other requests |
| `ask Q N WHAT [at OFFSET] [time T] [epoch E] [leads E] [partition X]` | question Q to N, of
`questions.py`; its answer is told when it comes |
| `odd N acks K PARTITION=FLAW,FLAW ...` | a produce request with flaws (`order_of_checks.py`) |
| `topic N create K` · `topic N delete K` | a topic beside the plain one |
| `steps STEP ...` | the sequential client makes its topic, and does this (`sim/clients/steps.py`) |
| `each 1..8: COMMAND` | the command for each number, which stands for every `*` in it |
| `misread P CODE` | the next answer to a batch of P's says so, whatever the node wrote |
| `hold P N` · `let P N` | messages between client and node wait; go on |
| `reset P N` · `hang-up P N` | their connection breaks, or the client closes it |
| `run SPAN` | let time pass (`500ms`, `2s`) |
| `until leader N` · `until committed OFFSET` · `until answered [P ...]` | until that is true |
| `until N holds A` · `until N follows M` · `until N leads` · `until N up` · `until N down` | |
| `crash N ...` · `power N ...` · `start N ...` · `freeze N ...` · `thaw N ...` | lives |
| `tear N ...` | the power fails in the middle of the newest write: a part of it is there |
| `cut LINK ...` · `isolate N ...` · `mend [LINK ...]` | links: `1>2`, or `1-2` for both ways |
| `clog LINK ...` · `release LINK ...` | keep what is sent there; let it go on |
| `drop KIND [LINK] [COUNT]` | the next messages of that kind are lost |
| `keep KIND [LINK] [COUNT]` · `deliver` | or they wait for `deliver` |
| `stall N SPAN` · `disk-error N` | no sync of its disk ends within that; the next one fails |
| `clock N jumps SPAN` · `clock N drifts PPM` | its monotonic clock jumps ahead; goes faster |
| `clock N wall SPAN` | its wall clock is off by that |
| `wipe-disk N` | a dead node's disk is erased |
| `disk-lies N` · `id-again` | a fault that Raft cannot survive: syncs keep nothing; an id is given
twice |
| `copy-disk N` · `restore-disk N` | and a backup, and a dead node back on it |
| `at POINT N [KIND]: COMMAND` | when the node reaches it (`life.py` lists points; a message, |
| | or `records`, `term`, `snapshot`, `vote`, says with what), in the middle of its turn |
| `transfer N to M` · `campaign N` | leadership |
| `show` · `tables` | logs; producer tables |
| `watch KIND ...` · `unwatch KIND ...` | show more rows of the history (`telling.py`), or fewer |
| `if A CODE: COMMAND` | only if that was the last answer about A; *refused*: any but success |
| `heal [N ...]` | nothing goes wrong any more at these nodes (all), and between them |
| `rest` | from here on nothing is wrong, and no leader may fall (`sim/ending/rest.py`) |
| `judge [-> INVARIANT ...]` | heal, let what is healed settle, give the whole history |
| | to the judge: just these do not hold, because of clients, or it is `weakened` |
| `mutant ID -> INVARIANT ...` | play all since `nodes` again without one safety mechanism: |
| | after the boot each of these does not hold, and others may not either |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.profiles.named import profile_named
from ottla.raft.roles import Role
from ottla.raft.types import NodeId
from ottla.sim.chance.choices import Choices, Replayed, Tape
from ottla.sim.ending.breaking import Swallowed, anomaly_here, in_order
from ottla.sim.ending.ending import MS
from ottla.sim.ending.topics import agreed, note_topics
from ottla.sim.history.history import History
from ottla.sim.invariants.beyond import weighed
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import Verdict, attach, judge, judged_at_the_end
from ottla.sim.invariants.promised_less import explained
from ottla.sim.invariants.weaker import weaker
from ottla.sim.plugins.own import switched_off
from ottla.sim.run import judged_by_own
from ottla.sim.scenarios.asking import PATIENCE, Asking
from ottla.sim.scenarios.faults import Faults, span_of
from ottla.sim.scenarios.lines import commands_in, run_line
from ottla.sim.scenarios.models import Models
from ottla.sim.scenarios.script_clients import Person, Sender
from ottla.sim.scenarios.stage import Stage, commands_of
from ottla.sim.scenarios.telling import KINDS, PLAIN, found, logs, tables, tell, verdict
from ottla.sim.scenarios.wires import Wires
from ottla.sim.settings.ranges import MAX_NODES
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import STEP, BrokerBug, World

WEAKENED = "weakened"
_QUIET = {"jitter_us": 0, "client_jitter_us": 0, "sync_jitter_us": 0, "producers": 0}
_MANY = 1000


def choices_of(config: RunConfig) -> Choices:
    """The plain choices, with elections one after the other and crashes that lose all they can."""
    step = config.election_timeout_ms * MS // 10
    taken = {}
    for node in range(1, MAX_NODES + 1):
        taken[f"election {node}"] = dict.fromkeys(range(_MANY), (node - 1) * step)
        taken[f"disk {node}"] = dict.fromkeys(range(_MANY), _MANY)
    return Replayed(Tape(taken))


class Script:
    """Plays one file. `plugins` take part in its worlds, but for their faults and clients."""

    def __init__(self, mutant: str = "", plugins: str = ""):
        self.mutant = mutant
        self.plugins = plugins
        self._stage = Stage(self.run)
        self._wires = Wires(self._stage)
        others = (Asking(self._stage), Faults(self._stage), Models(self._stage))
        self._commands = commands_of((self, self._wires, *others))
        self.found: list[Anomaly] = []
        """Anomalies of the last `judge`, or what ended the run before it."""
        self.excused: list[str] = []
        """What of it is explained by a fault that no Raft survives, or by lesser promises."""
        self.unexpected: list[str] = []
        """Invariants that do not hold, and mutants that their line's invariants do not catch."""
        self.acts = 0
        self.acts_judged = 0
        self._act: list[str] = []
        self._watched: set[str] = set(PLAIN)
        self._swallowed = Swallowed(self._history)

    @property
    def out(self) -> list[str]:
        """The transcript so far, line by line."""
        return self._stage.out

    @property
    def world(self) -> World:
        """The world of the present act."""
        return self._stage.world

    @property
    def script_clients(self) -> Mapping[str, Person]:
        """The clients of the act, by name."""
        return self._stage.script_clients

    def play(self, text: str) -> str:
        """Run every command of a transcript; returns it with its present results. Raises
        `ScenarioError`."""
        at = {line.number: line for line in commands_in(text)}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.startswith("  "):
                self.out.append(line)
            if number in at:
                run_line(partial(self.command, at[number].text), at[number])
        return self.transcript

    @property
    def transcript(self) -> str:
        """The commands so far, and their results."""
        return "\n".join(self.out) + "\n"

    def command(self, line: str) -> None:
        """Run one command of an act, which a `mutant` line may play again. Raises `ValueError`."""
        words = line.split()
        if words[0] == "nodes":
            self._act = []
        if words[0] != "mutant":
            self._act.append(line)
        self.run(words)

    def run(self, words: list[str]) -> None:
        """Run one command; errors that a node logs meanwhile are findings, too. Raises `ValueError`
        for an unknown one."""
        command = self._commands.get(words[0])
        if command is None:
            raise ValueError(f"no such command: {words[0]}")
        with self._swallowed.heard():
            command(*words[1:])

    def ended_by(self, bug: BrokerBug) -> None:
        """The run broke: the findings are what was seen by then, and this."""
        swallowed = self._swallowed.before(bug)
        here = anomaly_here(self.world.history, "sim-I00", str(bug))
        self.excused, found = self._excused([*self.online.first.values(), here])
        self.found = in_order(found, swallowed)

    def _history(self) -> History:
        return self.world.history

    def do_each(self, numbers: str, *words: str) -> None:
        """Run a command several times."""
        first, last = numbers.rstrip(":").split("..")
        for number in range(int(first), int(last) + 1):
            self.run([word.replace("*", str(number)) for word in words])

    # ---- the world

    def do_nodes(self, count: str, *settings: str) -> None:
        """Begin an act."""
        self.acts += 1
        self.core: tuple[NodeId, ...] = ()
        told = dict(pair.split("=") for pair in settings)
        values: dict[str, Any] = {
            name: int(text) if text.lstrip("-").isdigit() else text for name, text in told.items()
        }
        nodes = int(count)
        without = {"mutants": self.mutant, "plugins": self.plugins}
        config = RunConfig().with_(**_QUIET, nodes=nodes, replicas=nodes, **without)
        config = config.with_(**values)
        self._stage.begin(self.make_world(config))
        self._wires.begin()
        self._swallowed.forget()
        self.online = attach(self.world.history)
        self.world.history.listen(KINDS, self._told)
        self.world.boot()
        self._booted = len(self.world.history.rows)
        if self.mutant:
            # Violations during the boot, also in the controller's group, show in every scenario and
            # say nothing about this one.
            self.online.first.clear()

    def make_world(self, config: RunConfig) -> World:
        """A new world that is not booted yet; subclasses may watch it from here on."""
        return World(config, choices_of(config))

    def _told(self, row: Any) -> None:
        if row.kind in self._watched:
            said = tell(row, self._stage.names)
            if said is not None:
                self._stage.say(said)

    def do_watch(self, *kinds: str) -> None:
        """Show these kinds of rows as well."""
        self._watched.update(kinds)

    def do_unwatch(self, *kinds: str) -> None:
        """Show these kinds of rows no longer."""
        self._watched.difference_update(kinds)

    def do_run(self, span: str) -> None:
        """Let time pass."""
        self.world.kernel.run(self.world.kernel.now + span_of(span))

    def do_until(self, *words: str) -> None:
        """Let time pass until something holds."""
        condition = self._condition(words)
        if not self._await(condition):
            self._stage.say(f"= not within {PATIENCE // MS // 1000} s")

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
            return lambda: self.world.high_watermark(0, -1) >= offset
        if words[0] == "answered":
            asked = words[1:] or tuple(self.script_clients)
            return lambda: not any(self.script_clients[each].waiting for each in asked)
        node = int(words[0])
        if words[1] == "down":
            return lambda: node not in world.lives
        if words[1] == "up":
            return lambda: node in world.replicas(0)
        if words[1] == "leads":
            return lambda: (
                (replica := world.replicas(0).get(node)) is not None and replica.role is Role.LEADER
            )
        if words[1] == "follows":
            leader = int(words[2])
            return lambda: (
                (replica := world.replicas(0).get(node)) is not None and replica.leader == leader
            )
        assert words[1] == "holds", f"no such condition: {' '.join(words)}"
        return lambda: any(
            line.startswith(f"{node}:") and f" {words[2]}/" in line
            for line in logs(world, self._stage.names)
        )

    # ---- looking

    def do_show(self) -> None:
        """Show the logs."""
        for line in logs(self.world, self._stage.names):
            self._stage.say(line)

    def do_tables(self) -> None:
        """Show the producer tables."""
        for line in tables(self.world):
            self._stage.say(line)

    def do_heal(self, *nodes: str) -> None:
        """Mend these nodes and the links between them; clients reach all nodes."""
        world = self.world
        self.core = tuple(map(int, nodes)) or world.able
        for node in self.core:
            world.history.add("phase", code="heal", node=node)
        world.heal(self.core)

    def do_rest(self) -> None:
        """From here on no leader may fall."""
        self.world.history.add("phase", code="rest")

    def do_if(self, record: str, code: str, *words: str) -> None:
        """Run a command if the last outcome of a record was `code`."""
        senders = [each for each in self.script_clients.values() if isinstance(each, Sender)]
        heard = {each.heard_of(record) for each in senders} - {""}
        wanted = code.rstrip(":")
        if wanted in heard or (wanted == "refused" and heard != {ErrorCode.NONE.name}):
            self.run(list(words))

    def do_judge(self, _arrow: str = "", *wanted: str) -> None:
        """Let the world settle, and judge."""
        world = self.world
        if not self.core:
            self.do_heal()
        if not self._await(self._at_rest):
            self._stage.say("= did not come to rest")
        unknown = [
            name
            for person in self.script_clients.values()
            if isinstance(person, Sender)
            for name in person.end()
        ]
        if unknown:
            self._stage.say(f"unknown to their clients: {', '.join(unknown)}")
        if any(row.kind == "topic" for row in world.history.rows):
            self._await(lambda: agreed(world))
            note_topics(world)
        world.history.add("phase", code="done")
        world.note_unanswered()
        world.note_final()
        rows = world.history.rows
        judged, index = judge(rows), Index(rows)
        self.excused, found = self._excused(self._of_the_act(judged, index))
        self.excused += weaker(index)
        allowed, found = explained(profile_named(world.config.profile), index, found)
        self.excused += allowed
        by_own, _ = judged_by_own(world)
        self.found = in_order(found, [*self._swallowed.before(None), *by_own])
        self.acts_judged += 1
        for line in verdict(rows, judged, self.found, self.excused, self._stage.names):
            self._stage.say(line)
        seen = {each.invariant for each in self.found} | {WEAKENED for _ in self.excused}
        self.unexpected.extend(sorted(seen - set(wanted)))
        self.unexpected.extend(f"{each} holds" for each in wanted if each not in seen)

    def _of_the_act(self, judged: Verdict, index: Index) -> Sequence[Anomaly]:
        """What does not hold; for a mutant only what is first seen after the boot."""
        if not self.mutant:
            return judged.anomalies
        later = (each for each in judged_at_the_end(index) if each.eid >= self._booted)
        return sorted([*self.online.first.values(), *later], key=lambda anomaly: anomaly.eid)

    def _excused(self, found: Iterable[Anomaly]) -> tuple[list[str], list[Anomaly]]:
        """What a fault that no Raft survives explains, in words, and the rest."""
        rows = self.world.history.rows
        if any(row.kind == "beyond" for row in rows):
            return weighed(rows, list(found))
        return [], list(found)

    def _at_rest(self) -> bool:
        leader, controller = self.world.leader(0), self.world.controller()
        if (
            leader is None
            or controller is None
            or leader.node_id not in self.core
            or any(each.waiting for each in self.script_clients.values())
        ):
            return False
        replicas, ends = self.world.replicas(0), []
        for node in self.core:
            if node not in self.world.placement[0]:
                continue
            if node not in replicas:
                return False
            made = replicas[node].of_partition()
            ends += [made.applied, made.last_index]
        return len(set(ends)) == 1

    def do_mutant(self, mutant: str, _arrow: str, *wanted: str) -> None:
        """Play the act again without a safety mechanism."""
        assert wanted, f"nobody is to notice {mutant}"
        again = Script(mutant, self.plugins)
        try:
            with switched_off(mutant, self.plugins):
                for line in self._act:
                    again.run(line.split())
        except BrokerBug as bug:
            again.ended_by(bug)
        for each in again.found:
            self._stage.say(found(each))
        seen = {each.invariant for each in again.found}
        missed = [each for each in wanted if each not in seen]
        if missed:
            self._stage.say(f"= not caught by {' and '.join(missed)}")
            self.unexpected.append(f"{mutant} is not caught by {' and '.join(missed)}")
