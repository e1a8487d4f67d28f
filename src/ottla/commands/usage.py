"""What a user can do wrong with options that commands of `ottla` share, each told in one line.

A refusal shows what was typed as far as a terminal bears it: nothing that it would obey, and no
more than `LONGEST_LINE` characters.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer.models import OptionInfo

if TYPE_CHECKING:
    from collections.abc import Iterable


_KINDS = {
    "integer range": "a whole number",
    "int range": "a whole number",
    "integer": "a whole number",
    "float range": "a number",
    "float": "a number",
}
"""Kinds of values as those who read options call them, and as people do."""


LONGEST_LINE = 6_000
"""Characters: a path may have 4096, beside what is said of it."""


class UsageError(typer.TyperException):
    """The user can do something about it; the text is one line that says what."""


def check_words(words: Iterable[str]) -> None:
    """Whether what was typed is text. A word of other bytes, or with a NUL in it, could be the name
    of no file that a page, a table or a JSON object tells of. Raises `UsageError`."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{word!r} is no text in UTF-8; write or name it otherwise") from None
        if "\0" in word:
            raise UsageError(f"{word!r} has a NUL in it; write it without")


def one_line(told: str) -> str:
    """A refusal in one line, whatever was typed: what a terminal would obey is spelt out, and what
    is longer than any refusal has words for is cut."""
    for name, plain in _KINDS.items():
        told = told.replace(f"a valid {name}", plain)
    line = "".join(each if each.isprintable() else repr(each)[1:-1] for each in told)
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def folder(text: str | Path) -> Path:
    """A folder's name as it was typed: an empty one is a variable that was never set, not this
    folder. Raises `typer.BadParameter`, also for a name that the system does not take."""
    return _named(text, "folder")


def file(text: str | Path) -> Path:
    """A file's name as it was typed. Raises `typer.BadParameter`, as `folder` does."""
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
    """What the system said, and what can be named instead."""
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
        pass  # it is made, or refused by whoever makes it
    except NotADirectoryError:
        raise typer.BadParameter(
            f"{_above(Path(text))} is a file, and no folder; name another {of}"
        ) from None
    except OSError as error:
        raise typer.BadParameter(refused(error, f"another {of}")) from None
    return Path(text)


def _above(path: Path) -> Path:
    """What stands in the way of a path."""
    return next((each for each in path.parents if each.exists()), path.parent)


def check_profile(profile: str) -> None:
    """Raises `UsageError` when there is no profile of that name."""
    from ottla.idempotency.errors import UnknownProfileError
    from ottla.idempotency.profiles import profile_named

    try:
        profile_named(profile)
    except UnknownProfileError as error:
        raise UsageError(f"--profile: {error.args[0]}") from None
