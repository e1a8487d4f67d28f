"""Settings as a person writes them: a TOML file, and what a command line adds to it.

Settings with which no run can go well are refused here, in one line that names the setting.
Settings that were not given are drawn to fit (`sim/settings/swarm.py`), or adapted
(`sim/settings/told.py`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace

from ottla.broker.errors import ConfigError
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.spelling import as_written
from ottla.sim.settings.told import fitted

LEAST_SETTLE_MS = 10_000
"""The least time for elections and retries with drawn settings."""


def from_toml(text: str, more: Mapping[str, int | str | bool] | None = None) -> RunConfig:
    """The settings of a file, and `more` of them, which win. Only all of them together have to make
    sense. Raises `ConfigError`."""
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits
        raise ConfigError(f"not TOML: {error}") from None
    for name, value in told.items():
        if not isinstance(value, int | str | bool):
            expected = "a whole number, a word, true or false is expected"
            if isinstance(value, list) and all(isinstance(each, str) for each in value):
                expected = f'write {name} = "{" ".join(value)}"'
            raise ConfigError(f"{name} is {as_written(value)}; {expected}")
    told |= more or {}
    plain = RunConfig()
    given = replace(plain.with_(**fitted(told, plain)), said=frozenset(told))
    _check_meant(given, told)
    return given


def _check_meant(given: RunConfig, told: Collection[str]) -> None:
    """Raises `ConfigError` if what was given cannot go well, whatever is drawn besides."""
    _check_patience(given, told)
    if "election_timeout_ms" in told:
        given.check_elections()
    if "replica_lag_ms" in told:  # settings that were not given are drawn to fit
        plain_ones = {"rtt_us": 0, "sync_us": 0, "sync_jitter_us": 0, "heartbeat_ms": 1}
        given.with_(**{n: v for n, v in plain_ones.items() if n not in told}).check_lag()
    least = max(LEAST_SETTLE_MS, 10 * given.election_timeout_ms)
    if "settle_ms" in told and given.settle_ms < least:
        raise ConfigError(
            f"settle_ms is {given.settle_ms}; with such elections it must be at least {least}"
        )


def _check_patience(given: RunConfig, told: Collection[str]) -> None:
    """Raises `ConfigError` if clients do not wait as long as answers take."""
    request, delivery = "request_timeout_ms", "delivery_timeout_ms"
    if {request, delivery} <= set(told) and given.delivery_timeout_ms < given.request_timeout_ms:
        raise ConfigError(
            f"{delivery} is {given.delivery_timeout_ms}, shorter than {request} "
            f"({given.request_timeout_ms}): clients refuse that"
        )
    for name in (request, delivery):
        if name in told and getattr(given, name) < given.patience_ms:
            raise ConfigError(
                f"{name} is {getattr(given, name)}; with these round trips it must be at least "
                f"{given.patience_ms}"
            )
