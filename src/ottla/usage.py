"""What a user can do wrong with options that commands of `ottla` share, each told in one line."""

from __future__ import annotations

from pathlib import Path

import typer


class UsageError(typer.TyperException):
    """The user can do something about it; the text is one line that says what."""


def folder(text: str | Path) -> Path:
    """A folder's name as it was typed: an empty one is a variable that was never set, not this
    folder. Raises `typer.BadParameter`, also for a name that the system does not take."""
    if not str(text):
        raise typer.BadParameter("is empty; name a folder")
    try:
        str(text).encode()
        Path(text).stat()
    except UnicodeEncodeError:
        raise typer.BadParameter("is no text in UTF-8; name another folder") from None
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is made, or refused by whoever makes it
    except OSError as error:
        raise typer.BadParameter(f"{error.strerror}; name another folder") from None
    return Path(text)


def check_profile(profile: str) -> None:
    """Raises `UsageError` when there is no profile of that name."""
    from ottla.idempotency.errors import UnknownProfileError
    from ottla.idempotency.profiles import profile_named

    try:
        profile_named(profile)
    except UnknownProfileError as error:
        raise UsageError(f"--profile: {error.args[0]}") from None
