"""The report: one HTML file that needs nothing else, for screens light and dark, and for paper.

Frame and style are those of all of Ottla's pages (`ottla.report.page`), with `report.css` added.
`picture.py` draws the picture. Every section is a function from the result to HTML. All text from
outside is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ottla.demo.audit import Verdict
from ottla.demo.ledger import place_of
from ottla.demo.losses import told
from ottla.demo.picture import Picture
from ottla.demo.result import Figure, Result
from ottla.demo.settings import NODES
from ottla.demo.stage import Deed
from ottla.report.page.document import document, header, section, table

STYLE = Path(__file__).with_name("report.css")
LISTED = 200
"""Lost records that are listed one by one."""
PLACE = "record (producer/partition/number)"
"""Heading of the column that names a record."""


def write_report(result: Result) -> Path:
    """Write `demo.html` into the folder of the settings, and make the folder if it is missing.
    Returns the path of the file."""
    folder = result.settings.out
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "demo.html"
    path.write_text(page(result), encoding="utf-8")
    return path


def page(result: Result) -> str:
    """The whole page."""
    settings = result.settings
    word = "passed" if result.passed else "failed"
    sections = [
        _header(result),
        section("What was counted", _figures(result.figures)),
        section("What was checked", _verdicts(result.verdicts)),
        section("What happened when", _timeline(result)),
        section("What went wrong on purpose", _deeds(result)),
    ]
    if result.losses:
        sections.append(section("What was lost", _losses(result)))
    sections.append(section("How to read this", _notes(result)))
    title = f"Ottla demo, acks={settings.acks}: {word}"
    return document(title, sections, STYLE)


def _header(result: Result) -> str:
    settings = result.settings
    command = (
        f"ottla demo --acks {settings.acks} --records {settings.records} "
        f"--seconds {settings.seconds:g} --seed {settings.seed} --profile {settings.profile}"
    )
    return header(
        f"Producers with acks={settings.acks}, through failing leaders",
        _badge(result),
        result.sentence,
        f"<code>{escape(command)}</code> &middot; {escape(result.clients)}",
    )


def _badge(result: Result) -> tuple[str, str]:
    """*good* or *bad*, with a few words. Lost records are bad, even if the checks expect them."""
    if not result.passed:
        return "bad", "checks failed"
    if result.losses:
        return "bad", f"{len(result.losses):,} acknowledged records lost"
    return "good", "all checks passed"


def _figures(figures: Iterable[Figure]) -> str:
    tiles = "".join(
        f'<div class="tile" title="{escape(each.source)}"><dt>{escape(each.name)}</dt>'
        f"<dd>{each.value:,.0f}{f'<small> {each.unit}</small>' if each.unit else ''}</dd>"
        f"<p>{escape(each.source)}</p></div>"
        for each in figures
    )
    return f'<dl class="tiles">{tiles}</dl>'


def _verdicts(verdicts: Iterable[Verdict]) -> str:
    return f'<ul class="checks">{"".join(map(_verdict, verdicts))}</ul>'


def _verdict(verdict: Verdict) -> str:
    kind, mark = ("good", "&#10003;") if verdict.passed else ("bad", "&#10007;")
    shown = "".join(f"<li>{escape(line)}</li>" for line in verdict.shown)
    more = verdict.violations - len(verdict.shown)
    if more:
        shown += f"<li>and {more:,} more</li>"
    return (
        f'<li><span class="mark {kind}">{mark}</span><div><strong>{escape(verdict.check)}</strong>'
        f"<span>{escape(verdict.compared)}</span>"
        f"{f'<ul>{shown}</ul>' if shown else ''}</div></li>"
    )


def _timeline(result: Result) -> str:
    keys = [
        *(f'<span><i class="key node{n}"></i>node {n} leads</span>' for n in range(1, NODES + 1)),
        '<span><i class="key gap"></i>nobody leads</span>',
        '<span><i class="key acks"></i>acknowledged per second (left)</span>',
        '<span><i class="key watermark"></i>high watermark (right)</span>',
        '<span><i class="key fault">1</i>fault, listed below</span>',
    ]
    if result.losses:
        keys.append('<span><i class="key lost">&#10005;</i>acknowledged records lost</span>')
    return (
        f'<p class="legend">{"".join(keys)}</p><div class="scroll">{Picture(result).draw()}</div>'
        f'<p class="fine">Hover over a mark for its story. One panel per partition.</p>'
    )


def _deeds(result: Result) -> str:
    rows = "".join(
        f"<tr><td class='n'><i class='key fault'>{number}</i></td>"
        f"<td class='n'>{(deed.at - result.started) / 1e6:.2f} s</td><td>{deed.partition}</td>"
        f"<td>{escape(deed.text)}</td><td>{escape(_effect(result, deed))}</td></tr>"
        for number, deed in enumerate(result.deeds, 1)
    )
    return table(("", "#at", "partition", "fault", "what followed"), rows)


def _effect(result: Result, deed: Deed) -> str:
    """The failovers that a fault caused."""
    changes = [
        f"demo-{change.partition}: node {change.new} in term {change.term} after "
        f"{change.micros / 1000:,.0f} ms"
        for line in result.timelines
        for change in line.changes
        if change.failover and deed.at <= change.start <= deed.until
    ]
    return "; ".join(changes) or "the leader stayed"


def _losses(result: Result) -> str:
    groups = "".join(f"<li>{escape(told(group))}</li>" for group in result.loss_groups)
    rows = "".join(
        f"<tr><td>{escape(place_of(loss.ack.value))}</td><td>{loss.partition}</td>"
        f"<td class='n'>{'' if loss.ack.offset is None else loss.ack.offset}</td>"
        + (
            f"<td class='n'>{loss.dropped.index}</td><td>node {loss.dropped.node}, term "
            f"{loss.dropped.term}</td><td>node {loss.dropped.new_leader}, term "
            f"{loss.dropped.new_term}</td></tr>"
            if loss.dropped is not None
            else "<td></td><td></td><td class='bad'>not explained</td></tr>"
        )
        for loss in result.losses[:LISTED]
    )
    more = len(result.losses) - LISTED
    tail = f"<p class='fine'>and {more:,} more, in the same truncations</p>" if more > 0 else ""
    where = ("#told offset", "#log index", "appended by", "replaced by the log of")
    return (
        f"<ul class='told'>{groups}</ul><details><summary>Record by record</summary>"
        f"{table((PLACE, 'partition', *where), rows)}{tail}</details>"
    )


def _notes(result: Result) -> str:
    idempotent = (
        "<p>Three sides that do not know of each other are compared: what the producers sent and "
        "were told, what a consumer read afterwards, and every replica's log as read back from its "
        "own store. Values are unique, so a record can be recognised wherever it lies.</p>"
    )
    lossy = (
        "<p>With acks=1 and acks=0 nobody but the leader stands behind an acknowledged record. "
        "Each fault cuts a leader off from its peers while clients still reach it: what it takes "
        "in then is replaced by the log of the next leader. A record counts as lost when its "
        "producer was told success and the consumer found it nowhere; it is explained when the "
        "very record is found among the entries that a truncation dropped.</p>"
    )
    return (
        (idempotent if result.settings.idempotent else lossy)
        + "<p>Time without a leader runs from the fault to the moment at which another node wins "
        "the election of a higher term. Nodes, producers and the consumer share one machine; "
        "times are those of this machine.</p>"
    )
