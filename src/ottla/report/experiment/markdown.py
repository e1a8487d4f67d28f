"""An experiment as a section of a Markdown page: for documents, where a picture says too little."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import fill

from ottla.sim.experiments.model import Experiment, Report

_WIDTH = 120
"""Columns of a line of documentation."""
_OPENING = re.compile(r"## .+\n\n(?:.+\n)+\n```console\n\$ ottla sim experiment ")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)


def markdown(experiment: Experiment, report: Report, command: str) -> str:
    """The section, with a newline at the end; reasons are numbered and stand below the table."""
    notes = list(dict.fromkeys(line.reason for line in report.lines))
    heads = [column.head for column in report.columns] + ["why"]
    marks = ["---:" if column.number else "---" for column in report.columns] + ["---:"]
    lines = ([*line.cells, str(notes.index(line.reason) + 1)] for line in report.lines)
    parts = [
        f"## {experiment.title}\n\n{_wrapped('', experiment.question)}\n",
        f"```console\n$ {command}\n```\n\n",
        _wrapped("- ", f"published: {experiment.published}"),
        *(_wrapped("- ", f"{thing}: {how}") for thing, how in experiment.conditions),
        "\n",
        *map(_row, (heads, marks, *lines)),
        "\n",
        *(_wrapped(f"{number}. ", note) for number, note in enumerate(notes, 1)),
        "\nSo:\n\n",
        *(_wrapped("- ", finding) for finding in report.findings),
    ]
    return "".join(parts)


def is_section(text: str) -> bool:
    """Whether a text is such a section, and nothing else has a heading there."""
    return _OPENING.match(text) is not None and len(_HEADING.findall(text)) == 1


def _wrapped(mark: str, text: str) -> str:
    """A paragraph, or an item of a list behind its mark."""
    indent = " " * len(mark)
    told = fill(text, _WIDTH, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False)
    return f"{told}\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
