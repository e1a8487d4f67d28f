"""Rules on the form of a page: length of lines, words in a cell, no commits, no old names.

A page is for readers who do not know the history: a figure has a date, and long text is in
sentences, not in a table. Lines that cannot be cut may be longer: rows of tables, fenced blocks,
pictures, long words. A rule takes a page's path and text.
"""

import re
from collections.abc import Callable, Iterator
from textwrap import fill

from tidy.names import NO_WORDS, RENAMED
from tidy.source import Violation

COLUMNS = 120
CELL_WORDS = 40
GLOSSARY = "docs/glossary.md"
OWN_WORDS = 10

Rule = Callable[[str, str], Iterator[Violation]]

_FENCE = re.compile(r"\s*(?:>\s*)?(?:```|~~~)")
_PICTURE = re.compile(r"\s*!\[.*\]\(.*\)\s*")
_BULLET = re.compile(r"^\s*(?:[-*>]|\d+\.|#+)?\s*")
_ADDRESS = re.compile(r"https?://\S+")
_OURS = "| our word |"
_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
_DIGITS = re.compile(r"(?<=commit )`?(\d{7,40})\b|(?<=code of )`?(\d{7,40})\b")
_OLD = re.compile(rf"\b(?:{'|'.join(NO_WORDS)})\b")
_HASH = re.compile(r"(?<![\w.-])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![\w-])")


def columns(path: str, text: str) -> Iterator[Violation]:
    """A line has at most 120 columns, where there is a space to cut it at."""
    for number, line in prose(text):
        uncut = _is_row(line) or _PICTURE.fullmatch(line)
        if len(line) > COLUMNS and not uncut and " " in _BULLET.sub("", line[: COLUMNS + 1]):
            yield Violation(path, number, f"{len(line)} columns, at most {COLUMNS} are wanted")


def cells(path: str, text: str) -> Iterator[Violation]:
    """A cell of a table has at most 40 words."""
    for number, line in prose(text):
        for cell in _BETWEEN_CELLS.split(line) if _is_row(line) else ():
            if len(cell.split()) > CELL_WORDS:
                told = f"a cell of {len(cell.split())} words, at most {CELL_WORDS} are wanted"
                yield Violation(path, number, told)


def commit_hashes(path: str, text: str) -> Iterator[Violation]:
    """No word is a commit's hash. Digests that a command prints stand between fences, and the
    address of somebody else's file may hold one."""
    for number, line in prose(text):
        plain = _ADDRESS.sub("", line)
        digits = [one or other for one, other in _DIGITS.findall(plain)]
        for found in (*_HASH.findall(plain), *digits):
            yield Violation(path, number, f"{found} looks like a commit: say its date")


def old_words(path: str, text: str) -> Iterator[Violation]:
    """No name that was given up for a word of the field."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _OLD.findall(line):
            yield Violation(path, number, f"{found} is called {RENAMED[found]}")


def own_words(path: str, text: str) -> Iterator[Violation]:
    """The glossary has at most ten words of our own: rows of the tables headed *our word*."""
    if path == GLOSSARY:
        words, ours = 0, False
        for number, line in prose(text):
            if not _is_row(line):
                ours = False
            elif line.startswith(_OURS):
                ours = True
            elif ours and not line.startswith("|--"):
                words += 1
                if words == OWN_WORDS + 1:
                    yield Violation(path, number, f"more than {OWN_WORDS} words of our own")
        if not words:
            yield Violation(path, 1, f"no table begins with {_OURS!r}")


def wrapped(text: str) -> str:
    """Text that a page is written with, cut into lines as the rule wants them."""
    return fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that stands outside of fences."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


RULES: dict[str, Rule] = {
    rule.__name__: rule for rule in (columns, cells, commit_hashes, own_words, old_words)
}
