"""The command that a page says it is from does it again, word by word."""

import re
import shlex
from html import unescape

from cli_process import ottla


def test_a_page_names_its_command_with_all_its_settings(tmp_path):
    settings = tmp_path / "my settings.toml"
    settings.write_text("load_ms = 200\nrecords = 4\n")
    shared = ["--config", str(settings), "--set", "faults=kill isolate"]
    for command in (
        ["sim", "cover", "--first", "0x3", "--seeds", "1", *shared],
        ["sim", "explain", "3", *shared],
    ):
        page = tmp_path / "page.html"
        done = ottla(*command, "--out", page)
        assert done.returncode == 0, done.stderr
        told = re.search(r"ottla sim [^<]*", page.read_text(encoding="utf-8"))
        assert told is not None
        assert shlex.split(unescape(told[0])) == ["ottla", *command]
