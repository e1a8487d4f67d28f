"""The files that `ottla compare` writes beside what it prints: reports, and cases of differences.

Where each goes is tried before work that may take long. Each is written whole or not at all, and no
case that somebody else has written is touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, NamedTuple

from ottla.commands.sim.asking import check_out
from ottla.commands.sim.explaining import check_page, write
from ottla.commands.usage import UsageError, file_option, refused

if TYPE_CHECKING:
    from ottla.compare.fuzz.hunt import Found
    from ottla.compare.running import Comparison


Html = Annotated[Path | None, file_option("Also write a page.", "--html")]
AsJson = Annotated[Path | None, file_option("Also write every answer as JSON.", "--json")]
Junit = Annotated[Path | None, file_option("Also write a JUnit report for a CI.", "--junit")]


class Files(NamedTuple):
    """Where reports go; None: nobody wants it."""

    html: Path | None
    json: Path | None
    junit: Path | None

    def check(self) -> None:
        """Check that all can be written, each to a file of its own. Raises `UsageError`."""
        check_page(self.html)
        for path in (self.json, self.junit):
            check_out(path)
        options = {f"--{name}": path for name, path in self._asdict().items() if path is not None}
        places: dict[Path, str] = {}
        for option, path in options.items():
            other = places.setdefault(path.resolve(), option)
            if other != option:
                raise UsageError(f"{other} and {option} both name {path}; name two files")

    def write(self, comparison: Comparison) -> None:
        """Write all. Raises `UsageError`."""
        from ottla.compare.formats import in_json, in_junit

        if self.json is not None:
            write(self.json, in_json(comparison))
        if self.junit is not None:
            write(self.junit, in_junit(comparison))
        if self.html is not None:
            from ottla.report.compare.page import page

            write(self.html, page(comparison))


def check_cases(folder: Path) -> None:
    """Check that cases can be written into a folder, or that it can be made, before work that may
    take long; nothing is made yet. Raises `UsageError`."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        TemporaryFile(dir=there).close()
    except OSError as error:
        raise UsageError(f"--out {folder}: {refused(error, 'another folder')}") from None


class Written(NamedTuple):
    """Where the case of a difference is."""

    path: Path
    unreadable: tuple[str, ...] = ()
    """Files of other names that lie in the way and cannot be read, each with the reason."""


def write_case(folder: Path, found: Found) -> Written:
    """Write the case of a difference into a folder, whole or not at all, under a name that no other
    file has; one that lies there already is not written again. Raises `UsageError`."""
    from ottla.compare.fuzz.sketch import text_of
    from ottla.sim.machine.files import write_whole

    text, number = text_of(found.sketch), 1
    unreadable: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            more = "" if number == 1 else f"-{number}"
            path = folder / f"{found.kind.slug()}{more}.toml"
            if not os.path.lexists(path):
                write_whole(path, text.encode())
                return Written(path, tuple(unreadable))
            if _reads(path, unreadable) == text:
                return Written(path, tuple(unreadable))
            number += 1
    except OSError as error:
        raise UsageError(f"--out {folder}: {refused(error, 'another folder')}") from None


def _reads(path: Path, unreadable: list[str]) -> str | None:
    """A file's text. If it cannot be read, that is noted, and no reason to end a hunt."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        unreadable.append(f"{path}: {error.strerror or error}")
        return None
