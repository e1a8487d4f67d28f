"""Finds the files of cases: those of Ottla by their names, those of users by globs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

from ottla.broker.arguments.spelling import called
from ottla.compare.case import Case
from ottla.compare.errors import CaseError
from ottla.compare.loading import load

CASES = Path(__file__).with_name("cases")
"""The cases that come with Ottla."""


def load_cases(wanted: Iterable[str]) -> list[Case]:
    """The cases whose names match one of the globs, in order; a glob that ends in `.toml` names
    files, and one that is a folder all files in it. Raises `CaseError`, also if two files have the
    same name."""
    found: dict[str, Path] = {}
    for glob in wanted:
        some = dict(_matching(glob))
        if not some:
            raise CaseError(f"--cases {called(glob)}: no case and no file matches it; see --list")
        for name, path in some.items():
            other = found.setdefault(name, path)
            if not other.samefile(path):
                raise CaseError(f"{path} and {other} are both called {name}; rename one of them")
    return [load(found[name], name) for name in sorted(found)]


def _matching(glob: str) -> Iterator[tuple[str, Path]]:
    """Names of cases and their files. A file of the user's is named from the last folder of the
    glob that is written out."""
    path = Path(glob)
    if glob and path.is_dir():
        yield from ((_name(each, path), each) for each in path.rglob("*.toml"))
    elif glob.endswith(".toml"):
        below = next(each for each in path.parents if each.is_dir() or not has_magic(str(each)))
        rest = str(path.relative_to(below))
        with suppress(ValueError):  # `**.toml`, which matches nothing
            files = [path] if path.is_file() else below.glob(rest)
            yield from ((_name(each, below), each) for each in files)
    else:
        for each in CASES.rglob("*.toml"):
            name = _name(each, CASES)
            if fnmatchcase(name, glob) or fnmatchcase(name.rpartition("/")[2], glob):
                yield name, each


def _name(path: Path, below: Path) -> str:
    return path.relative_to(below).with_suffix("").as_posix()
