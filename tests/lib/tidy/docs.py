"""Rules on texts about code: docstrings, deferred work, refusals.

`docs/not-implemented.md` has one table. Its first column has the names that a `TODO(what)` may use,
its last column a test that must exist. So neither deferred work nor a refusal can be forgotten.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidy.size import Function
from tidy.source import Source, Violation

NOT_IMPLEMENTED = "docs/not-implemented.md"
THEORY_FROM_LINES = 100
THEORY_LINES = 3

_DEFERRED = re.compile(r"\b(TODO|FIXME)\b(?:\(([^)]*)\))?")
# A setter is documented by its property, an overload or override by what it stands for.
_DOCUMENTED_ELSEWHERE = frozenset({"setter", "deleter", "overload", "override"})


def docstrings(source: Source) -> Iterator[Violation]:
    """Every module, and where others read them every public class and function, says what for."""
    if ast.get_docstring(source.tree) is None:
        yield Violation(source.path, 1, "module has no docstring")
    if source.is_api:
        yield from _undocumented(source, source.tree.body)


def theory_of_operation(source: Source) -> Iterator[Violation]:
    """A module over 100 lines opens with a docstring of at least 3 lines: how it works."""
    text = ast.get_docstring(source.tree) or ""
    said = sum(1 for line in text.splitlines() if line.strip())
    if len(source.lines) > THEORY_FROM_LINES and said < THEORY_LINES:
        wanted = f"module of {len(source.lines)} lines opens with {said} lines of docstring"
        yield Violation(source.path, 1, f"{wanted}, wanted {THEORY_LINES}")


def bare_init(source: Source) -> Iterator[Violation]:
    """The `__init__.py` of a package is a docstring, in a top-level package also the guard."""
    folders, _, name = source.path.rpartition("/")
    if name != "__init__.py" or source.path == "src/ottla/__init__.py" or source.is_test:
        return
    for node in source.tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_guard = "/" not in folders and isinstance(node, ast.If)
        if not is_docstring and not is_guard:
            yield source.at(node, "an __init__.py is a docstring; only `ottla` itself is a facade")


def _undocumented(source: Source, body: list[ast.stmt]) -> Iterator[Violation]:
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None and not _documented_elsewhere(node):
                yield source.at(node, f"public {node.name} has no docstring")
            if isinstance(node, ast.ClassDef):
                yield from _undocumented(source, node.body)


def _documented_elsewhere(node: Function | ast.ClassDef) -> bool:
    names = {
        d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in decorators(node)
    }
    return bool(names & _DOCUMENTED_ELSEWHERE)


def decorators(node: Function | ast.ClassDef) -> Iterator[ast.expr]:
    """The decorators of a definition, without the arguments some are called with."""
    for decorator in node.decorator_list:
        yield decorator.func if isinstance(decorator, ast.Call) else decorator


@dataclass(frozen=True)
class Refusal:
    """One line of the table in `docs/not-implemented.md`."""

    line: int
    what: str
    why: str
    test: str


def refusals(text: str) -> list[Refusal]:
    """The lines of the table; a line without three cells is an error of the document."""
    rows = [(n, row) for n, row in enumerate(text.splitlines(), 1) if row.startswith("|")]
    found = []
    for number, row in rows[2:]:
        cells = [cell.strip().strip("`") for cell in row.strip().strip("|").split("|")]
        if len(cells) != 3:
            raise ValueError(f"{NOT_IMPLEMENTED}:{number}: {len(cells)} cells, wanted 3")
        found.append(Refusal(number, *cells))
    return found


def unproven(root: Path, text: str) -> Iterator[Violation]:
    """Every refusal gives a reason and names a test that exists, as `tests/file.py::name`."""
    for refusal in refusals(text):
        if not refusal.what or not refusal.why:
            yield Violation(NOT_IMPLEMENTED, refusal.line, "says not what, or not why")
        if not is_test(root, refusal.test):
            yield Violation(NOT_IMPLEMENTED, refusal.line, f"no such test: {refusal.test!r}")


def deferred(source: Source, known: frozenset[str]) -> Iterator[Violation]:
    """`TODO` and `FIXME` name a line of `docs/not-implemented.md`: `TODO(what)`."""
    for number, comment in source.comments():
        for word, what in _DEFERRED.findall(comment):
            if what.strip("` ") not in known:
                text = f"{word} names no line of {NOT_IMPLEMENTED}: {what!r}"
                yield Violation(source.path, number, text)


def is_test(root: Path, test: str) -> bool:
    """Whether there is a test of that name, `tests/file.py::name`."""
    path, *names = test.split("::")
    if not names or not path.startswith("tests/") or not (root / path).is_file():
        return False
    body = ast.parse((root / path).read_text(encoding="utf-8")).body
    for name in names:
        bare = name.split("[", 1)[0]
        matches = [n for n in body if isinstance(n, Function | ast.ClassDef) and n.name == bare]
        if not matches:
            return False
        body = matches[0].body
    return names[-1].startswith("test")
