"""Old names must not come back after a rename to a word of the field.

The rule checks names of modules, classes, functions and attributes, and imports. It does not check
local variables and prose, where *apart* and *moments* are ordinary words. A rule on pages
(`pages.py`) looks for those that are not.
"""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tidy.source import Source, Violation

RENAMED = {
    **dict.fromkeys(("Seat", "seat", "seats"), "HostedReplica"),
    "Lane": "FastAppend",
    **dict.fromkeys(("Lookout", "lookout"), "DeadlineWatch"),
    **dict.fromkeys(("Carrier", "carrier"), "MessageSender"),
    **dict.fromkeys(("BeatBook", "beat_book"), "Heartbeats"),
    "restless": "has_pending",
    "naming_what_is_rotten": "report_corrupt_files",
    "apart": "run_interruptible",
    "people": "script_clients",
    "Hand": "FaultContext",
    "Loads": "PlacementCounts",
    "Recent": "RecentOutcomes",
}
"""Whole identifiers; what each of them is called now."""
NO_WORDS = ("Seat", "Lookout", "BeatBook", "beat_book", "naming_what_is_rotten")
"""Those that are no words of plain English: pages may not have them either."""
RENAMED_DEFINITIONS = {"moments": "timed_faults"}
"""Of modules and functions alone: as an attribute the word is another thing's."""


def old_names(source: Source) -> Iterator[Violation]:
    """No module, class, function or attribute has a name that was given up."""
    defined = RENAMED | RENAMED_DEFINITIONS
    stem = PurePosixPath(source.path).stem
    if stem in defined:
        yield Violation(source.path, 1, f"{stem} is called {defined[stem]}")
    for node in source.nodes:
        for name, table in _named(node, defined):
            if name in table:
                yield source.at(node, f"{name} is called {table[name]}")


def _named(node: ast.AST, defined: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, defined
        case ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)):
            yield name, RENAMED
        case ast.Import(names=names):
            yield from ((part, defined) for each in names for part in each.name.split("."))
        case ast.ImportFrom(module=module, names=names):
            told = [*(module or "").split("."), *(each.name for each in names)]
            yield from ((part, defined) for part in told)
