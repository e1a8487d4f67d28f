"""The kill matrix: every mutant has a scenario that catches it, and the page says which.

What the page says of settings is what the matrix sweeps with: its commands are read as `ottla sim`
reads them.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli_process import ottla
from ottla.commands.sim.app import app
from ottla.commands.sim.asking import config_of
from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import Kills, settings_of
from ottla.sim.sweeps.mutants_page import (
    NotAPageError,
    check,
    failing_by,
    kept,
    merged,
    over_all,
    page,
    scenarios,
    span,
    swept_by,
)

ROOT = Path(__file__).resolve().parents[3]


def kills(mutant: str, seeds: int, killed: int, failing: int | None = None) -> Kills:
    noticed = (("sim-I01", killed), ("sim-I02", 1)) if killed else ()
    return Kills(BY_ID[mutant], 1_000, seeds, killed, noticed, failing)


def settings_in(command: str) -> RunConfig:
    """What a command of the page says of settings, as `ottla sim` understands it."""
    words = shlex.split(command)
    given = [word for at, word in enumerate(words) if words[at - 1] == "--set"]
    return config_of(None, given)


def test_every_mutant_is_caught_in_a_scenario():
    assert [row.id for row in CATALOGUE if row.id not in scenarios()] == []


def test_figures_over_all_count_who_survives_as_never_killed():
    found = [kills("M01", 100, 50), kills("M02", 100, 10), kills("M03", 100, 0)]
    assert over_all(found).startswith(
        "2 of 3 mutants killed; seeds to kill over mutants: median 10"
    )
    assert "95th percentile inf" in over_all(found)
    assert span(found[1]) == "10.0 (5.7 to 18.1)"
    assert span(found[2]) == "more than 33"
    assert "| sim-M02 | refusal of gaps | " in page(found)


def test_a_page_says_where_nodes_and_clients_noticed_by_themselves():
    own = Kills(BY_ID["M12"], 0, 100, 20, (("sim-I19", 15), ("sim-I00", 8)))
    told, none = (
        " ".join(page(found).split())
        for found in ([kills("M01", 100, 50), own], [kills("M01", 100, 50)])
    )
    assert "It was among what noticed in 8 of 70 kills: sim-M12 8 of 20. | id" in told
    assert "noticed in 0 of 50 kills. | id" in none


def test_a_page_keeps_the_rows_of_mutants_that_were_not_asked_for():
    old = [kills("M01", 100, 50, 1003), kills("M02", 100, 0), kills("M05", 100, 7)]
    assert kept(page(old)) == old
    again = [kills("M04", 500, 1), kills("M02", 500, 9)]
    both = merged(again, page(old))
    assert both == [old[0], again[1], again[0], old[2]]
    assert "4 of 4 mutants killed" in page(both)
    assert kept(page(old).replace("sim-M05", "sim-M99")) == old[:2]
    assert merged(again, "") == [again[1], again[0]]


def test_a_page_whose_rows_cannot_be_read_is_none():
    whole = page([kills("M01", 100, 50, 1003), kills("M02", 100, 0), kills("M05", 100, 7)])
    check(whole)
    check("")
    check(whole.replace("sim-M05", "sim-M99"))
    for old, new in (
        ("# Mutants", "# My mutants"),
        ("| id | without |", "| id | lacks |"),
        ("| 50 of 100 |", "| half |"),
        ("| 50 of 100 |", "| 101 of 100 |"),
        ("| 0 of 100 |", "| 0 of 0 |"),
        ("| sim-I01 7, sim-I02 1 |", "| sim-I01 |"),
        ("| sim-M02 | refusal", "| M02 | refusal"),
        ("--seed 1003", "--seed some"),
        ("| none did |", "| none |"),
    ):
        assert old in whole
        with pytest.raises(NotAPageError):
            check(whole.replace(old, new, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "told"),
    [
        (b"garbage\n", "it is no page that `ottla sim mutants` wrote; name another file"),
        (b"\xff", "is there, and no page: no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_page_is_left_alone_before_anything_is_run(there, told, tmp_path):
    path = tmp_path / "g.md"
    path.write_bytes(there)
    done = ottla("sim", "mutants", "M06", "--page", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
    assert path.read_bytes() == there


def test_a_page_says_how_each_mutant_is_swept_again_and_which_seed_failed_first():
    told = page([kills("M15", 100, 50, 1003), kills("M24", 100, 7), kills("M05", 100, 0)])
    _, _, below = told.partition("## Where each is looked for")
    m15, m24, m05 = (line for line in below.splitlines() if line.startswith("| sim-"))
    assert "`ottla sim sweep --seeds 100 --first 1000 --set mutants=M15 --set nodes=3 " in m15
    assert "`ottla sim run --seed 1003 --set mutants=M15 --set nodes=3 " in m15
    assert "--set faults=stuck-disk" in m15
    assert m24.endswith("--set mutants=M24 --set max_producers=2` | was not kept |")
    assert m05.endswith("--set mutants=M05` | none did |")


@pytest.mark.parametrize("mutant", BY_ID)
def test_the_commands_on_the_page_set_what_the_matrix_sets(mutant):
    """A sweep leaves alone what was said, so both must say the same."""
    meant = settings_of(BY_ID[mutant])
    found = kills(mutant, 100, 50, 1003)
    for command in (swept_by(found), failing_by(found)):
        assert command is not None
        told = settings_in(command)
        assert told == meant
        assert told.said == meant.said - {"profile"} | set(BY_ID[mutant].settings)


def test_the_command_tells_and_keeps_the_matrix(tmp_path):
    kept_at = tmp_path / "mutants.md"
    told = CliRunner().invoke(app, ["mutants", "sim-M06", "--seeds", "2", "--page", str(kept_at)])
    assert "\n1 of 1 mutants, 2 of 2 seeds, " in told.stdout
    assert told.exit_code == 0, told.output
    assert "M06       2 of 2 failed" in told.stdout
    assert "     ottla sim run --seed 0 --set mutants=M06\n" in told.stdout
    assert "1 of 1 mutants killed" in told.stdout
    assert [each.row.id for each in kept(kept_at.read_text(encoding="utf-8"))] == ["M06"]
    assert CliRunner().invoke(app, ["mutants", "M99"]).exit_code != 0


def test_a_matrix_that_is_ended_leaves_the_rows_that_were_done(tmp_path, monkeypatch):
    def ended(*_, **__):
        yield kills("M05", 2, 1, 0)
        raise KeyboardInterrupt

    monkeypatch.setattr("ottla.sim.sweeps.kills.matrix", ended)
    kept_at = tmp_path / "mutants.md"
    told = CliRunner().invoke(app, ["mutants", "M05", "M06", "--page", str(kept_at)])
    assert told.exit_code != 0
    assert [each.row.id for each in kept(kept_at.read_text(encoding="utf-8"))] == ["M05"]


def test_the_kept_page_tells_of_every_mutant_what_the_catalogue_and_the_scenarios_say():
    """Its figures are those of the runs it was written from, hours of them."""
    text = (ROOT / "docs" / "reference" / "mutants.md").read_text(encoding="utf-8")
    check(text)
    found = kept(text)
    assert text == page(found)
    assert [each.row.id for each in found] == sorted(BY_ID)
    assert all(each.killed and each.seeds >= 500 for each in found)
