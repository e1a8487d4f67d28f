"""The clocks of the nodes, which differ from the simulator's time.

A node's monotonic clock has some start value and drifts. It may jump forward (a machine that
slept), but never back. Its wall clock may be off by hours, jump either way, be slewed as NTP does,
or stand still (sim-C1). Both are straight lines over the simulator's time, in whole microseconds. A
change begins a new line where the old one ends.

A clock belongs to the machine, so it goes on through the lives of its node.
"""

from __future__ import annotations

from ottla.log.types import Millis
from ottla.raft.types import Micros

MILLION = 1_000_000
EPOCH_MS: Millis = 1_700_000_000_000
"""Wall clock of all nodes at the simulator's time 0, before their offsets: ms since 1970."""


class NodeClock:
    """Monotonic and wall clock of one machine."""

    __slots__ = ("_wall_base", "_wall_rate", "_wall_since", "base", "rate", "since")

    def __init__(self, base: Micros = 0, drift_ppm: int = 0):
        """`base`: what it shows at time 0. `drift_ppm`: how much faster it goes, per million."""
        self.base = base
        """What it showed at `since`."""
        self.since: Micros = 0
        """The simulator's time at which its present line began."""
        self.rate = MILLION + drift_ppm
        """How far it goes in a million microseconds."""
        self._wall_base: Micros = 0
        self._wall_since: Micros = 0
        self._wall_rate = MILLION

    def read(self, now: Micros) -> Micros:
        """What the monotonic clock shows at the simulator's time `now`."""
        span = now - self.since
        if self.rate != MILLION:
            span = span * self.rate // MILLION
        return self.base + span

    def when(self, shown: Micros) -> Micros:
        """The simulator's first time at which it shows `shown`, if its rate stays as it is."""
        span = shown - self.base
        if self.rate != MILLION:
            span = -(-span * MILLION // self.rate)
        return self.since + span

    def wall_ms(self, now: Micros) -> Millis:
        """What the wall clock shows."""
        return EPOCH_MS + self._wall(now) // 1000

    def _wall(self, now: Micros) -> Micros:
        return self._wall_base + (now - self._wall_since) * self._wall_rate // MILLION

    def jump(self, now: Micros, span: Micros) -> None:
        """It jumps forward by `span`, as after a machine's sleep; never back."""
        assert span >= 0, f"a monotonic clock set back by {-span} us"
        self.base, self.since = self.read(now) + span, now

    def drift(self, now: Micros, ppm: int) -> None:
        """From now on it is `ppm` millionths faster (or slower)."""
        self.base, self.since = self.read(now), now
        self.rate = MILLION + ppm

    def step_wall(self, now: Micros, offset_ms: Millis) -> None:
        """The wall clock is off by `offset_ms` from now on. Its rate stays as it is."""
        self._wall_base, self._wall_since = now + 1000 * offset_ms, now

    def slew_wall(self, now: Micros, ppm: int) -> None:
        """From now on the wall clock is `ppm` millionths faster or slower; at -`MILLION` it stands
        still."""
        self._wall_base, self._wall_since = self._wall(now), now
        self._wall_rate = MILLION + ppm
