"""One run: from a seed, or from a tape, to a verdict.

    boot      nodes start, the topic exists, every partition has a leader
    load      clients work, the nemesis works against them
    heal      a core of nodes is healed and must recover by itself (`ending.py`)
    settle    the rest is healed too, all nodes agree, consumers read to the end
    judge     the checkers look at the whole history

A run ends early at the first anomaly that shows while it goes on, because what follows a broken
promise means nothing. Any other exception that ends it, or a checker, is an anomaly as well
(`breaking.py`). Only a decision that the reference model disagrees with does not end it
(`invariants/decisions.py`). Nothing here uses a clock or randomness: the same seed, configuration
and code give the same digest, in every process and on every Python.

| verdict | what it means |
|---|---|
| ok | no invariant is broken |
| failed | an invariant does not hold; `anomalies` say which |
| weakened | all that went wrong is explained: by a script that went beyond the fault budget, or |
| | because no more was promised, with acks of 0 or 1 or to a forgotten producer |
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from itertools import islice

from ottla.broker.profiles.named import profile_named
from ottla.raft.types import Micros
from ottla.sim.chance.choices import Choices, Drawn, Tape
from ottla.sim.chance.outside import ordered, refused
from ottla.sim.clients.odd_requests import OddRequests
from ottla.sim.clients.questions import Questions
from ottla.sim.clients.sequential import SequentialClient
from ottla.sim.clients.topic_requests import TopicRequests
from ottla.sim.clients.visits import begin_visits
from ottla.sim.clients.workload import make_clients
from ottla.sim.ending.breaking import Breaking, Broke, in_order
from ottla.sim.ending.ending import MS, Ending
from ottla.sim.history.history import Event, History
from ottla.sim.invariants.beyond import weighed
from ottla.sim.invariants.decisions import differing
from ottla.sim.invariants.findings import Anomaly, Findings
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import attach, judged_at_the_end, judged_by
from ottla.sim.invariants.promised_less import explained
from ottla.sim.invariants.weaker import noted, weaker
from ottla.sim.nemesis.beyond import beyond_the_budget
from ottla.sim.nemesis.nemesis import Nemesis, check_faults
from ottla.sim.plugins.own import OwnInvariant, added, switched_off
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.swarm import SITUATION, SWARM, draw
from ottla.sim.tracing.conformance import Conformance
from ottla.sim.world.world import World


class Verdict(Enum):
    """See the table in the module's docstring."""

    OK = "ok"
    FAILED = "failed"
    WEAKENED = "weakened"


@dataclass(slots=True)
class Outcome:
    """The result of a run."""

    config: RunConfig
    verdict: Verdict
    anomalies: list[Anomaly]
    weakened: list[str]
    """Losses and duplicates that are explained, and no failure: by a fault that no Raft survives,
    or because no more was promised."""
    unavoidable: list[str]
    """What could not recover, and why."""
    rows: list[Event]
    tape: Tape
    digest: str
    """Digest of the whole history and of the order of all events."""
    steps: int
    """How many events the kernel ran."""
    simulated: Micros
    broke: Broke | None = None
    """The run itself, or a checker, raised an exception. That says nothing about the broker's
    promises."""
    noted: list[str] = field(default_factory=list)
    """What clients stored twice by their own rules: no failure, and not weakened."""
    unjudged: dict[str, int] = field(default_factory=dict)
    """How often a checker could not judge, by the id of its invariant and what it was about."""
    checked: int = 0
    """How many steps were checked against the specification (`sim/specification`)."""
    forbidden: tuple[str, ...] = ()
    """The first step that it does not allow, in several lines; empty: all are allowed."""

    @property
    def reason(self) -> str:
        """The verdict in one line."""
        if self.anomalies:
            more = len(self.anomalies) - 1
            first = self.anomalies[0]
            rest = f" (and {more} more)" if more else ""
            return f"{first.invariant} at event {first.eid}: {first.text}{rest}"
        told = self.weakened or [*self.unavoidable, *self.noted] or ["no invariant is broken"]
        more = len(told) - 1
        return told[0] + (f" (and {more} more)" if more else "")


def run(seed: int, config: RunConfig | None = None) -> Outcome:
    """One run from a seed, which also draws all settings that the configuration leaves at their
    defaults. Raises `ConfigError` if it names faults that do not exist, or not with so few
    nodes."""
    return run_choices(Drawn(seed), config)


def run_choices(
    choices: Choices,
    config: RunConfig | None = None,
    *,
    swarm: bool = True,
    watching: Sequence[Callable[[World], None]] = (),
) -> Outcome:
    """One run with choices from any source. `watching`: called with the world before it boots."""
    if config is not None and swarm:
        check_faults(config)
    with undisturbed():  # nothing of the world outlives `_run`: all of it is collected here
        settings = config or RunConfig()
        if swarm:
            settings = draw(choices, settings)
            for stream in (SWARM, SITUATION):
                choices.forget(stream)  # the draws are settings now; they are not drawn again
        return _run(choices, settings, watching)


