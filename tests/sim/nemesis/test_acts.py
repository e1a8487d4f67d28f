"""Every program of the nemesis does something: with it alone a run is another one than without.

Programs have been in the table that never did anything, for want of what they wait for, and nobody
saw: a fault's row says what was asked for. So that row does not count here, nor what else a program
notes of its own doing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.nemesis.nemesis import named
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.run import Verdict, run_choices
from ottla.sim.settings.settings import RunConfig

CONFIG = RunConfig(
    nodes=4,
    producers=2,
    records=60,
    load_ms=3_000,
    loss_ppm=0,
    fault_every_ms=500,
)
SEEDS = range(3)
NOTED = ("fault", "pause", "resume")
ASKED = ("fetch", "learn", "error")
"""They tell how many rows there were when they were asked for, those of the program included."""
INERT = {
    "step-wall-clock": "nothing may depend on a wall clock; `test_clocks.py` shows that it moves",
}
"""Programs of which nobody may notice anything, and why."""


NEEDS = {"lose-decision": {"producer_expiry_ms": 300, "producers": 3}}
"""Settings without which a program finds nothing to do."""


def rows(seed, program, settings):
    """What a run with that program alone has to tell, but for what it notes of itself."""
    config = CONFIG.with_(faults=program, **settings)
    outcome = run_choices(Drawn(seed), config, swarm=False)
    assert outcome.verdict in _GOOD[bool(settings)], f"seed {seed}: {outcome.reason}"
    told = {row.code for row in outcome.rows if row.kind == "fault"}
    assert f"program {program}" in told, f"it never struck in seed {seed}"
    kept = [row for row in outcome.rows if row.kind not in NOTED]
    return [(row._replace(aux=None) if row.kind in ASKED else row)[1:] for row in kept]


_GOOD = ((Verdict.OK,), (Verdict.OK, Verdict.WEAKENED))
"""Where producers are forgotten a run may be weakened."""


@pytest.fixture(scope="module")
def without():
    """What a seed tells where the program does nothing."""

    @cache
    def of(seed, needy):
        with pytest.MonkeyPatch.context() as patch:
            idle = replace(named("kill"), run=lambda _: None)
            patch.setattr("ottla.sim.nemesis.nemesis.named", lambda *_: idle)
            return rows(seed, "kill", NEEDS.get(needy, {}))

    return lambda seed, program: of(seed, program if program in NEEDS else "")


@pytest.mark.slow
@pytest.mark.parametrize("program", [each.name for each in PROGRAMS])
def test_a_run_with_it_is_another_one_than_without(program, without):
    settings = NEEDS.get(program, {})
    differ = any(rows(seed, program, settings) != without(seed, program) for seed in SEEDS)
    if program in INERT:
        assert not differ, INERT[program]
    else:
        assert differ, f"{program} changed nothing in any of the seeds {list(SEEDS)}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "where"),
    [
        ("die-voted", "its vote written"),
        ("die-appended", "records written"),
        ("die-synced", "a sync that nobody heard of"),
        ("die-acknowledging", "an acknowledgement sent"),
        ("die-answering", "an answer on its lips"),
        ("die-deciding", "a decision sent"),
        ("held-truncation", "entries half replaced"),
    ],
)
def test_who_is_to_die_somewhere_gets_there(program, where):
    """Nobody votes while the leader is well: `die-voted` has it die first."""
    runs = (run_choices(Drawn(seed), CONFIG.with_(faults=program), swarm=False) for seed in SEEDS)
    crashes = (row.code for outcome in runs for row in outcome.rows if row.kind == "crash")
    assert where in crashes
