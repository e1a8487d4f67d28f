"""The command that a page says it is from does it again, word by word; and a page replaces another
page, nothing else."""

import re
import shlex
from html import unescape

import pytest

from cli_process import ottla


@pytest.mark.slow
def test_a_page_names_its_command_with_all_its_settings(tmp_path):
    settings = tmp_path / "my settings.toml"
    settings.write_text("load_ms = 200\nrecords = 4\n")
    shared = ["--config", str(settings), "--set", "faults=kill isolate"]
    for command in (
        ["sim", "coverage", "--first", "0x3", "--seeds", "1", *shared],
        ["sim", "explain", "3", *shared],
    ):
        page = tmp_path / "page.html"
        done = ottla(*command, "--out", page)
        assert done.returncode == 0, done.stderr
        told = re.search(r"ottla sim [^<]*", page.read_text(encoding="utf-8"))
        assert told is not None
        assert shlex.split(unescape(told[0])) == ["ottla", *command]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["explain", "3"], ["why", "3"], ["coverage", "--seeds", "1"]],
    ids=lambda each: each[0],
)
def test_what_is_no_page_stays(tmp_path, command):
    notes = tmp_path / "notes.html"
    notes.write_text("<!doctype html><p>my own notes\n")
    done = ottla("sim", *command, "--out", notes)
    assert done.returncode == 2
    assert done.stderr.strip().endswith(
        f"{notes}: exists, and is not a page of Ottla's; name another file"
    )
    assert notes.read_text() == "<!doctype html><p>my own notes\n"
