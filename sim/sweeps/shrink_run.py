"""How a shrinker replays: the whole run, for one kind of anomaly."""

from __future__ import annotations

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Replayed
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.run import replay
from ottla.sim.sweeps.shrink import Attempt, Replay
from ottla.sim.sweeps.tape_file import Case


def replayer(shown: Anomaly) -> Replay:
    """Replays a case; None: no anomaly of that kind shows."""

    def attempt(case: Case) -> Attempt | None:
        try:
            outcome = replay(case.tape, case.config, Replayed)
        except ConfigError:
            return None
        for anomaly in outcome.anomalies:
            if anomaly.kind == shown.kind:
                at = outcome.rows[anomaly.eid].t_us
                return Attempt(Case(outcome.config, outcome.tape), at)
        return None

    return attempt
