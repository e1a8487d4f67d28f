"""Ways between addresses, and the rules about them: how slow they are, and which are cut.

A rule is about the way *from* one address *to* another. An address is a host, `host:port`, or `*`;
the most exact rule wins. Rules may change at any time: a way looks at them for each segment.

Choices (jitter, cuts of pieces) come from a stream of the run's choices for each pair of hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ottla.raft.types import Micros
from ottla.sim.chance.choices import Choices
from ottla.sim.chance.delays import exponential

Address: TypeAlias = tuple[str, int]
Rule: TypeAlias = tuple[str, str]

SEGMENT_BYTES = 1 << 16


class Ways:
    """All ways of a network. `latency`, `jitter`: of ways without a rule. `chop_ppm`: how often a
    piece is cut in two."""

    def __init__(self, choices: Choices, *, latency: Micros, jitter: Micros, chop_ppm: int):
        self.choices = choices
        self.span = (latency, jitter)
        self.chop_ppm = chop_ppm
        self.spans: dict[Rule, tuple[Micros, Micros]] = {}
        self.cuts: dict[Rule, None] = {}
        self.stuck: list[tuple[HostWay, Callable[[], None]]] = []
        """Callbacks that wait for a way to be mended."""

    def way(self, source: Address, target: Address) -> HostWay:
        """The way from one address to the other."""
        return HostWay(self, source, target)

    def slow(self, source: str, target: str, latency: Micros, jitter: Micros = 0) -> None:
        """From now on segments take that long from `source` to `target`."""
        self.spans[source, target] = (latency, jitter)

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target`."""
        self.cuts[source, target] = None

    def partition(self, one: str, other: str) -> None:
        """Nothing gets through between the two."""
        self.cut(one, other)
        self.cut(other, one)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Remove the cuts from `source` to `target`; None stands for any address."""
        for rule in list(self.cuts):
            if source in {None, rule[0]} and target in {None, rule[1]}:
                del self.cuts[rule]
        stuck, self.stuck = self.stuck, []
        for way, call in stuck:
            if way.cut():
                self.stuck.append((way, call))
            else:
                call()


class HostWay:
    """One direction between two addresses: `ottla.sim.asyncio_runs.wires.Way`."""

    def __init__(self, ways: Ways, source: Address, target: Address):
        self._ways = ways
        self._stream = ways.choices.stream(f"way {source[0]}>{target[0]}")
        self._rules = [(a, b) for a in _names(source) for b in _names(target)]
        """Keys of the rules about it, the most exact first."""

    def cut(self) -> bool:
        """Whether nothing gets through now."""
        cuts = self._ways.cuts
        return bool(cuts) and any(rule in cuts for rule in self._rules)

    def is_about(self, rule: Rule) -> bool:
        """Whether a rule is about this way."""
        return rule in self._rules

    def span(self) -> Micros:
        """How long the next segment takes."""
        ways = self._ways
        found = (ways.spans[rule] for rule in self._rules if rule in ways.spans)
        least, jitter = next(found, ways.span)
        return least + exponential(self._stream, jitter)

    def piece(self, size: int) -> int:
        """How many of `size` bytes make up the next segment."""
        size = min(size, SEGMENT_BYTES)
        if size > 1 and self._stream.chance(self._ways.chop_ppm):
            return size - 1 - self._stream.below(size - 1)
        return size

    def when_mended(self, call: Callable[[], None]) -> None:
        """Call it, once, as soon as the way is no longer cut."""
        self._ways.stuck.append((self, call))


def _names(address: Address) -> tuple[str, ...]:
    return f"{address[0]}:{address[1]}", address[0], "*"
