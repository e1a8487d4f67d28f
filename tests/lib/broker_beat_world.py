"""Nodes that beat over a network which loses, copies and reorders, beside the naive model.

The naive model puts the full state into every beat: with each beat made, the world remembers what
its sender led at that moment (`Sent.led`); with each ack, in which terms the receiver's cores then
followed. Cores are reduced to their terms. Time moves by one with every event, so that a time names
an event.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, Heartbeats
from ottla.raft.messages import Heartbeat

INTERVAL = 50


@dataclass
class Led:
    """What a leader knows of a group: its term, commit, and what each follower holds."""

    term: int
    commit: int = 0
    matches: dict[int, int] = field(default_factory=dict)

    def known_to(self, follower: int) -> int:
        """What the follower holds, 0 when nothing is known."""
        return self.matches.get(follower, 0)


@dataclass
class Node:
    """What outlives a restart (`cores`), and what does not."""

    node: int
    cores: dict[int, int]
    incarnation: int = 0
    led: dict[int, Led] = field(default_factory=dict)
    commits: dict[int, int] = field(default_factory=dict)
    book: Heartbeats = field(init=False)


@dataclass
class Sent:
    """A beat and what its sender led when it was made."""

    beat: Beat
    led: dict[int, int]

    @property
    def order(self) -> tuple[int, int]:
        """Later beats of a sender are larger."""
        return self.beat.incarnation, self.beat.sequence


class World:
    """`voters` by group; every node beats to every other."""

    def __init__(
        self, nodes: tuple[int, ...], voters: dict[int, tuple[int, ...]], *, acks_ride: bool
    ):
        self.now = 0
        self.acks_ride = acks_ride
        self.voters = voters
        self.terms = dict.fromkeys(voters, 0)
        self.bag: list[Sent | BeatAck] = []
        self.taken_at: dict[tuple[int, int], Sent] = {}
        """By receiver and time: the beat that came in."""
        self.newest: dict[tuple[int, int], tuple[int, int]] = {}
        """By receiver and time: the newest beat of that sender it had taken by then."""
        self._newest: dict[tuple[int, int], tuple[int, int]] = {}
        self.followed: dict[tuple[int, int, int], list[dict[int, int]]] = {}
        """By receiver, sender and the beat's sent_at: terms of the receiver's cores at its ack."""
        self.nodes = {
            node: Node(node, {g: 0 for g, members in voters.items() if node in members})
            for node in nodes
        }
        for node in nodes:
            self.restart(node)

    def step(self) -> int:
        """The time of the next event."""
        self.now += 1
        return self.now

    def restart(self, node: int) -> None:
        """The node forgets whom it led and what it was told."""
        state = self.nodes[node]
        state.incarnation += 1
        state.led = {}
        self._newest = {pair: seen for pair, seen in self._newest.items() if pair[0] != node}
        peers = tuple(self.nodes)
        started = self.step()
        state.book = Heartbeats(
            node, peers, INTERVAL, state.incarnation, started, acks_ride=self.acks_ride
        )

    def elect(self, group: int, node: int) -> None:
        """`node` leads in a new term; an older leader does not know yet."""
        self.terms[group] += 1
        term = self.terms[group]
        state = self.nodes[node]
        state.cores[group] = term
        state.led[group] = Led(term, matches=dict.fromkeys(self.voters[group], 0))
        state.book.term_moved(group)
        followers = tuple(v for v in self.voters[group] if v != node)
        state.book.leading(group, term, followers, 0)

    def resign(self, group: int, node: int) -> None:
        """If `node` leads, it no longer does."""
        if self.nodes[node].led.pop(group, None):
            self.nodes[node].book.not_leading(group)

    def commit(self, group: int, node: int, *, upto: int, follower: int, match: int) -> None:
        """A leader's commit moves, and what one of its followers holds."""
        led = self.nodes[node].led.get(group)
        if led is not None:
            led.commit = max(led.commit, upto)
            led.matches[follower] = max(led.matches.get(follower, 0), match)
            self.nodes[node].book.committed(group, led.commit, led.known_to)

    def move_term(self, group: int, node: int, term: int) -> None:
        """A core went on to a higher term by itself; if it led, it does no longer."""
        state = self.nodes[node]
        if term > state.cores.get(group, term):
            self.terms[group] = max(self.terms[group], term)
            state.cores[group] = term
            self.resign(group, node)
            state.book.term_moved(group)

    def beats(self, node: int, after: int = INTERVAL) -> list[Sent]:
        """`after` passes and the node sends what is due."""
        self.now += after
        state = self.nodes[node]
        led = {group: led.term for group, led in state.led.items()}
        sent = [Sent(beat, dict(led)) for beat in state.book.due(self.now)]
        self.bag.extend(sent)
        return sent

    def deliver(self, message: Sent | BeatAck) -> None:
        """A message arrives at its receiver."""
        if isinstance(message, Sent):
            self.take_beat(message)
        else:
            self.take_ack(message)

    def take_ack(self, ack: BeatAck) -> None:
        """By itself, or with a beat."""
        for reply in self.nodes[ack.to].book.on_ack(ack, self.step()):
            self.move_term(reply.group, ack.to, reply.term)

    def take_beat(self, sent: Sent) -> None:
        """As a node does: cores step the Heartbeats before anything else happens."""
        beat = sent.beat
        if beat.ack is not None:
            self.take_ack(beat.ack)
        now = self.step()
        state = self.nodes[beat.to]
        self.taken_at[beat.to, now] = sent
        pair = (beat.to, beat.sender)
        self._newest[pair] = max(self._newest.get(pair, sent.order), sent.order)
        self.newest[beat.to, now] = self._newest[pair]
        ack, heartbeats = state.book.on_beat(beat, now, state.cores.get)
        for heartbeat in heartbeats:
            self._heartbeat(state, heartbeat)
        key = (beat.to, beat.sender, beat.sent_at)
        self.followed.setdefault(key, []).append(dict(state.cores))
        if not state.book.rides(beat, ack):
            self.bag.append(ack)

    def _heartbeat(self, state: Node, heartbeat: Heartbeat) -> None:
        group = heartbeat.group
        sender = self.nodes[heartbeat.sender]
        assert heartbeat.term >= state.cores[group], (heartbeat, state.cores)
        led = sender.led.get(group)
        if led is not None and led.term == heartbeat.term:
            assert heartbeat.commit <= led.known_to(state.node), (heartbeat, led)
        state.commits[group] = heartbeat.commit
        self.move_term(group, state.node, heartbeat.term)

    def settle(self) -> None:
        """Nothing is lost from here on; what was under way is."""
        self.bag.clear()
        for _round in range(4):
            for node in self.nodes:
                self.beats(node)
            while self.bag:
                self.deliver(self.bag.pop(0))

    def pairs(self) -> Iterator[tuple[Node, int]]:
        """Every node with every group."""
        for state in self.nodes.values():
            for group in self.voters:
                yield state, group
