"""The modules that a simulated run imports, so that no deciding module is missing in the table.

All imports from `START` on are followed, also those inside functions, but not those for type
checkers only.
"""

import ast
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from tidy.source import PACKAGES, Source
from tidy.tables import APART, DECIDING, lies_in

START = "sim/run.py"


def imported_by_runs(files: Sequence[Source], start: str = START) -> set[str]:
    """The paths of all modules that a run imports, but for the bare `__init__.py` of packages."""
    known = {file.path: file for file in files}
    waiting, found = [start], set[str]()
    while waiting:
        path = waiting.pop()
        if path in known and path not in found:
            found.add(path)
            waiting += imported_when_run(known[path])
    return found


def import_cycle(files: Sequence[Source]) -> list[str]:
    """The paths of some modules that import each other, be it inside functions or for type checkers
    only; empty if there are none."""
    known = {file.path for file in files}
    graph = {file.path: known.intersection(imported(file)) for file in files}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def left_out(reached: Collection[str], apart: Mapping[str, str] = APART) -> list[str]:
    """What runs import that neither stands in the table nor is named as being apart."""
    return sorted(p for p in reached if p not in apart and not lies_in(p, DECIDING))


def imported_when_run(source: Source) -> Iterator[str]:
    """As `imported`, without imports for type checkers."""
    return (path for path, typed in _imports(source) if not typed)


def imported(source: Source) -> Iterator[str]:
    """Paths of modules of ours; some that there are not, where a name is no module."""
    return (path for path, _ in _imports(source))


@functools.cache
def _imports(source: Source) -> tuple[tuple[str, bool], ...]:
    """What a file imports, and whether for type checkers only; kept, because several rules ask."""
    typed = set(_for_type_checkers(source)) if "TYPE_CHECKING" in source.text else set()
    found: list[tuple[str, bool]] = []
    for node in source.nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ottla" and len(parts) > 1:
                top = "" if parts[1] in PACKAGES else "src/ottla/"
                found.append((f"{top}{'/'.join(parts[1:])}.py", node in typed))
    return tuple(found)


def _for_type_checkers(source: Source) -> Iterator[ast.AST]:
    for node in source.nodes:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for each in node.body:
                yield from ast.walk(each)
