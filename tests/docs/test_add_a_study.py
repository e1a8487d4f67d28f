"""The study on docs/how-to/add-a-study.md is run as it stands there."""

import re
import shlex
from pathlib import Path

from cli_process import ottla

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-study.md"


def test_the_study_on_the_page_runs_as_the_page_says(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^\$ (ottla study run .*)$", page, re.MULTILINE)
    assert text.count("\n") <= 10
    _, *words, name, option, out = shlex.split(command)
    (tmp_path / name).write_text(text, encoding="utf-8")
    asked = (*words, tmp_path / name, option, tmp_path / out, "--engine", "duckdb")
    done = ottla(*asked, within=120)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^The median is \d+\.\d ms at best, \d+\.\d ms at worst\.$", done.stdout, re.MULTILINE
    )
    report = (tmp_path / out / "report.html").read_text(encoding="utf-8")
    assert "What a promise costs" in report
    assert "40 runs" in report
