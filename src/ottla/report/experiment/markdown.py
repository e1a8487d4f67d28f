"""An experiment as a section of a Markdown page: for documents, where a picture says too little."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ottla.sim.experiments.model import Experiment, Report

_OPENING = re.compile(r"## .+\n\n.+\n\n```console\n\$ ottla sim experiment ")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)


def markdown(experiment: Experiment, report: Report, command: str) -> str:
    """The section, with a newline at the end; reasons are numbered and stand below the table."""
    notes = list(dict.fromkeys(line.reason for line in report.lines))
    heads = [column.head for column in report.columns] + ["why"]
    marks = ["---:" if column.number else "---" for column in report.columns] + ["---:"]
    lines = ([*line.cells, str(notes.index(line.reason) + 1)] for line in report.lines)
    parts = [
        f"## {experiment.title}\n\n{experiment.question}\n\n",
        f"```console\n$ {command}\n```\n\n",
        f"- published: {experiment.published}\n",
        *(f"- {thing}: {how}\n" for thing, how in experiment.conditions),
        "\n",
        *map(_row, (heads, marks, *lines)),
        "\n",
        *(f"{number}. {note}\n" for number, note in enumerate(notes, 1)),
        "\nSo:\n\n",
        *(f"- {finding}\n" for finding in report.findings),
    ]
    return "".join(parts)


def is_section(text: str) -> bool:
    """Whether a text is such a section, and nothing else has a heading there."""
    return _OPENING.match(text) is not None and len(_HEADING.findall(text)) == 1


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
