"""What a sweep finds in its folder: its own results, or a line that says what they are instead.

A part that has another's seeds, settings or code would be taken for results that nobody has, and
its own seeds would never be run: so each is asked what it is of.
"""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from ottla.sim.machine.code_hash import code
from ottla.sim.settings.settings import RunConfig

FEW = RunConfig(load_ms=200, records=4, fault_every_ms=0)

SHORT = ("--set", "load_ms=200", "--set", "records=4")
OTHER = ("--set", "load_ms=200", "--set", "records=5")
AGAIN = "without this file its seeds are run again"


def swept(folder, seeds=30, settings=SHORT):
    """Lines of a sweep that ended well."""
    asked = ["sweep", "--seeds", str(seeds), *settings, "--out", str(folder)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def refused(folder, seeds=30, settings=SHORT):
    """The one line of a sweep that was refused."""
    asked = ["sweep", "--seeds", str(seeds), *settings, "--out", str(folder)]
    done = CliRunner().invoke(app, asked, standalone_mode=False)
    assert isinstance(done.exception, UsageError), done.exception
    (line,) = str(done.exception).splitlines()
    return line


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a sweep that ended well."""
    out = tmp_path_factory.mktemp("swept") / "out"
    swept(out)
    return out


@pytest.fixture
def folder(ended, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(ended, tmp_path / "out"))


def part(folder, first=0):
    return folder / f"part-{first:08d}.parquet"


@pytest.mark.parametrize(
    "held",
    [
        "[]",
        "null",
        "7",
        '"sweep"',
        "{",
        "[" * 100_000,
        "{}",
        '{"first": "0", "seeds": 30, "settings": ""}',
        '{"first": 0, "seeds": 0, "settings": ""}',
        '{"first": -1, "seeds": 30, "settings": ""}',
        '{"first": 0, "seeds": 30, "settings": []}',
    ],
)
def test_a_sweep_json_that_is_none_is_one_line(tmp_path, held):
    (tmp_path / "sweep.json").write_text(held)
    line = refused(tmp_path)
    assert line.startswith(f"{tmp_path / 'sweep.json'}: ")
    assert line.endswith("; choose another folder")
    covered = CliRunner().invoke(app, ["coverage", str(tmp_path)], standalone_mode=False)
    assert isinstance(covered.exception, UsageError)
    assert str(covered.exception).startswith(f"{tmp_path} holds no sweep: ")


@pytest.mark.parametrize(
    ("by", "told"),
    [("feed", "by code feed"), ("", "by an older Ottla, it does not say by what code")],
)
def test_a_sweep_of_other_code_is_covered_with_a_warning(tmp_path, by, told):
    settings = FEW.told()
    held = {"first": 3, "seeds": 1, "settings": settings, "code": by, "commit": ""}
    (tmp_path / "sweep.json").write_text(json.dumps(held))
    covered = CliRunner().invoke(app, ["coverage", str(tmp_path)])
    assert covered.exit_code == 0, covered.output
    (line,) = covered.stderr.splitlines()
    assert line == f"{tmp_path}: swept {told}; this is {code()}, its seeds may be other runs"


def test_a_sweep_of_this_code_is_covered_without_a_word(tmp_path):
    held = {"first": 3, "seeds": 1, "settings": FEW.told(), "code": code(), "commit": ""}
    (tmp_path / "sweep.json").write_text(json.dumps(held))
    assert CliRunner().invoke(app, ["coverage", str(tmp_path)]).stderr == ""


@pytest.mark.slow
def test_a_code_that_is_no_word_is_one_line(folder):
    manifest = folder / "sweep.json"
    told = json.loads(manifest.read_text()) | {"code": ["a\nb"], "commit": {}}
    manifest.write_text(json.dumps(told))
    assert "was swept by other code: an older one at commit not known, this is " in refused(folder)


@pytest.mark.slow
def test_another_sweep_is_told_in_words(folder):
    line = refused(folder, 31, OTHER)
    assert "out holds another sweep: seeds 0 to 29 with load_ms = 200, records = 4; " in line
    assert "this is seeds 0 to 30 with load_ms = 200, records = 5; choose another folder" in line
    assert "all settings at their defaults" in refused(folder, 1, ())


@pytest.mark.slow
def test_results_without_a_sweep_json_are_not_taken(folder):
    (folder / "sweep.json").unlink()
    for settings in (SHORT, OTHER):
        assert "has results, but no sweep.json that says of what" in refused(folder, 30, settings)
    assert not (folder / "sweep.json").exists()


def totals(told):
    """The line that counts the seeds of a sweep."""
    (line,) = (each for each in told if each.startswith("30 of 30 seeds"))
    return line


@pytest.mark.slow
def test_parts_of_other_settings_are_not_taken(folder, tmp_path):
    swept(tmp_path / "other", 30, OTHER)
    shutil.copy(part(folder, 25), part(tmp_path / "other", 25))
    told = f"{part(tmp_path / 'other', 25)}: is of other settings; {AGAIN}"
    assert refused(tmp_path / "other", 30, OTHER) == told
    part(tmp_path / "other", 25).unlink()
    assert "30 of 30 seeds" in totals(swept(tmp_path / "other", 30, OTHER))


@pytest.mark.slow
def test_parts_of_other_code_are_not_taken(folder, monkeypatch):
    kept = part(folder).read_bytes()
    manifest = folder / "sweep.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"code": "feed"}))
    monkeypatch.setattr("ottla.sim.sweeps.sweep_folder.code", lambda: "feed")
    assert refused(folder).endswith(f"is of other code; {AGAIN}")
    part(folder).unlink()
    part(folder, 25).unlink()
    swept(folder)
    assert part(folder).read_bytes() != kept


@pytest.mark.slow
def test_a_part_that_is_another_ones_copy_is_not_taken(folder):
    shutil.copy(part(folder), part(folder, 25))
    assert refused(folder) == f"{part(folder, 25)}: is of other seeds; {AGAIN}"
    part(folder, 25).unlink()
    shutil.copy(part(folder), part(folder, 50))
    assert refused(folder) == f"{part(folder, 50)} is no part of this sweep; take it away"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.replace_schema_metadata({}), "does not say what it is of"),
        (lambda rows: rows.slice(1), "has rows of other seeds than seeds 0 to 24"),
        (lambda rows: pa.concat_tables([rows, rows]), "has rows of other seeds than seeds 0 to 24"),
        (lambda rows: rows.drop_columns(["digest"]), "has other columns"),
    ],
)
def test_a_part_that_was_changed_is_not_taken(folder, change, told):
    rows = parquet.ParquetFile(part(folder)).read()
    parquet.write_table(change(rows), part(folder))
    assert refused(folder) == f"{part(folder)}: {told}; {AGAIN}"


@pytest.mark.slow
def test_a_folder_whose_name_looks_like_a_column_is_taken(tmp_path):
    """Readers of Parquet make a column of `seed=7` in a path."""
    swept(tmp_path / "seed=7")
    assert "30 were there already" in totals(swept(tmp_path / "seed=7"))


@pytest.mark.slow
def test_the_rate_is_of_what_was_run_now(folder):
    told = swept(folder)
    assert totals(told).endswith(" 30 were there already")
    assert "seeds/s" not in totals(told)
    assert told[-1] == "with 95 % confidence at most 1 in 10 seeds fail"
    part(folder).unlink()
    last = totals(swept(folder))
    assert re.fullmatch(
        r"30 of 30 seeds, 0 failed(, \d weakened)?, \d+\.\d seeds/s, 5 were there already", last
    ), last
