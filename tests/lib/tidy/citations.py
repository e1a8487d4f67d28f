"""The citations in code and pages, and `docs/sources.md`, which says what each one means.

A citation is a key: `KIP-98`, `promise-R2`, `K-RULES 7`, `redpanda #5157`, `thesis 3.10`. Some are
written in more than one way, and a sentence may break a line in the middle of one:

| written | is the key |
|---|---|
| promise-R1 to R5, K3 | promise-R1, promise-R5, promise-K3 |
| K-CHECKS 1 and 5 | K-CHECKS 1, K-CHECKS 5 |
| Redpanda's pull request 5157, redpanda issue 5157, redpanda 5157 | redpanda #5157 |
| its issue 5157 | #5157, of any project |
| Raft thesis, chapter 3, thesis 3 | thesis 3 |
| Raft paper, section 5.2, paper 5.2 | paper 5.2 |
| Raft paper, Figure 2 | figure 2 |

Names without a number (a class of Kafka's, TigerBeetle) are looked up on the page by
`names_a_source`. Files that are not in this repository are not sources: `unreachable` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from tidy.source import Violation, repository

PAGE = "docs/sources.md"

_GAP = r"\s+(?:(?:#|--)\s+)?"
"""What may be between two words of a citation: also the end of a line, even in a comment."""
_AND = rf"(?:,{_GAP}|{_GAP}(?:and|to){_GAP})"
_SECTION = r"\d+(?:\.\d+)*"

_PLAIN = re.compile(r"\bK(?:IP|AFKA)-\d+\b")
_FACT = re.compile(r"(?<![\w-])(?:K|RP|SIM)-[A-Z]{2,}(?:-[A-Z]+)*\b(?!-)")
_ROWS = re.compile(rf"(K-(?:CHECKS|RULES)){_GAP}(\d+(?:{_AND}\d+)*)\b")
_PROMISES = re.compile(rf"promise-([A-Z]\d+(?:{_AND}[A-Z]\d+)*)\b")
_THREAD = rf"(?:issue|pull{_GAP}request){_GAP}"
_THREADS = re.compile(
    rf"(?<![\w.-])(?i:(redpanda|librdkafka|sarama|hashicorp/raft)(?:'s)?"
    rf"(?:\s*#|/issues/|/pull/|{_GAP}(?:{_THREAD})?))(\d{{3,5}})(?![\w-]|\.\d)"
)
_BARE_THREADS = re.compile(rf"\b(?i:{_THREAD})(\d{{3,5}})\b")
_RAFT = re.compile(
    rf"\b(?i:(thesis|paper)),?{_GAP}(?:(?i:sections?|chapters?){_GAP})?"
    rf"({_SECTION}(?:{_AND}{_SECTION})*)"
)
_FIGURES = re.compile(rf"\b(?i:figures?){_GAP}(\d+(?:{_GAP}and{_GAP}\d+\b(?!\.\d))*)")
_NUMBERS = re.compile(_SECTION)
_IDS = re.compile(r"[A-Z]\d+")

_UNREACHABLE = re.compile(
    r"\bfacts[/]\w|\bfacts\s[0-9]|\b(?:design|house|mission)[.]md|\bmission[-][A-Z]"
    r"|\bissue\s\d{1,2}\b"
)
_CELLS = re.compile(r"^\|([^|]*)\|")


def keys(page: str) -> dict[str, int]:
    """Every key of the page with its line: the first cells of its tables. Raises `ValueError` if
    one stands there twice."""
    found: dict[str, int] = {}
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        match = _CELLS.match(line)
        inside = inside and match is not None
        if match and inside and not line.startswith("|--"):
            key = match[1].strip()
            if key in found:
                raise ValueError(f"{PAGE}:{number}: {key} stands there twice")
            found[key] = number
        inside = inside or line.startswith("| key |")
    return found


def page_keys() -> dict[str, int]:
    """The keys of this repository's own page."""
    return keys((repository() / PAGE).read_text(encoding="utf-8"))


def cited(text: str) -> Iterator[tuple[int, str]]:
    """Line and key of every citation that has a number or is written in capitals."""
    for at, key in _cited(text):
        yield text.count("\n", 0, at) + 1, key


def unresolved(
    path: str, found: Iterable[tuple[int, str]], known: Collection[str]
) -> Iterator[Violation]:
    """Of the citations found in a file those whose key the page does not have."""
    for line, key in found:
        if key not in known and not any(each.endswith(f" {key}") for each in known):
            yield Violation(path, line, f"{PAGE} has no {key!r}")


def unreachable(path: str, text: str) -> Iterator[Violation]:
    """Citations of files that no reader of this repository has."""
    for match in _UNREACHABLE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Violation(path, line, f"cites {match[0]!r}, which nobody has; cite a key of {PAGE}")


def names_a_source(source: str, known: Collection[str]) -> bool:
    """Whether these words name something that the page has, whatever else they say."""
    return any(key in known for _, key in cited(source)) or any(key in source for key in known)


def _cited(text: str) -> Iterator[tuple[int, str]]:
    for plain in (_PLAIN, _FACT):
        yield from ((match.start(), match[0]) for match in plain.finditer(text))
    for match in _ROWS.finditer(text):
        yield from ((match.start(), f"{match[1]} {n}") for n in _NUMBERS.findall(match[2]))
    for match in _PROMISES.finditer(text):
        yield from ((match.start(), f"promise-{each}") for each in _IDS.findall(match[1]))
    threads = [(match.end(), match[1].lower(), match[2]) for match in _THREADS.finditer(text)]
    yield from ((end - 1, f"{project} #{number}") for end, project, number in threads)
    named = {end for end, _, _ in threads}
    for match in _BARE_THREADS.finditer(text):
        if match.end() not in named:
            yield match.start(), f"#{match[1]}"
    for match in _RAFT.finditer(text):
        book = match[1].lower()
        yield from ((match.start(), f"{book} {n}") for n in _NUMBERS.findall(match[2]))
    for match in _FIGURES.finditer(text):
        yield from ((match.start(), f"figure {n}") for n in _NUMBERS.findall(match[1]))
