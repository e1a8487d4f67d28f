"""Shrinking: the same anomaly with as few choices as possible that are not plain.

A tape holds every choice that was not zero, so removing choices makes a run plainer: faults,
workload and delays alike. Shrinking goes from large to small, and begins again as long as anything
helps:

1. settings of the run: fewer records, one producer, nothing after the anomaly, no more nodes than
   usual, the defaults,
2. whole purposes: all delays of all links, all disks, all choices for elections,
3. whole streams: all delays of one link, all of the nemesis,
4. halves of streams, then quarters, ... (delta debugging, Zeller 2002): first of all streams, then
   smaller parts, so that large parts go first and no time is wasted,
5. if none of that helps any more, single values: smaller ones.

Each step replays the run and keeps the change if an anomaly of the same kind shows. Choices that a
replay no longer asks for are removed too: the tape of the replay is the new tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ottla.broker.errors import ConfigError
from ottla.raft.types import Micros
from ottla.sim.chance.choices import Taken, Tape
from ottla.sim.settings.link_times import links_within
from ottla.sim.settings.settings import SETTINGS, RunConfig
from ottla.sim.sweeps.tape_file import Case

MS: Micros = 1_000
_KEPT = frozenset(
    {
        "batch_records",
        "consumers",
        "heartbeat_ms",
        "load_ms",
        "mutants",
        "partitions",
        "producers",
        "profile",
        "records",
    }
)
"""Settings that are made smaller or kept, and never reset to their defaults."""


class Attempt(NamedTuple):
    """The result of one replay."""

    case: Case
    """The case, with the tape as the replay used it."""
    at: Micros
    """When the anomaly showed."""


Replay = Callable[[Case], Attempt | None]
"""Replays a case; None: the anomaly does not show."""
Progress = Callable[[int, int, Case], None]
"""Called after each replay with the number so far, the number kept, and the smallest case."""


class Shrinker:
    """See the module's docstring. `enough()` ends it between two replays."""

    def __init__(self, case: Case, replay: Replay, enough: Callable[[], bool], progress: Progress):
        first = replay(case)
        if first is None:
            raise ValueError("the run does not show this anomaly")
        self.best = first
        self.replays = 1
        self.kept = 0
        self._replay = replay
        self._enough = enough
        self._progress = progress

    def run(self) -> Case:
        """The smallest case found."""
        helped = True
        while helped and not self._enough():
            before = self.kept
            for step in (self._settings, self._purposes, self._streams, self._parts):
                step()
            if self.kept == before:
                self._values()
            helped = self.kept > before
        return self.best.case

    def _try(self, case: Case) -> bool:
        """Whether the anomaly still shows; then this is the new best."""
        if self._enough():
            return False
        attempt = self._replay(case)
        self.replays += 1
        kept = attempt is not None
        if attempt is not None:
            self.best = attempt
            self.kept += 1
        self._progress(self.replays, self.kept, self.best.case)
        return kept

    # ---- settings

    def _settings(self) -> None:
        for propose in (
            _end_after_anomaly,
            _fewer("records", 1),
            _fewer("producers", 1),
            _fewer("consumers", 0),
            _fewer("partitions", 1),
            _fewer("batch_records", 1),
        ):
            while True:
                config = propose(self.best.case.config, self.best.at)
                if config is None or not self._try(self.best.case._replace(config=config)):
                    break
        for changes in _fewer_nodes(self.best.case.config):
            if self._try_settings(changes):
                break
        plain = RunConfig()
        for name in SETTINGS:
            # More records or a longer run may be the default, but are not plainer.
            if name not in _KEPT:
                self._try_settings({name: getattr(plain, name)})

    def _try_settings(self, changes: dict[str, Any]) -> bool:
        """As `_try`. Settings that contradict others are skipped: they may be possible later, when
        those others are back at their defaults."""
        config = self.best.case.config
        try:
            changed = config.with_(**changes)
        except ConfigError:
            return False
        return changed != config and self._try(self.best.case._replace(config=changed))

    # ---- purposes, streams and their parts

    def _purposes(self) -> None:
        """Streams have names such as `link 1>2`; the first word is the purpose."""
        purposes: dict[str, int] = {}
        for name in self.best.case.tape.taken:
            purpose = name.split(" ")[0]
            purposes[purpose] = purposes.get(purpose, 0) + self._weight(name)
        for purpose in sorted(purposes, key=lambda each: (-purposes[each], each)):
            case = self.best.case
            left = {n: v for n, v in case.tape.taken.items() if n.split(" ")[0] != purpose}
            if purposes[purpose] and len(Tape(left)) < len(case.tape):
                self._try(case._replace(tape=Tape(left)))

    def _streams(self) -> None:
        for name in sorted(self.best.case.tape.taken, key=self._weight, reverse=True):
            if self.best.case.tape.taken.get(name):
                self._try(self._with(name, {}))

    def _weight(self, name: str) -> int:
        return len(self.best.case.tape.taken[name])

    def _with(self, name: str, places: Taken) -> Case:
        case = self.best.case
        return case._replace(tape=Tape({**case.tape.taken, name: places}))

    def _parts(self) -> None:
        size = max((self._weight(name) for name in self.best.case.tape.taken), default=0) // 2
        while size >= 1 and not self._enough():
            for name in sorted(self.best.case.tape.taken):
                if len(self.best.case.tape.taken.get(name, {})) >= size:
                    self._strike_parts(name, size)
            size //= 2

    def _strike_parts(self, name: str, size: int) -> None:
        """Remove runs of `size` choices of a stream, from its end, because late choices matter
        less."""
        start = len(self.best.case.tape.taken.get(name, {})) - size
        while start > -size and not self._enough():
            places = self.best.case.tape.taken.get(name, {})
            keys = sorted(places)
            gone = set(keys[max(start, 0) : start + size])
            if gone:
                self._try(self._with(name, {k: places[k] for k in keys if k not in gone}))
            start -= size

    # ---- values

    def _values(self) -> None:
        for name in sorted(self.best.case.tape.taken):
            for place in sorted(self.best.case.tape.taken.get(name, {})):
                for smaller in _smaller(self.best.case.tape.taken.get(name, {}).get(place, 0)):
                    places = self.best.case.tape.taken.get(name, {})
                    if self._try(self._with(name, {**places, place: smaller})):
                        break


def _smaller(value: int) -> Iterator[int]:
    """Plainer values, the plainest first."""
    tried = 1
    while tried < value:
        yield tried
        tried *= 4


def _end_after_anomaly(config: RunConfig, at: Micros) -> RunConfig | None:
    load_ms = at // MS + 1
    return config.with_(load_ms=load_ms) if load_ms < config.load_ms else None


def _fewer_nodes(config: RunConfig) -> Iterator[dict[str, Any]]:
    """Settings for the usual number of nodes, for a run that has more, the plainest first. Replicas
    and links change with it, because none of the three could change alone."""
    nodes = RunConfig().nodes
    if config.nodes <= nodes:
        return
    fewer = {"nodes": nodes, "replicas": min(config.replicas, nodes)}
    yield {**fewer, "links": ""}
    if links := links_within(config.links, nodes):
        yield {**fewer, "links": links}


def _fewer(name: str, least: int) -> Callable[[RunConfig, Micros], RunConfig | None]:
    """What halves a setting as long as it is above `least`."""

    def propose(config: RunConfig, _at: Micros) -> RunConfig | None:
        value = getattr(config, name)
        return config.with_(**{name: max(least, value // 2)}) if value > least else None

    return propose
