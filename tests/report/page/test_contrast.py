"""Text on every page is read by people: contrast of at least 4.5:1 (WCAG 2.2, 1.4.3), light and
dark. White on orange had 2.91, on green 3.50, on blue 3.46.

Colours are variables of `:root`, so each pair below stands for every place that uses it.
"""

import re
from pathlib import Path

import pytest

import ottla

STYLES = Path(ottla.__file__).parent
LEAST = 4.5
NODES = [f"node{n}" for n in range(1, 8)]
GROUNDS = ("ground", "card", "good-ground", "bad-ground")
PAIRS = [
    *(("ink", ground) for ground in (*GROUNDS, "line", "quiet")),
    *(("soft", ground) for ground in GROUNDS),
    *(("on-node", node) for node in (*NODES, "t0")),
    ("on-fault", "fault"),
    ("watermark", "card"),
    ("good", "good-ground"),
    ("bad", "bad-ground"),
    ("bad", "card"),
    ("bad", "ground"),
]
"""Text, and what it stands on."""


def colours(dark):
    """Every variable of every page's style that is a colour, as that theme has it."""
    found: dict[str, str] = {}
    for name in ("report/page/house.css", "report/explain/explain.css"):
        text = (STYLES / name).read_text()
        light, night = re.split(r"@media screen and \(prefers-color-scheme: dark\)", text)
        for part in (light, night) if dark else (light,):
            block = re.search(r":root\s*{([^}]*)}", part)
            assert block is not None, name
            found |= dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block[1]))
    return found


def luminance(colour):
    """Relative luminance of `#rrggbb` (WCAG 2.2)."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    """From 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#d98324") == pytest.approx(2.91, abs=0.01)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_on_what_it_stands_on(text, ground, dark):
    found = colours(dark)
    assert contrast(found[text], found[ground]) >= LEAST, (found[text], found[ground])


def test_no_style_has_text_in_a_colour_of_its_own():
    """A colour that is no variable of `:root` would escape the pairs."""
    for style in STYLES.rglob("*.css"):
        rules = re.sub(r":root\s*{[^}]*}", "", style.read_text())
        assert not re.findall(r"(?:color|fill):\s*#[0-9a-fA-F]+", rules), style
