"""Pieces of inline SVG. Colours come from the page's CSS classes, so that a picture follows dark
mode and print. The title of a mark also says what it means.
"""

from __future__ import annotations

from html import escape

HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="gap-ground" width="6" height="6"/>'
    '<line class="gap-line" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>'
)
"""Defines `url(#hatch)`, the pattern for a time without a leader."""


def text(kind: str, x: float, y: float, said: str, anchor: str = "start") -> str:
    """Text at a place."""
    end = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{end}>{escape(said)}</text>'


def line(kind: str, start: tuple[float, float], end: tuple[float, float], more: str = "") -> str:
    """A straight line; `more` are further attributes."""
    return (
        f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" '
        f'y2="{end[1]:.1f}"{more}/>'
    )


def box(kind: str, place: tuple[float, float], size: tuple[float, float], title: str = "") -> str:
    """A rectangle with rounded corners and a title, at least 1 wide."""
    told = f"<title>{escape(title)}</title>" if title else ""
    x, y = place
    width, height = size
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:g}" width="{max(width, 1):.1f}" '
        f'height="{height:g}" rx="3">{told}</rect>'
    )


def tick(seconds: float) -> float:
    """Seconds between two marks of a time axis, for about ten of them."""
    steps = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
    step = next((each for each in steps if seconds / each <= 14), 120)
    while seconds / step > 14:
        step *= 2
    return step
