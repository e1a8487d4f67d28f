"""`ottla sim ... --patch FILE`, `--tree DIR`, `--plugin FILE`: a command with somebody's own code.

These options may stand anywhere behind `ottla sim`. With one of the first two, the command is
carried out by a Python of its own that has the other tree first on its path: a checkout, or a copy
of this Ottla with the patch applied, which is gone when the command ends. Its output, its input and
its status are the command's. A plugin is loaded into each process of the command, and adds to what
a run has (`ottla.sim.plugins.own`). What is printed for others to type again names the options, too
(`words_of_others`).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ottla.commands.usage import UsageError, file_option, folder_option, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPTIONS = ("--patch", "--tree", "--plugin")
_TYPED = "OTTLA_SIM_TREE"
"""The variable that tells the other Python which option it was started with."""


def moved_to_the_front(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of this module with their values, and the other words. Raises
    `UsageError`."""
    front, rest = [], []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, _ = word.partition("=")
        if name not in _OPTIONS:
            rest.append(word)
            continue
        front.append(word)
        if not equals:
            if not left:
                raise UsageError(f"{name}: what it names is missing")
            front.append(left.pop(0))
    return front, rest


def words_of_others() -> list[str]:
    """The options that make a command run this tree, with these plugins."""
    from ottla.sim.plugins.files import words

    return [*shlex.split(os.environ.get(_TYPED, "")), *words()]


def choose(
    context: typer.Context,
    *,
    patch: Annotated[
        Path | None,
        file_option("Run a copy of Ottla with this patch applied; behind any command."),
    ] = None,
    tree: Annotated[
        Path | None,
        folder_option("Run the Ottla of this checkout; behind any command.", "DIR"),
    ] = None,
    plugin: Annotated[
        list[Path] | None,
        file_option("Your own invariants, faults, mutants, clients; behind any; repeatable."),
    ] = None,
) -> None:
    """The simulator: one seed, one history."""
    plugins = plugin or []
    if patch is None and tree is None:
        _choose_plugins(plugins)
        return
    if patch is not None and tree is not None:
        raise UsageError("--patch and --tree: name one of them")
    named = [word for each in plugins for word in ("--plugin", str(each))]
    words = [*context.meta[_TYPED], *named]
    if tree is not None:
        _run(_package_of(tree), words, ["--tree", str(tree)])
    assert patch is not None
    with _copy_with(patch) as copy:
        _run(copy, words, ["--patch", str(patch)])


def _choose_plugins(paths: Sequence[Path]) -> None:
    """Load the plugins of this command. Raises `UsageError`."""
    from ottla.sim.plugins.files import choose as choose_plugins
    from ottla.sim.plugins.own import PluginError

    try:
        choose_plugins(paths)
    except PluginError as error:
        raise UsageError(f"--plugin {error}") from None
    except OSError as error:
        raise UsageError(f"--plugin {error.filename}: {refused(error, 'a plugin')}") from None


def keep_words(context: Any, words: Sequence[str]) -> list[str]:
    """Remember what the command is, without the options of this module; returns all words with
    these options in front, where the group reads them."""
    front, rest = moved_to_the_front(words)
    context.meta[_TYPED] = rest
    return [*front, *rest]


def _package_of(tree: Path) -> Path:
    """The folder of a checkout that a Python has to have on its path. Raises `UsageError`."""
    for each in (tree / "src", tree):
        if (each / "ottla" / "__init__.py").is_file():
            return each.resolve()
    raise UsageError(f"--tree {tree}: has no src/ottla and no ottla; name a checkout of Ottla")


@contextmanager
def _copy_with(patch: Path) -> Iterator[Path]:
    """A copy of this Ottla with the patch applied. Raises `UsageError`."""
    from ottla.sim.machine import trees
    from ottla.sim.machine.patches import PatchError, patched

    try:
        found = patched(patch)
    except PatchError as error:
        raise UsageError(f"--patch {patch}: {error}") from None
    except OSError as error:
        raise UsageError(f"--patch {patch}: {refused(error, 'a patch')}") from None
    if found.left_out:
        told = ", ".join(found.left_out[:3])
        more = f" and {len(found.left_out) - 3} more" if len(found.left_out) > 3 else ""
        typer.echo(f"left out, not in the package: {told}{more}", err=True)
    with TemporaryDirectory(prefix="ottla-tree-") as folder:
        yield trees.copied(Path(folder), found.changes)


def _run(tree: Path, words: Sequence[str], option: Sequence[str]) -> NoReturn:
    """Carry out the command with that tree, and end with its status."""
    from ottla.sim.machine import trees

    process = subprocess.Popen(  # noqa: S603 - the same command, with the tree that was named
        [sys.executable, "-P", "-m", "ottla", "sim", *words],
        env={**trees.surroundings(tree), _TYPED: shlex.join(option)},
    )
    # Ctrl-C reaches it as well, and it says what is kept.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = process.wait()
    finally:
        process.kill()
        signal.signal(signal.SIGINT, before)
    raise typer.Exit(128 - status if status < 0 else status)
