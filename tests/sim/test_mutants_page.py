"""The kill matrix: every mutant has a scenario that catches it, and the page says which."""

from __future__ import annotations

from typer.testing import CliRunner

from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.mutants.matrix import Kills
from ottla.sim.mutants.report import over_all, page, scenarios, span
from ottla.sim_cli.app import app


def kills(mutant: str, seeds: int, killed: int) -> Kills:
    return Kills(BY_ID[mutant], seeds, killed, (("sim-I01", killed),), 0, "")


def test_every_mutant_is_caught_in_a_scenario():
    assert [row.id for row in CATALOGUE if row.id not in scenarios()] == []


def test_figures_over_all_count_who_survives_as_never_killed():
    found = [kills("M01", 100, 50), kills("M02", 100, 10), kills("M03", 100, 0)]
    assert over_all(found).startswith(
        "2 of 3 mutants killed; seeds to kill over mutants: median 10"
    )
    assert "95th percentile inf" in over_all(found)
    assert span(found[1]) == "10.0 (5.7 to 18.1)"
    assert span(found[2]) == "more than 27"
    assert "| sim-M02 | refusal of gaps | " in page(found, "ottla sim mutants")


def test_the_command_tells_and_keeps_the_matrix(tmp_path):
    kept = tmp_path / "mutants.md"
    told = CliRunner().invoke(app, ["mutants", "M06", "--seeds", "2", "--page", str(kept)])
    assert told.exit_code == 0, told.output
    assert "M06       2 of 2 failed" in told.stdout
    assert "1 of 1 mutants killed" in told.stdout
    assert "`ottla sim mutants M06 --seeds 2 --first 0`" in kept.read_text(encoding="utf-8")
    assert CliRunner().invoke(app, ["mutants", "M99"]).exit_code != 0
