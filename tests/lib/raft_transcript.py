"""Scenarios as text: commands to a `World` of Raft cores, with everything that follows from them.

A transcript is a file of comments (`#`), commands (`>`) and, below each, what the cores did.
`play` runs the commands and writes the file anew; a test compares the two. The language:

| command | meaning |
|---|---|
| `nodes N [limit=BYTES ...]` | begin with N fresh members; limits are fields of `RaftConfig` |
| `elect N` | make N leader of the quiet world, saying nothing about it |
| `campaign N` · `step-down N` · `barrier N` · `transfer N to M` | inputs |
| `propose N WORD... [in T]` | one batch per word, in the member's own term or in T |
| `compact N INDEX [SIZE]` | store a snapshot of SIZE bytes at INDEX, drop the log up to it |
| `write N [COUNT]` | N's disk finishes its oldest writes (all, without COUNT) |
| `persisted N INDEX/TERM` | tell N's core that a write is durable, true or not |
| `deliver [A>B] [Kind] [last]` | what flies now and matches arrives; `last`: only the newest |
| `drop ...` · `repeat ...` | the same choice of messages is lost; arrives and keeps flying |
| `time SPAN [N...]` | time passes; the members named (all, without names) are told |
| `vouch A>B` | the nodes of leader A and follower B heard each other, and tell their cores |
| `cut A>B` · `isolate N` · `heal` | links |
| `crash N` · `crash-after-write N` · `restart N` | lives; unfinished writes are lost |
| `settle` | finish writes and deliver until nothing moves; prints messages, roles and commits |
| `show [N...]` · `flying` | state; messages under way |

Random waits are fixed: member N waits 1 + (N - 1) / 10 election timeouts of 1000 each. What members
do is judged by `raft_invariants.Watch` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.raft.describe import describe_message
from ottla.raft.messages import Message
from ottla.raft.ready import Ready
from ottla.raft.types import NodeId
from raft_describe import describe_core, describe_ready
from raft_invariants import Watch
from raft_member import Member
from raft_world import World


class FixedJitter:
    """A tenth of the range per node id, so that members differ and runs do not."""

    def __init__(self, node: NodeId) -> None:
        self.node = node

    def randrange(self, stop: int, /) -> int:
        """Always the same."""
        return stop * (self.node - 1) // 10


class Transcript:
    """Plays one file."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.watch = Watch()
        self.brief = False
        self.commits: dict[NodeId, int] = {}
        self.world = World(0, FixedJitter, self)

    def play(self, text: str) -> str:
        """Run every command of a transcript; the transcript with what it says now."""
        for line in text.splitlines():
            if line.startswith(">"):
                self.out.append(line)
                self.run(line[1:].split())
            elif not line.startswith("  "):
                self.out.append(line)
        return "\n".join(self.out) + "\n"

    def run(self, words: list[str]) -> None:
        """Run one command."""
        name = words[0].replace("-", "_")
        method: Callable[..., None] = getattr(self, f"do_{name}")
        method(*words[1:])

    def say(self, text: str) -> None:
        """Write a line of output."""
        self.out.append(f"  {text}")

    # -- what the world tells

    def on_ready(self, member: Member, ready: Ready) -> None:
        """Write down what a member does."""
        self.watch.on_ready(member, ready)
        for line in describe_ready(ready):
            if not self.brief or line.startswith(("role", "barrier")):
                self.say(f"{member.node}: {line}")
        if ready.commit != self.commits.get(member.node, 0):
            self.commits[member.node] = ready.commit
            self.say(f"{member.node}: commit {ready.commit}")

    def on_durable(self, member: Member, ready: Ready) -> None:
        """Judge, silently."""
        self.watch.on_durable(member, ready)

    def on_restart(self, member: Member) -> None:
        """Judge, silently."""
        self.watch.on_restart(member)
        self.commits[member.node] = member.core.commit

    def on_barrier(self, node: NodeId, ticket: int) -> None:
        """Judge, silently."""
        self.watch.on_barrier(node, ticket)

    # -- commands

    def do_nodes(self, count: str, *limits: str) -> None:
        """Begin."""
        pairs = (limit.split("=") for limit in limits)
        values = {f"{name.replace('-', '_')}_bytes": int(value) for name, value in pairs}
        self.world = World(int(count), FixedJitter, self, **values)

    def do_elect(self, node: str) -> None:
        """Skip what `first_election.txt` shows."""
        said = len(self.out)
        self.world.elect(int(node))
        del self.out[said:]

    def do_campaign(self, node: str) -> None:
        """Start an election."""
        self.world.campaign(int(node))

    def do_step_down(self, node: str) -> None:
        """Resign."""
        self.world[int(node)].step_down(self.world.now)
        self.world.members[int(node)].take()

    def do_barrier(self, node: str) -> None:
        """Ask for proof of leadership."""
        self.say(f"= ticket {self.world.barrier(int(node))}")

    def do_transfer(self, node: str, _to: str, successor: str) -> None:
        """Hand over."""
        begun = self.world[int(node)].transfer(int(successor), self.world.now)
        self.say("= begun" if begun else "= refused")
        self.world.members[int(node)].take()

    def do_propose(self, node: str, *words: str) -> None:
        """Propose one batch per word."""
        term = int(words[-1]) if words[-2:-1] == ("in",) else None
        batches = words if term is None else words[:-2]
        payloads = [word.encode() for word in batches]
        first = self.world.propose(int(node), *payloads, term=term)
        self.say("= refused" if first is None else f"= from {first}")

    def do_compact(self, node: str, index: str, size: str = "10") -> None:
        """Take a snapshot."""
        self.world.members[int(node)].compact(int(index), int(size))
        self.world.members[int(node)].take()

    def do_write(self, node: str, count: str = "99") -> None:
        """Finish writes; what waited for them leaves."""
        member = self.world.members[int(node)]
        for _ in range(min(int(count), len(member.writes))):
            for message in member.finish_write().messages_after:
                self.say(f"{node}: sent {describe_message(message)}")
            member.take()

    def do_persisted(self, node: str, place: str) -> None:
        """Report a write, true or not."""
        index, term = place.split("/")
        self.world[int(node)].persisted(int(index), int(term), self.world.now)
        self.world.members[int(node)].take()

    def _chosen(self, words: tuple[str, ...]) -> list[Message]:
        link = next((word for word in words if ">" in word), None)
        kind = next((word for word in words if word[0].isupper()), None)
        chosen = [
            message
            for message in self.world.flying
            if link in (None, f"{message.sender}>{message.to}")
            and kind in (None, type(message).__name__)
        ]
        return chosen[-1:] if "last" in words else chosen

    def _remove(self, chosen: list[Message]) -> None:
        kept = [m for m in self.world.flying if not any(m is each for each in chosen)]
        self.world.flying[:] = kept

    def do_deliver(self, *words: str) -> None:
        """Messages arrive."""
        chosen = self._chosen(words)
        self._remove(chosen)
        for message in chosen:
            self.say(describe_message(message))
            self.world.deliver(message)

    def do_repeat(self, *words: str) -> None:
        """Messages arrive, and will arrive once more."""
        for message in self._chosen(words):
            self.say(describe_message(message))
            self.world.deliver(message)

    def do_drop(self, *words: str) -> None:
        """Messages are lost."""
        chosen = self._chosen(words)
        self._remove(chosen)
        for message in chosen:
            self.say(f"lost {describe_message(message)}")

    def do_time(self, span: str, *nodes: str) -> None:
        """Time passes."""
        self.world.now += int(span)
        for member in self.world.alive:
            if not nodes or str(member.node) in nodes:
                member.core.advance(self.world.now)
                member.take()

    def do_vouch(self, link: str) -> None:
        """The node of a leader was heard."""
        leader, follower = (int(node) for node in link.split(">"))
        self.world.vouch(self.world.members[leader], self.world.members[follower])

    def do_cut(self, link: str) -> None:
        """One direction stops."""
        sender, to = link.split(">")
        self.world.cut.add((int(sender), int(to)))

    def do_isolate(self, *nodes: str) -> None:
        """These members hear nobody else, and are not heard."""
        self.world.isolate(*(int(node) for node in nodes))

    def do_heal(self) -> None:
        """All links work."""
        self.world.heal()

    def do_crash(self, node: str) -> None:
        """Stop, losing what is not written."""
        self.world.members[int(node)].crash()

    def do_crash_after_write(self, node: str) -> None:
        """Stop after the oldest write, before anything that waited for it was sent."""
        self.world.members[int(node)].finish_write(tell=False)
        self.world.members[int(node)].crash()

    def do_restart(self, node: str) -> None:
        """Come back."""
        self.world.members[int(node)].restart()

    def do_settle(self) -> None:
        """Until nothing moves."""
        self.brief = True
        self.world.settle(lambda message: self.say(describe_message(message)))
        self.brief = False

    def do_show(self, *nodes: str) -> None:
        """State of members."""
        for line in self._state(nodes):
            self.say(line)

    def _state(self, nodes: tuple[str, ...]) -> Iterator[str]:
        for member in self.world.members.values():
            if not nodes or str(member.node) in nodes:
                if member.alive:
                    yield from describe_core(member.core)
                else:
                    yield f"{member.node} down"

    def do_flying(self) -> None:
        """Messages under way."""
        for message in self.world.flying:
            self.say(describe_message(message))
