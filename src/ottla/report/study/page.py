"""The page of a study: one HTML file that needs nothing else.

    head       the question
    answer     one sentence, made of the numbers
    broke      runs that ended with an exception, if any: which, why, and the command that shows it
    pictures   with the 95 % interval of each figure
    tables
    worst      the worst runs by the study's own measure: the command for each, and its picture
    judged     how many runs were judged, and which invariants are broken
    bill       the cost, stage by stage, and per 1,000 seeds
    study      the study's file, word for word; canary, engines, commits, versions

All content is also in text. The page can be read on paper, in dark mode and on a telephone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ottla.report.explain.report import STYLE as EXPLAIN_STYLE
from ottla.report.explain.report import glance_legend
from ottla.report.page.chart import STYLE as CHART_STYLE
from ottla.report.page.chart import certainty, draw, legend
from ottla.report.page.document import document, facts, header, section, table
from ottla.sim.studies.charts import Chart
from ottla.sim.studies.findings import (
    Column,
    Findings,
    Stage,
    Table,
    Worst,
    counted,
    number,
    percent,
)
from ottla.sim.sweeps.bounds import bounded

STYLE = Path(__file__).with_name("study.css")
_TALL = 'class="chart"'
"""Marks a tall picture, which needs a page of paper of its own."""
_WORD = 22
"""Most letters of a cell that stay on one line."""
_UNPAID = (
    "Agree compares all verdicts, and report queries the tables for this page. Both are done with "
    "every command, and counted as they were done first. Not counted are opening the engine, "
    "drawing this page, and work that a process had begun when it was stopped."
)
"""What the bill counts, and what it does not count."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Picture:
    """The pictures of one of the worst runs."""

    glance: str
    """The whole run on one line of time: HTML."""
    diagram: str
    """Its decisive part, message by message: HTML."""
    link: str
    """The run's own page, relative to the report; empty for none."""


def page(findings: Findings, pictures: Mapping[int, Picture]) -> str:
    """The whole file. `pictures`: of the worst runs, by number; some may be missing."""
    sections = [
        _header(findings),
        f'<section class="answer"><p>{escape(findings.answer)}</p></section>',
        *_broke(findings),
        *_shown(findings),
    ]
    if findings.worst:
        told = "".join(_worst(each, pictures.get(each.run_id)) for each in findings.worst)
        said = reading() if pictures else ""
        sections.append(section("Worst runs", said + told, "worst"))
    sections.append(section("What was judged", _judged(findings), "judged"))
    sections.append(section("What it took", _bill(findings), "bill"))
    sections.append(section("The study", _study(findings), "study"))
    styles = [CHART_STYLE, STYLE]
    if pictures:
        styles = [EXPLAIN_STYLE, *styles]
    return document(f"Ottla: {findings.title}", sections, *styles)


def _shown(findings: Findings) -> list[str]:
    """Pictures, then tables. If the first picture is tall, a table comes before it: the picture
    needs a page of paper of its own, and would leave the first page half empty."""
    pictures = [section(each.title, _picture(each, findings.seeds)) for each in findings.charts]
    tables = [section(each.title, _table(each)) for each in findings.tables]
    first = tables[:1] if pictures and _TALL in pictures[0] else []
    return [*first, *pictures, *tables[len(first) :]]


def _header(findings: Findings) -> str:
    badge = ("plain", counted(findings.runs, "run"))
    if findings.broke:
        badge = ("bad", f"{findings.broke:,} of {counted(findings.runs, 'run')} broke")
    fine = f"<code>{escape(findings.command)}</code>"
    return header(findings.title, badge, findings.question, fine)


def _broke(findings: Findings) -> Iterator[str]:
    """Runs that an exception ended; the first of them in detail."""
    if not findings.broke:
        return
    runs = f"{counted(findings.broke, 'run')} came to no end"
    told = (
        f"<p>{runs}: an exception ended them, which is no verdict. No figure here counts "
        "them, and without a history there is no picture: the command shows where a run breaks.</p>"
    )
    for each in findings.breakdowns:
        head = f"Seed {each.seed}<span>{escape(each.variant)}</span>"
        told += (
            f'<article class="worst"><h3>{head}</h3><p>{escape(each.why)}</p>'
            f'<pre class="command">{escape(each.command)}</pre></article>'
        )
    if more := findings.broke - len(findings.breakdowns):
        told += f'<p class="fine">And {more:,} more: those of table runs where broke is 1.</p>'
    yield section("Runs that broke", told, "broke")


def _picture(chart: Chart, seeds: int) -> str:
    said = certainty(chart)
    if seeds == 1 and not any(any(each.spans) for each in chart.series):
        said = "Of one seed nobody can say how far a figure may be off."
    note = f'<p class="fine">{said}</p>' if said else ""
    return f'<p class="legend">{legend(chart)}</p><div class="scroll">{draw(chart)}</div>{note}'


# ---- tables


def _table(shown: Table) -> str:
    note = f'<p class="note">{escape(shown.note)}</p>' if shown.note else ""
    if not shown.rows:
        return f'{note}<p class="fine">None in these runs.</p>'
    return note + _grid(shown.columns, shown.rows)


def _grid(columns: Sequence[Column], rows: Iterable[Iterable[str]]) -> str:
    heads = [f"#{each.head}" if each.number else each.head for each in columns]
    lines = "".join(f"<tr>{''.join(_cells(columns, row))}</tr>" for row in rows)
    return table(heads, lines)