def _run(
    choices: Choices, settings: RunConfig, watching: Sequence[Callable[[World], None]]
) -> Outcome:
    with switched_off(settings.mutants, settings.plugins):  # for the broker, not for its judges
        world = World(settings, choices)
        # Beyond the budget promises are broken on purpose, and the run goes on to show the results.
        online = attach(world.history, stop=not beyond_the_budget(settings))
        # A disk that forgets what it synced breaks the rules of the specification on purpose.
        conformance = None if beyond_the_budget(settings) else Conformance(world)
        for each in watching:
            each(world)
        clients = make_clients(world)
        ending = Ending(world, clients)
        with Breaking(world.history) as playing:
            _play(world, ending)
    judged = _Judged(playing.anomalies)
    with Breaking(world.history) as judging:
        judged = _judged(world, online, playing)
    broke = playing.broke or judging.broke
    own: list[Anomaly] = []
    if not playing.ended and not judging.broke:
        own, broke = judged_by_own(world)
    anomalies = in_order([*judged.anomalies, *judging.anomalies], own)
    outcome = _outcome(world, ending, anomalies, judged.weakened)
    outcome.noted, outcome.unjudged = judged.notes, judged.unjudged
    outcome.broke = broke
    if conformance is not None:
        outcome.checked, outcome.forbidden = conformance.steps, conformance.told
    return outcome


def _play(world: World, ending: Ending) -> None:
    """Run all phases."""
    world.boot()
    nemesis = Nemesis(world)
    nemesis.start()
    OddRequests(world).start()
    Questions(world).start()
    begin_visits(world)
    if not beyond_the_budget(world.config):  # what it takes is told of the run's own topic alone
        TopicRequests(world).start()
        SequentialClient(world, depose=nemesis.depose).start()
    ending.clients.start()
    world.kernel.run(world.kernel.now + world.config.load_ms * MS)
    nemesis.stop()
    ending.settle()
    ending.finish()
    world.note_unanswered()
    world.note_final()


@dataclass
class _Judged:
    """What does not hold, online and at the end; what is explained; what is noted; and what could
    not be judged."""

    anomalies: list[Anomaly]
    weakened: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unjudged: dict[str, int] = field(default_factory=dict)


def judged_by_own(world: World) -> tuple[list[Anomaly], Broke | None]:
    """What the invariants of a run's plugins find at its end, and what the first broke with that
    broke itself: that costs the others nothing."""
    found: list[Anomaly] = []
    broke: Broke | None = None
    own = added(world.config.plugins, OwnInvariant)
    index = Index(world.history.rows if own else ())
    for each in own:
        with Breaking(world.history) as judging:
            found += judged_by(each, index)
        found += judging.anomalies
        broke = broke or judging.broke
    return found, broke


def _judged(world: World, online: Findings, playing: Breaking) -> _Judged:
    rows = world.history.rows
    less: list[str] = []
    notes: list[str] = []
    unjudged: dict[str, int] = {}
    if playing.ended:
        wrong = differing(row for row in rows if row.kind == "decide")
        anomalies = [*islice(wrong, 1), *playing.verdicts]
    else:
        index = Index(rows)
        anomalies = sorted(judged_at_the_end(index), key=lambda anomaly: anomaly.eid)
        less += weaker(index)
        allowed, anomalies = explained(profile_named(world.config.profile), index, anomalies)
        less += allowed
        notes += noted(index)
        unjudged = {f"{which} {what}": count for (which, what), count in index.unjudged.items()}
    weakened: list[str] = []
    if beyond_the_budget(world.config):
        weakened, anomalies = weighed(rows, [*online.first.values(), *anomalies])
    found = in_order(anomalies, playing.unexplained)
    return _Judged(found, [*weakened, *less], notes, unjudged)


def _outcome(
    world: World, ending: Ending, anomalies: list[Anomaly], weakened: list[str]
) -> Outcome:
    verdict = Verdict.WEAKENED if weakened else Verdict.OK
    if anomalies:
        verdict = Verdict.FAILED
    return Outcome(
        world.config,
        verdict,
        anomalies,
        weakened,
        ending.unavoidable,
        world.history.rows,
        world.choices.tape,
        digest(world),
        world.kernel.steps,
        world.kernel.now,
    )


def digest(world: World) -> str:
    """Digest of the whole history of a world and of the order of all events: 16 hex digits."""
    kernel = world.kernel
    told = f"{world.history.digest().hex()}/{kernel.fold}/{kernel.steps}"
    return blake2b(told.encode(), digest_size=8).hexdigest()


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection at odd moments, no log lines about nodes that die on purpose
    (`breaking.py` gets their exceptions), and nothing of the outside world (`outside.py`)."""
    logger = logging.getLogger("ottla")
    collecting, silent = gc.isenabled(), logger.disabled
    gc.disable()
    logger.disabled = True
    try:
        with refused(), ordered():
            yield
    finally:
        logger.disabled = silent
        if collecting:
            gc.enable()
            gc.collect(0)


def replay(tape: Tape, config: RunConfig, choices: Callable[[Tape], Choices]) -> Outcome:
    """One run from a tape, under the configuration it was made with."""
    return run_choices(choices(tape), config, swarm=False)


__all__ = ["History", "Outcome", "Verdict", "replay", "run", "run_choices"]
