"""The network between the nodes of one process, with faults by rule.

All nodes run on one event loop. Without delay and without rules, `send` calls the receiver
directly; the receiver only queues the message and schedules a turn, so there is no recursion
between nodes. With a delay, all messages are in one queue with one timer of the loop. Every link
has the same delay, so all messages are delivered in the order in which they were sent.

Rules are checked when a message is sent and again when it arrives. A message in flight to a node
that is cut off or detached meanwhile is dropped; it does not reach a node that attaches later,
either.

| rule | what happens to a message from a to b | ended by |
|---|---|---|
| `cut(a, b)` | dropped | `heal` |
| `isolate(node)` | dropped, in both directions, for every other node | `heal` |
| `hold(a, b)` | waits, in order, and so do all later ones | `release(a, b)` |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ottla.broker.arguments.arguments import whole
from ottla.raft.types import Matched, Micros, NodeId

Receive: TypeAlias = Callable[[NodeId, Matched], None]
"""Takes a sender and a message. It must only queue the message."""

Link: TypeAlias = tuple[NodeId, NodeId]

_MICROS = 1_000_000


class _Travelling:
    """A message in flight. `receive`: the receiver that was attached when it was sent."""

    __slots__ = ("due", "message", "receive", "sender", "to")

    def __init__(self, due: float, sender: NodeId, to: NodeId, receive: Receive, message: object):
        self.due = due
        self.sender = sender
        self.to = to
        self.receive = receive
        self.message = message


class Network:
    """Connects the nodes of one process; keeps the order of messages per pair of nodes.

    `link_delay`: in one direction, in microseconds; with a delay, `send` needs a running event
    loop. Messages are not copied: treat them as immutable. If `nodes` is given, a rule about
    another node raises `ConfigError`.
    """

    def __init__(self, link_delay: Micros = 0, nodes: Sequence[NodeId] = ()):
        self._nodes = nodes
        self._delay = link_delay / _MICROS
        self._receivers: dict[NodeId, Receive] = {}
        self._cut: dict[Link, None] = {}
        self._isolated: dict[NodeId, None] = {}
        self._held: dict[Link, list[object]] = {}
        self._travelling: deque[_Travelling] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._direct = link_delay == 0
        self._delivered: dict[type, int] = {}
        self._dropped: dict[type, int] = {}

    def attach(self, node: NodeId, receive: Receive) -> None:
        """From now on call `receive(sender, message)` for messages to `node`."""
        self._receivers[node] = receive

    def detach(self, node: NodeId) -> None:
        """From now on no message reaches `node`, also none that is in flight or held."""
        self._receivers.pop(node, None)
        for link in self._held:
            if link[1] == node:
                self._drop_all(link)

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Send a message. It arrives after the delay, or never."""
        if self._direct:
            receive = self._receivers.get(to)
            if receive is not None:
                try:  # this costs half as much as a Counter
                    self._delivered[message.__class__] += 1
                except KeyError:
                    self._delivered[message.__class__] = 1
                receive(sender, message)
                return
        self._send_by_rules(sender, to, message)

    def isolated(self, node: NodeId) -> bool:
        """Whether `isolate` holds for this node."""
        return node in self._isolated

    def isolate(self, node: NodeId) -> None:
        """Until `heal`, drop all messages between `node` and every other node."""
        self._check("node", node)
        self._isolated[node] = None
        self._rules_changed()

    def cut(self, a: NodeId, b: NodeId) -> None:
        """Until `heal`, drop messages from `a` to `b`. The other direction is not affected."""
        self._check("a", a)
        self._check("b", b)
        self._cut[a, b] = None
        self._rules_changed()

    def heal(self, node: NodeId | None = None) -> None:
        """End isolation and cuts: all, or those that concern `node`. Holds stay."""
        if node is None:
            self._isolated.clear()
            self._cut.clear()
        else:
            self._check("node", node)
            self._isolated.pop(node, None)
            for link in [link for link in self._cut if node in link]:
                del self._cut[link]
        self._rules_changed()

    def hold(self, a: NodeId, b: NodeId) -> None:
        """Until `release`, keep messages from `a` to `b`."""
        self._check("a", a)
        self._check("b", b)
        self._held.setdefault((a, b), [])
        self._rules_changed()

    def release(self, a: NodeId, b: NodeId) -> None:
        """End `hold`: send the kept messages in order, before any newer one."""
        self._check("a", a)
        self._check("b", b)
        held = self._held.pop((a, b), [])
        self._rules_changed()
        for message in held:
            self.send(a, b, message)

    @property
    def delivered(self) -> dict[str, int]:
        """How many messages were delivered so far, by the name of their type."""
        return _by_name(self._delivered)

    @property
    def dropped(self) -> dict[str, int]:
        """How many messages were dropped so far, by a rule or because nobody was attached, by the
        name of their type."""
        return _by_name(self._dropped)

    @property
    def held(self) -> int:
        """How many messages wait for `release`."""
        return sum(map(len, self._held.values()))

    def _check(self, name: str, node: NodeId) -> None:
        """Raise `ConfigError` for a node that does not exist: such a rule would have no effect."""
        if self._nodes:
            whole(name, node, self._nodes[0], self._nodes[-1])

    def _rules_changed(self) -> None:
        rules = self._cut or self._isolated or self._held
        self._direct = not self._delay and not rules

    def _blocked(self, sender: NodeId, to: NodeId) -> bool:
        isolated = self._isolated
        return (sender, to) in self._cut or (
            sender != to and (sender in isolated or to in isolated)
        )

    def _send_by_rules(self, sender: NodeId, to: NodeId, message: object) -> None:
        receive = self._receivers.get(to)
        if receive is None or self._blocked(sender, to):
            _count(self._dropped, message)
            return
        held = self._held.get((sender, to))
        if held is not None:
            held.append(message)
        elif self._delay:
            self._delay_message(sender, to, receive, message)
        else:
            _count(self._delivered, message)
            receive(sender, message)

    def _delay_message(self, sender: NodeId, to: NodeId, receive: Receive, message: object) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._delay
        self._travelling.append(_Travelling(due, sender, to, receive, message))
        if self._timer is None:
            self._timer = loop.call_later(self._delay, self._arrive, due)

    def _arrive(self, due: float) -> None:
        """Deliver messages that are due. `due` counts as reached even if the loop's clock rounds
        below it."""
        self._timer = None
        loop = asyncio.get_running_loop()
        reached = max(due, loop.time())
        travelling = self._travelling
        while travelling and travelling[0].due <= reached:
            item = travelling.popleft()
            attached = self._receivers.get(item.to)
            if attached is not item.receive or self._blocked(item.sender, item.to):
                _count(self._dropped, item.message)
                continue
            _count(self._delivered, item.message)
            item.receive(item.sender, item.message)
        if travelling and self._timer is None:
            head = travelling[0].due
            self._timer = loop.call_later(max(0.0, head - loop.time()), self._arrive, head)

    def _drop_all(self, link: Link) -> None:
        for message in self._held[link]:
            _count(self._dropped, message)
        self._held[link] = []


def _count(counts: dict[type, int], message: object) -> None:
    kind = message.__class__
    counts[kind] = counts.get(kind, 0) + 1


def _by_name(counts: dict[type, int]) -> dict[str, int]:
    return {kind.__name__: count for kind, count in sorted(counts.items(), key=_name)}


def _name(item: tuple[type, int]) -> str:
    return item[0].__name__
