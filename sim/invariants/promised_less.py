"""Which anomalies are no failure, because the profile of a run promises less."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.profiles.profile import Profile
from ottla.sim.invariants.anywhere import begun_later
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.one_state import of_one_state


def explained(
    profile: Profile, index: Index, anomalies: Iterable[Anomaly]
) -> tuple[list[str], list[Anomaly]]:
    """Which of these anomalies the profile may lead to, a sentence each, and those that it may
    not."""
    told, left = of_one_state(profile, index, anomalies)
    more, left = begun_later(profile, index, left)
    return [*told, *more], left
