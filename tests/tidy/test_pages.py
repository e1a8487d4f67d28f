"""The rules on lines, cells and hashes fire on planted pages and hold for every page there is."""

import pytest

from tidy import pages
from tidy.source import checkout_files, repository

ROOT = repository()
WORDS_41 = " ".join(["word"] * 41)
WORDS_40 = " ".join(["word"] * 40)
LONG = "word " * 24 + "words"
WHOLE = "x" * 121
HASH = "0a1b2c3"

OURS = "| our word | meaning |\n|---|---|"

BAD = {
    "columns": [
        LONG,
        f"- {LONG}",
        f"- `{'x' * 60}` and `{'x' * 60}`",
        f"```\nx\n```\n{LONG}",
        f"[a link]({'x' * 112})",
        f"{'x' * 119} y",
    ],
    "cells": [
        f"| a | {WORDS_41} |",
        f"| {WORDS_41} | b |",
        f"  | in a list | {WORDS_41} |",
        rf"| a | {WORDS_40} \| |",
        f"```\n```\n| {WORDS_41} |",
    ],
    "commit_hashes": [
        f"at {HASH} it was so",
        f"| a | {HASH} |",
        f"(`{HASH}`)",
        f"{HASH}, {'1' * 20}{'f' * 20}.",
        f"[it]({HASH})",
        "as of commit 6143687",
        "code of 6143687, 2026-11-22",
    ],
    "old_words": ["The Seat of a node", "`BeatBook`", "| the Lookout | x |"],
    "own_words": [OURS + "\n| w | x |" * 11, f"{OURS}\n| w | x |\n\n" + OURS + "\n| w | x |" * 10],
}
GOOD = {
    "columns": [
        LONG[:120],
        WHOLE,
        f"- {WHOLE}",
        f"  {WHOLE} {WHOLE}",
        f"| {LONG} |",
        f"```console\n$ {LONG}\n```",
        f"![{LONG}](x.svg)",
    ],
    "cells": [f"| {WORDS_40} | {WORDS_40} |", WORDS_41, f"```\n| {WORDS_41} |\n```"],
    "commit_hashes": [
        "seed 14076642, offset 1234567",
        "deadbeef, effaced, 0a1b2c and 0x0a1b2c3",
        f"{'1' * 21}{'f' * 20} is a digest",
        f"https://example.org/blob/{HASH}/x.go",
        f"```\ncluster {HASH}\n```",
        "s61_dead1234, 2026-11-25, decisions/0038-rooms.md",
    ],
    "old_words": ["a seat, a look out, the carrier of a message"],
    "own_words": [OURS + "\n| w | x |" * 10 + "\n\n| word | meaning |\n|---|---|\n| w | x |"],
}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule in BAD for text in BAD[rule]])
def test_a_bad_page_is_found(rule, text):
    found = list(pages.RULES[rule](pages.GLOSSARY, text))
    assert found
    assert {violation.line for violation in found} == {text.count("\n") + 1}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule in GOOD for text in GOOD[rule]])
def test_a_good_page_passes(rule, text):
    assert list(pages.RULES[rule](pages.GLOSSARY, text)) == []


def test_every_rule_is_shown_both_ways():
    assert BAD.keys() == GOOD.keys() == pages.RULES.keys()


@pytest.mark.parametrize("rule", pages.RULES)
def test_the_rule_holds_for_every_page(rule):
    paths = [path for path in checkout_files(ROOT) if path.endswith(".md")]
    assert {"README.md", "docs/glossary.md", "docs/reference/settings.md"} <= {*paths}
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    found = [each for path, text in texts.items() for each in pages.RULES[rule](path, text)]
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)
