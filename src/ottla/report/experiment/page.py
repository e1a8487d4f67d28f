"""The page of an experiment: one HTML file with its table, its pictures and its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ottla.report.page.chart import STYLE as CHART_STYLE
from ottla.report.page.chart import draw, legend
from ottla.report.page.document import document, facts, header, section
from ottla.sim.experiments.model import Chart, Experiment, Report

STYLE = Path(__file__).with_name("experiment.css")
_COMMAND = '<p class="fine"><code>ottla sim experiment '


def page(experiment: Experiment, report: Report, command: str) -> str:
    """The whole file."""
    sections = [
        header(
            experiment.title,
            ("plain", f"{len(report.lines)} lines"),
            experiment.question,
            f"<code>{escape(command)}</code>",
        ),
        section("What it says", _list(report.findings)),
        *(section(each.title, _picture(each)) for each in report.charts),
        section("Figures", _table(report)),
        section("Under what conditions", _conditions(experiment)),
    ]
    return document(f"Ottla: {experiment.title}", sections, CHART_STYLE, STYLE)


def is_page(text: str) -> bool:
    """Whether a text is such a file."""
    return text.startswith("<!doctype html>") and _COMMAND in text


def _list(sentences: Iterable[str]) -> str:
    return f"<ul class='told'>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def _picture(chart: Chart) -> str:
    return f'<p class="legend">{legend(chart)}</p><div class="scroll">{draw(chart)}</div>'


def _table(report: Report) -> str:
    kinds = ["n" if each.number else "" for each in report.columns]
    heads = "".join(
        f'<th class="{kind}">{escape(column.head)}</th>'
        for kind, column in zip(kinds, report.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{escape(cell)}</td>'
            for kind, cell in zip(kinds, line.cells, strict=True)
        )
        + f'<td class="why">{escape(line.reason)}</td></tr>'
        for line in report.lines
    )
    return (
        f'<div class="scroll"><table><thead><tr>{heads}<th>why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _conditions(experiment: Experiment) -> str:
    told = (("published", experiment.published), *experiment.conditions)
    return facts(told)
