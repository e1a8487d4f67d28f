"""Nobody who decides goes through a set, also not one that another function wrote as a display.

The net of a run does not see displays (`ottla.sim.chance.outside`), so their sources are rewritten.
"""

import json

import pytest

from ottla.sim.chance.outside import RefusedError
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from sim_pythons import fresh
from sim_set_displays import planted

SEEDS = 20
CONFIG = RunConfig(load_ms=3_000, records=60, fault_every_ms=300)


@pytest.mark.slow
def test_runs_go_through_no_set_that_is_written_down_and_come_to_the_same():
    told = json.loads(fresh(["-m", "sim_set_displays", "0", str(SEEDS), CONFIG.told()]))
    ran = [run(seed, CONFIG) for seed in range(SEEDS)]
    assert told["came"] == [[each.verdict.value, each.reason, each.digest] for each in ran]
    assert told["sets"] > 10


@pytest.mark.parametrize(
    "written", ["{x for x in z}", "{*z}", "{z[0], z[1]}", "{1} | {x for x in z}"]
)
@pytest.mark.parametrize("how", ["list(f(z))", "[y for y in f(z)]", "f(z).pop()", "min(f(z))"])
def test_a_set_that_comes_from_a_helper_is_seen(written, how):
    module = planted(f"def f(z):\n    return {written}\ndef g(z):\n    return {how}\n")
    assert module["f"]([2, 1]) >= {1, 2}
    with pytest.raises(RefusedError, match="going through a set"):
        module["g"]([2, 1])


def test_a_constant_of_a_module_is_seen():
    module = planted("ROLES = frozenset({1, 2})\ndef g():\n    return [*ROLES]\n")
    with pytest.raises(RefusedError, match="going through a frozenset"):
        module["g"]()
