"""The kill matrix: every mutant has a scenario that catches it, and the page says which."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.mutants.matrix import Kills
from ottla.sim.mutants.report import kept, merged, over_all, page, scenarios, span
from ottla.sim_cli.app import app

ROOT = Path(__file__).resolve().parents[2]


def kills(mutant: str, seeds: int, killed: int) -> Kills:
    noticed = (("sim-I01", killed), ("sim-I02", 1)) if killed else ()
    return Kills(BY_ID[mutant], 1_000, seeds, killed, noticed)


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
    assert "| sim-M02 | refusal of gaps | " in page(found)


def test_a_page_keeps_the_rows_of_mutants_that_were_not_asked_for():
    old = [kills("M01", 100, 50), kills("M02", 100, 0), kills("M05", 100, 7)]
    assert kept(page(old)) == old
    again = [kills("M04", 500, 1), kills("M02", 500, 9)]
    both = merged(again, page(old))
    assert both == [old[0], again[1], again[0], old[2]]
    assert "4 of 4 mutants killed" in page(both)
    assert kept(page(old).replace("sim-M05", "sim-M99")) == old[:2]
    assert merged(again, "") == [again[1], again[0]]


def test_the_command_tells_and_keeps_the_matrix(tmp_path):
    kept_at = tmp_path / "mutants.md"
    told = CliRunner().invoke(app, ["mutants", "M06", "--seeds", "2", "--page", str(kept_at)])
    assert told.exit_code == 0, told.output
    assert "M06       2 of 2 failed" in told.stdout
    assert "1 of 1 mutants killed" in told.stdout
    assert [each.row.id for each in kept(kept_at.read_text(encoding="utf-8"))] == ["M06"]
    assert CliRunner().invoke(app, ["mutants", "M99"]).exit_code != 0


def test_the_kept_page_tells_of_every_mutant_what_the_catalogue_and_the_scenarios_say():
    """Its figures are those of the runs it was written from, hours of them."""
    text = (ROOT / "docs" / "reference" / "mutants.md").read_text(encoding="utf-8")
    found = kept(text)
    assert text == page(found)
    assert [each.row.id for each in found] == sorted(BY_ID)
    assert all(each.killed and each.seeds >= 500 for each in found)
