"""A page: one HTML file that needs nothing else, for screens light and dark, and for paper.

Every page has the common style, and then its own. All content must be readable without the script.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ottla import __version__

HOUSE = Path(__file__).with_name("house.css")
_BEGIN = "<!doctype html>"
_BRAND = '<p class="brand">Ottla '


def document(title: str, sections: Iterable[str], *styles: Path, script: Path | None = None) -> str:
    """The whole file. `sections` are HTML, `title` is text; `styles` come after the common one."""
    sheets = "".join(each.read_text(encoding="utf-8") for each in (HOUSE, *styles))
    code = "" if script is None else f"<script>{script.read_text(encoding='utf-8')}</script>"
    return "\n".join(
        [
            f'{_BEGIN}<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{sheets}</style></head><body><main>",
            *sections,
            f"</main>{code}</body></html>\n",
        ]
    )


def is_page(text: str) -> bool:
    """Whether a text is a page of Ottla's, which another page may replace."""
    return text.startswith(_BEGIN) and _BRAND in text


def header(title: str, badge: tuple[str, str], lead: str, fine: str) -> str:
    """The head of a page. `fine` is HTML, all else is text.

    `badge`: *good*, *bad* or, if nothing is judged, *plain*; and a few words.
    """
    kind, word = badge
    return (
        f"<header>{_BRAND}{__version__}</p><h1>{escape(title)}"
        f'<span class="badge {kind}">{escape(word)}</span></h1>'
        f'<p class="lead">{escape(lead)}</p><p class="fine">{fine}</p></header>'
    )


def section(title: str, body: str, name: str = "") -> str:
    """One section: `title` is text, `body` HTML."""
    mark = f' id="{name}"' if name else ""
    return f"<section{mark}><h2>{escape(title)}</h2>{body}</section>"


def table(heads: Iterable[str], rows: str, *, caption: str = "", kind: str = "") -> str:
    """A table that scrolls if it is too wide. `heads` are text, with a leading `#` for a column of
    numbers; `rows` are HTML."""
    cells = "".join(
        f'<th class="n">{escape(each[1:])}</th>' if each[:1] == "#" else f"<th>{escape(each)}</th>"
        for each in heads
    )
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="{f"scroll {kind}".strip()}"><table>{named}<thead><tr>{cells}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def facts(told: Iterable[tuple[str, str]]) -> str:
    """A list of names with their values, both text."""
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in told) + "</dl>"