def _cells(columns: Sequence[Column], row: Iterable[str]) -> Iterator[str]:
    for column, cell in zip(columns, row, strict=True):
        shape = "n" if column.number else "word" if len(cell) <= _WORD else ""
        yield f'<td class="{shape}">{escape(cell)}</td>'


# ---- runs


def reading() -> str:
    """How to read the pictures of runs."""
    return (
        f'<p class="legend">{"".join(glance_legend())}</p>'
        '<p class="note">Each run twice: all of it on one line of time, and below it, message by '
        "message, what is on grey ground there, time downwards. A wide lane leads, a narrow one "
        "follows. A batch is called <code>producer/epoch:first-last</code>, by its sequences.</p>"
    )


def _worst(worst: Worst, picture: Picture | None) -> str:
    head = f"Seed {worst.seed}<span>{escape(worst.variant)}</span>"
    parts = [
        f'<article class="worst" id="run{worst.run_id}"><h3>{head}</h3>',
        f'<p>{escape(worst.why)}</p><pre class="command">{escape(worst.command)}</pre>',
        f'<p class="fine">{escape(_digest(worst))}</p>',
    ]
    if picture is not None:
        parts.append(f'<div class="scroll">{picture.glance}</div>')
        parts.append(f'<div class="diagram">{picture.diagram}</div>')
        if picture.link:
            link = escape(picture.link, quote=True)
            parts.append(f'<p class="fine"><a href="{link}">the whole run, step by step</a></p>')
    return "".join((*parts, "</article>"))


def _digest(worst: Worst) -> str:
    if worst.digest:
        return f"digest {worst.digest}"
    return (
        "It came to no end, so it has no digest, and no history to draw a picture of: the command "
        "shows where it breaks."
    )


def _judged(findings: Findings) -> str:
    told = f"{_how_many_judged(findings)}."
    if not findings.judged:
        return f"<p>{told}</p>"
    these = "it" if findings.judged == 1 else "each of them"
    told += f" On {these} SQL and the simulator's own checkers say the same."
    if not findings.verdicts.rows:
        rare = bounded(findings.seeds)
        return f"<p>{told} No invariant is broken: {rare} seeds break any.</p>"
    return f"<p>{told}</p>{_table(findings.verdicts)}"


def _how_many_judged(findings: Findings) -> str:
    judged, runs = findings.judged, findings.runs - findings.broke
    share = f"{percent(findings.share)} %, drawn at random"
    if not runs:
        return "No run came to an end, so none was judged in SQL"
    if not judged:
        these = f"None of {counted(runs, 'run')} was judged in SQL"
        return f"{these}: all were ok, and of these it was to be {share}"
    if judged == runs:
        these = "The one run was" if runs == 1 else f"All {runs:,} runs were"
    else:
        these = f"{judged:,} of {runs:,} runs {'was' if judged == 1 else 'were'}"
    why = "" if findings.share == 1 else f": all that were not ok, and of the others {share}"
    return f"{these} judged in SQL{why}"


# ---- the bill


def _bill(findings: Findings) -> str:
    stages = findings.stages
    seconds = sum(each.seconds for each in stages) or 1.0
    columns = [Column("stage", number=False), *map(Column, ("time", "share", "rows", "written"))]
    total = Stage(
        "all", seconds, sum(each.rows for each in stages), sum(each.bytes for each in stages)
    )
    rows = [
        (
            each.name,
            _time(each.seconds),
            f"{percent(each.seconds / seconds)} %",
            f"{each.rows:,}" if each.rows else "",
            size(each.bytes) if each.bytes else "",
        )
        for each in (*stages, total)
    ]
    thousand = 1_000 / max(findings.seeds, 1)
    told = (
        f"Per 1,000 seeds ({findings.variants * 1_000:,} runs): {_time(seconds * thousand)}, "
        f"{round(total.rows * thousand):,} rows, {size(round(total.bytes * thousand))}."
    )
    return f'<p class="note">{escape(told)} {_UNPAID}</p>{_grid(columns, rows)}'


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def size(count: int) -> str:
    """A number of bytes as a short text.

    >>> size(999), size(12_345), size(5_600_000_000)
    ('999 bytes', '12.3 kB', '5.6 GB')
    """
    value, unit = float(count), 0
    while value >= 1_000 and unit + 1 < len(_UNITS):
        value, unit = value / 1_000, unit + 1
    return f"{number(value)} {_UNITS[unit]}"


def _study(findings: Findings) -> str:
    last = findings.first + findings.seeds - 1
    seeds = f"from {findings.first} to {last}" if last > findings.first else f"seed {last}"
    others = f" that were not ok, and {percent(findings.share)} % of the others"
    judged = f"all{'' if findings.share == 1 else others}"
    times = "each run" if findings.variants > 1 else "run"
    told = (
        ("seeds", f"{findings.seeds:,}, {seeds}"),
        ("variants", f"{findings.variants:,}, {times} with every seed"),
        ("canary", findings.canary),
        ("judged in SQL", judged),
        *((f"{each.name} by", each.made_by) for each in findings.stages if each.made_by),
        *findings.versions,
    )
    return f'{facts(told)}<pre class="file">{escape(findings.text)}</pre>'
