"""A file of the right size that cannot be read: its folder is named, and what helps does."""

import shutil

import pytest

from cli_process import ottla
from studies_tiny import TINY

pytestmark = pytest.mark.slow

TABLE = """
[[table]]
title = "Requests"
sql = "SELECT * FROM gold_requests ORDER BY variant"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "tiny.toml").write_text(TINY + TABLE)
    assert run(folder).returncode == 0
    return folder


def run(folder):
    asked = ("study", "run", folder / "tiny.toml", "--out", folder / "out", "--engine", "duckdb")
    return ottla(*asked)


@pytest.mark.parametrize("from_end", [20, 2])
@pytest.mark.parametrize("table", ["gold/requests", "silver/runs/batch=00000"])
def test_a_file_that_has_rotted_is_named_and_its_folder_can_be_made_anew(
    whole, tmp_path, table, from_end
):
    """It was `TProtocolException: Invalid data`, or a traceback, and named nothing."""
    copied = tmp_path / "copied"
    shutil.copytree(whole, copied)
    folder = copied / "out" / table
    (part,) = folder.glob("*.parquet")
    rotten = bytearray(part.read_bytes())
    rotten[-from_end] ^= 0xFF
    part.write_bytes(rotten)
    done = run(copied)
    assert done.returncode == 2
    assert done.stderr == (
        f"ottla: {folder}: {part.name} cannot be read; delete the folder, and the same command "
        f"makes it again\n"
    )
    shutil.rmtree(folder)
    assert run(copied).returncode == 0
