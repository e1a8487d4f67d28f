"""Mistakes that the commands of `ottla` share, each with a message of one line: with options, and
with the place in which a command is started.

A message quotes what the user typed, safely for a terminal: without control characters, and cut to
`LONGEST_LINE` characters.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer.models import OptionInfo

from ottla.broker.event_loop.descriptors import ADVICE, OF_A_LOOP, check_descriptors

if TYPE_CHECKING:
    from collections.abc import Iterable


_KINDS = {
    "integer range": "a whole number",
    "int range": "a whole number",
    "integer": "a whole number",
    "float range": "a number",
    "float": "a number",
}
"""Types of values: the name in the option parser's messages, and the name that people use."""


LONGEST_LINE = 6_000
"""Characters. A path of 4096 fits, with a message about it."""


_ROOM = "make room, or write elsewhere"
_OF_THE_MACHINE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EMFILE: ADVICE,
    errno.ENFILE: ADVICE,
}
"""System errors that are no bug of Ottla, whatever they are about, and what helps."""


class UsageError(typer.TyperException):
    """A mistake of the user; the text says in one line what is wrong and what to do."""


def check_surroundings() -> None:
    """Check that the working directory exists, and that what a shell sets for its completion is
    whole. Raises `UsageError`."""
    try:
        Path.cwd()
    except OSError as error:
        told = f"the working directory: {error.strerror}"
        raise UsageError(f"{told}; change to one that is there") from None
    bash = os.environ.get("_OTTLA_COMPLETE", "").endswith("complete_bash")
    if bash and not ("COMP_WORDS" in os.environ and os.environ.get("COMP_CWORD", "").isdecimal()):
        raise UsageError("_OTTLA_COMPLETE is set, COMP_WORDS and COMP_CWORD are not; unset it")


def check_loop() -> None:
    """Check that an event loop can begin. Raises `UsageError`."""
    try:
        check_descriptors(OF_A_LOOP)
    except OSError as error:
        raise UsageError(str(error.strerror)) from None


def of_the_machine(error: OSError) -> str:
    """A message about an error that is about no file, and what the user can do; empty if it may be
    a bug."""
    advice = _OF_THE_MACHINE.get(error.errno or 0)
    return f"{error.strerror}; {advice}" if advice else ""


def drop_output() -> None:
    """Forget what standard output did not take: it would be written once more, and refused once
    more, when the process ends."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def check_words(words: Iterable[str]) -> None:
    """Check that all arguments are text. Pages, tables and JSON objects name files, and cannot hold
    a name that is not UTF-8 or has a NUL in it. Raises `UsageError`."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{word!r} is not UTF-8 text; write it in UTF-8, or rename the file"
            ) from None
        if "\0" in word:
            raise UsageError(f"{word!r} has a NUL character in it; leave it out")


def one_line(told: str) -> str:
    """A message as one safe line: control characters are escaped, and a text that is too long is
    cut."""
    for name, plain in _KINDS.items():
        told = told.replace(f"a valid {name}", plain)
    line = "".join(each if each.isprintable() else repr(each)[1:-1] for each in told)
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def folder(text: str | Path) -> Path:
    """Check the name of a folder. An empty name is refused: it comes from a variable that was never
    set, and does not mean this folder. Raises `typer.BadParameter`, also for a name that the system
    refuses."""
    return _named(text, "folder")


def file(text: str | Path) -> Path:
    """Check the name of a file. Raises `typer.BadParameter`, as `folder` does."""
    return _named(text, "file")


def file_option(told: str, *names: str) -> OptionInfo:
    """An option that names a file; its value is a `Path`."""
    found: OptionInfo = typer.Option(*names, parser=file, metavar="FILE", help=told)
    return found


def folder_option(told: str, metavar: str = "FOLDER") -> OptionInfo:
    """An option that names a folder; its value is a `Path`."""
    found: OptionInfo = typer.Option(parser=folder, metavar=metavar, help=told)
    return found


def refused(error: OSError, instead: str = "another file") -> str:
    """The system's error message, and what the user can name instead."""
    return f"{error.strerror or error}; name {instead}"


def _named(text: str | Path, of: str) -> Path:
    if not str(text).strip():
        raise typer.BadParameter(f"is empty; name a {of}")
    try:
        check_words([str(text)])
        Path(text).stat()
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None
    except FileNotFoundError:
        pass  # the command makes it, or reports that it cannot
    except NotADirectoryError:
        raise typer.BadParameter(
            f"{_above(Path(text))} is a file, not a folder; name another {of}"
        ) from None
    except OSError as error:
        raise typer.BadParameter(refused(error, f"another {of}")) from None
    return Path(text)


def _above(path: Path) -> Path:
    """The part of a path that exists and is not a folder."""
    return next((each for each in path.parents if each.exists()), path.parent)


def check_profile(profile: str, option: str = "--profile", otherwise: str = "") -> str:
    """The full name of a profile. Raises `UsageError` when there is no profile of that name;
    `otherwise` is what else the option takes."""
    from ottla.broker.errors import UnknownProfileError
    from ottla.broker.profiles.named import profile_named

    try:
        return profile_named(profile).name
    except UnknownProfileError as error:
        raise UsageError(f"{option}: {error.args[0]}{otherwise}") from None
