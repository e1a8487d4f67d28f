"""Plugins: the files that `--plugin` names, read and run once in each process that needs them.

A command chooses its plugins. The processes that it starts learn them from an environment variable,
and load the same files, before a run begins, when they first meet a setting that names one. The
setting contains a hash of the text of each file: a process that finds another text refuses to go
on.

Only chosen files are run. A tape or a folder names a plugin, but not its path, so whoever replays
it must name the file again.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from types import ModuleType

from ottla.sim.plugins.own import (
    ENTRIES,
    LOADED,
    MODULE,
    OwnMutant,
    Plugin,
    PluginError,
    replacing,
)

VARIABLE = "OTTLA_SIM_PLUGINS"
"""The environment variable with the files that the command has chosen, as words of a shell."""
_ABSENT = "plugins: this needs {}; name that file with --plugin FILE"
_NAME = re.compile(r"[\w.-]+\.py", re.ASCII)


def choose(paths: Sequence[Path]) -> None:
    """Load the plugins of a command, and pass them on to the processes that it starts. Without
    paths, the command has no plugins. Raises `PluginError`, and `OSError` for a file that cannot be
    read."""
    load(paths)
    if paths:
        os.environ[VARIABLE] = shlex.join(map(str, paths))
    else:
        os.environ.pop(VARIABLE, None)


def words() -> list[str]:
    """The options that choose the same plugins again."""
    return [word for each in _chosen() for word in ("--plugin", str(each))]


def setting() -> str:
    """The value of the setting `plugins` in a command's runs. Raises `PluginError`."""
    return load(_chosen())


def _chosen() -> list[Path]:
    return [Path(each) for each in shlex.split(os.environ.get(VARIABLE, ""))]


def load(paths: Sequence[Path]) -> str:
    """Load these files. Returns the setting that names them. Raises `PluginError`, and
    `OSError`."""
    plugins = [_loaded(each) for each in dict.fromkeys(paths)]
    found = {each.key: each for each in plugins}
    for one, other in combinations(found.values(), 2):
        if one.name == other.name:
            raise PluginError(f"two plugins are called {one.name}; rename one of them")
        taken = {each.id for each in one.entries}
        for each in other.entries:
            if each.id in taken:
                raise PluginError(f"{other.name}: {each.id} is in {one.name} already")
    LOADED.update(found)
    return " ".join(found)


def check(told: str) -> None:
    """Check that this process has the plugins in a setting. Chosen plugins that are not loaded yet
    are loaded. Raises `PluginError` if one is missing."""
    for key in told.split():
        if key in LOADED:
            continue
        try:
            now = setting()
        except OSError as error:
            raise PluginError(f"plugins: {error.filename}: {error.strerror}") from None
        if key not in LOADED:
            raise PluginError(_missing(key, now))


def as_chosen(told: str) -> str:
    """The setting that names the plugins of this command, to replay a run whose setting was `told`.
    Their text may have changed since, and there may be more of them. Raises `PluginError` if one is
    missing."""
    now = setting()
    if not now:
        check(told)
        return told
    there = [each.partition(":")[0] for each in now.split()]
    for key in told.split():
        name = key.partition(":")[0]
        if name not in there:
            raise PluginError(_ABSENT.format(name))
    return now


def _missing(key: str, now: str) -> str:
    name = key.partition(":")[0]
    for each in now.split():
        if each.partition(":")[0] == name:
            return f"plugins: {key} is named, but the text of {name} has changed: it is {each} now"
    return _ABSENT.format(name)


def _loaded(path: Path) -> Plugin:
    data = path.read_bytes()
    if not _NAME.fullmatch(path.name):
        raise PluginError(f"{path}: call it something like mine.py, of letters, digits, _ - and .")
    mark = blake2b(data, digest_size=8).hexdigest()
    key = f"{path.name}:{mark}"
    if key in LOADED:
        return LOADED[key]
    module = ModuleType(f"{MODULE}{re.sub('[^a-zA-Z0-9]', '_', path.stem)}_{mark}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        _run(data, path, module)
        plugin = Plugin(key, tuple(vars(module).get(ENTRIES, ())))
        _check(plugin, path)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return plugin


def _run(data: bytes, path: Path, module: ModuleType) -> None:
    """Raises `PluginError`."""
    try:
        code = compile(data, str(path), "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - to run this file is what --plugin asks for
    except SyntaxError as error:
        raise PluginError(f"{error.filename}: line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - to the user it is one line
        raise PluginError(f"{path}: {_told(error, path)}") from None


def _check(plugin: Plugin, path: Path) -> None:
    """Raises `PluginError` for a plugin that adds nothing, and for a mutant that replaces something
    that does not exist."""
    if not plugin.entries:
        raise PluginError(
            f"{path}: adds nothing; decorate a function with invariant, fault, mutant or client of "
            "ottla.sim.plugins.own"
        )
    for each in plugin.entries:
        if isinstance(each, OwnMutant):
            try:
                with replacing() as replace:
                    each.function(replace)
            except Exception as error:  # noqa: BLE001 - as above
                raise PluginError(f"{path}: {each.id}: {_told(error, path)}") from None


def _told(error: BaseException, path: Path) -> str:
    """An exception in one line, with the innermost line of that file that it passed through."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    kind = "" if isinstance(error, PluginError) else f"{type(error).__name__}: "
    told = " ".join(str(error).split())
    if isinstance(error, ImportError) and PluginError.__module__.startswith(error.name or "?"):
        told += "; write: from ottla.sim.plugins.own import client, fault, invariant, mutant"
    return f"line {line}: {kind}{told}"
