"""How a shrinker replays: the whole run, for one invariant."""

from __future__ import annotations

from ottla.broker.errors import ConfigError
from ottla.sim.choices import Replayed
from ottla.sim.run import replay
from ottla.sim.shrink import Attempt, Replay
from ottla.sim.tape_file import Case


def replayer(invariant: str) -> Replay:
    """Replays a case; None unless that invariant is broken in it."""

    def attempt(case: Case) -> Attempt | None:
        try:
            outcome = replay(case.tape, case.config, Replayed)
        except ConfigError:
            return None
        for anomaly in outcome.anomalies:
            if anomaly.invariant == invariant:
                at = outcome.rows[anomaly.eid].t_us
                return Attempt(Case(outcome.config, outcome.tape), at)
        return None

    return attempt
