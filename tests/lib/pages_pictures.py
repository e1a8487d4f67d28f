"""The decisive part of a run as one SVG file that needs nothing else, for a page of the docs.

It is the diagram of `ottla sim explain` without the rest of its page: the decisive moments of one
partition, with a few moments around them as far as there is room, and the first bad event at the
end. If moments are left out, a line says how many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ottla.report.explain.diagram import Diagram
from ottla.report.explain.lanes import Lanes
from ottla.report.explain.report import STYLE
from ottla.report.explain.scenes import Moment, Scene, moments_of, wires_of
from ottla.report.explain.story import partition_of, tell
from ottla.report.page.document import HOUSE
from ottla.report.page.svg import text
from ottla.sim.recording.record import Recording

MOST = 40
"""Most moments in a picture; nobody reads more."""
_MARGINS = (6, 4, 3, 2, 1, 0)
_PIECE = re.compile(r'<svg[^>]* viewBox="0 0 (\S+) (\S+)"[^>]*>(.*)</svg>', re.DOTALL)
_FOLD = 24


def picture(recording: Recording, label: str) -> str:
    """The whole file; `label` describes the picture for people who cannot see it."""
    anomaly = recording.anomalies[0] if recording.anomalies else None
    partition = 0 if anomaly is None else partition_of(recording, anomaly)
    moments = moments_of(recording, tell(recording, partition, anomaly))
    stretches = _stretches([at for at, each in enumerate(moments) if each.decisive or each.bad])
    drawn = [moments[start : stop + 1] for start, stop in stretches]
    pencil = Diagram(Lanes(recording, partition), _clients(drawn), recording.names)
    pieces = [_piece(pencil.head())]
    end = 0
    for (start, stop), some in zip(stretches, drawn, strict=True):
        if start > end:
            fold = text("said", 10, 16, f"\u22ee {start - end} moments are left out")
            pieces.append((_FOLD, fold))
        end = stop + 1
        strips = pencil.strips(Scene(some, wires=list(wires_of(some))))
        pieces += map(_piece, strips)
    return _file(pencil.width, pieces, label)


def _stretches(marked: Sequence[int]) -> list[tuple[int, int]]:
    """Places of the first and the last moment of each stretch around what is decisive."""
    for margin in _MARGINS:
        found = _around(marked, margin)
        if sum(stop - start + 1 for start, stop in found) <= MOST:
            return found
    return _around(marked[-MOST:], 0)


def _around(marked: Sequence[int], margin: int) -> list[tuple[int, int]]:
    """None goes beyond the last one: what comes behind it is not part of it."""
    found: list[tuple[int, int]] = []
    for place in marked:
        start, stop = max(0, place - margin), min(place + margin, marked[-1])
        if found and start <= found[-1][1] + 2:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found


def _clients(drawn: Iterable[Sequence[Moment]]) -> list[int]:
    places = {each.place for some in drawn for each in some if each.place is not None}
    return sorted(number for kind, number in places if kind == "client")


def _piece(svg: str) -> tuple[float, str]:
    """The height of an inline picture, and what is in it."""
    found = _PIECE.fullmatch(svg)
    assert found is not None, f"a picture with a place of its own: {svg[:80]}"
    return float(found[2]), found[3]


def _file(width: float, pieces: Sequence[tuple[float, str]], label: str) -> str:
    height = sum(each for each, _ in pieces)
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    style = "".join(each.read_text(encoding="utf-8") for each in (HOUSE, STYLE))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(label)}</title>",
            f"<style><![CDATA[{style}]]></style>",
            f'<rect width="{width:g}" height="{height:g}" fill="var(--card)"/>',
            *_placed(pieces),
            "</svg>\n",
        ]
    )


def _placed(pieces: Iterable[tuple[float, str]]) -> Iterator[str]:
    top = 0.0
    for height, drawn in pieces:
        yield f'<g class="strip" transform="translate(0 {top:g})">{drawn}</g>'
        top += height
