"""An experiment as a section of a Markdown page: for documents, where a picture says too little."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.sim.experiments.model import Experiment, Report


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


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
