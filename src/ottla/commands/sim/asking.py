"""Arguments that the commands of `ottla sim` share: seeds, settings, tapes.

A seed is a number or `0x...`. Settings come from a TOML file and from `--set NAME=VALUE`; the later
ones win.
"""

from __future__ import annotations

import os
import re
from errno import EACCES
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.usage import UsageError, file_option, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ottla.sim.chance.choices import Choices
    from ottla.sim.nemesis.failures import Failure as Plan
    from ottla.sim.recording.record import Again
    from ottla.sim.run import Outcome
    from ottla.sim.settings.settings import RunConfig
    from ottla.sim.sweeps.tape_file import Case
    from ottla.sim.world.world import World

Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; repeatable.")
]
ConfigFile = Annotated[Path | None, file_option("Settings as TOML.", "--config")]
What = Annotated[str, typer.Argument(help="A seed, or a file with a tape.")]
Whole = Annotated[
    bool, typer.Option("--whole", help="Draw no settings and go on to the end, as studies do.")
]
Failure = Annotated[
    str | None, typer.Option(help="What goes wrong, twice within 7 s of load; implies --whole.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, one object a line.")]
Jobs = Annotated[int, typer.Option(min=1, max=1024, help="Processes.")]

_KINDS = {bool: "true or false", int: "a whole number", str: "a word"}
_SCENARIO = re.compile(r"(sim-)?s\d+(_\w+)?", re.IGNORECASE)
"""Texts that name a scenario: ids as commands and pages write them, and names of files."""
MOST_SEED = 2**128 - 1
_TAPE = "a seed, or a file with a tape"
_NOTHING_DRAWN = "with --whole nothing is drawn"


def seed_of(text: str) -> int:
    """A seed as it was typed. Raises `UsageError`."""
    try:
        seed = int(text, 0)
    except ValueError:
        raise UsageError(f"{text!r} is not a seed; write a number, or 0x and digits") from None
    if seed < 0:
        raise UsageError(f"{text!r} is not a seed; seeds are not negative")
    if seed > MOST_SEED:
        raise UsageError(f"{text[:40]}... is not a seed; seeds have at most 128 bits")
    return seed


def mutant_named(text: str, known: Collection[str]) -> str:
    """The id of a mutant as it was typed. Raises `UsageError`."""
    from ottla.sim.settings.told import mutant_id

    found = mutant_id(text)
    if found not in known:
        raise UsageError(f"no such mutant: {text}; there are {', '.join(known)}")
    return found


def config_of(path: Path | None, settings: list[str] | None, *, whole: bool = False) -> RunConfig:
    """Settings from a file and the command line. `whole`: for a run that draws no settings. Raises
    `UsageError`."""
    from ottla.broker.errors import ConfigError
    from ottla.sim.plugins.files import setting
    from ottla.sim.settings.settings_file import from_toml
    from ottla.sim.settings.told import meant

    more: dict[str, int | str | bool] = {}
    for each in settings or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--set {each}: write NAME=VALUE")
        more[name] = meant(name, value if name == "mutants" else _value(value))
        _check_kind(name, more[name], each)
    if plugins := setting():
        more["plugins"] = plugins
    text = "" if path is None else _text_of(path, plugins)
    try:
        given = from_toml(text, more)
        check_faults(given)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    _check_meant(given, whole=whole)
    return given


def _text_of(path: Path, plugins: str) -> str:
    """The text of a file of settings that are valid with these plugins. Raises `UsageError`,
    which names the file."""
    from ottla.broker.errors import ConfigError
    from ottla.sim.settings.settings_file import from_toml

    text = toml_text("--config", path)
    try:
        check_faults(from_toml(text, {"plugins": plugins} if plugins else {}))
    except ConfigError as error:
        raise UsageError(f"--config {path}: {error}") from None
    return text


def toml_text(option: str, path: Path) -> str:
    """The text of the file that this option names. Raises `UsageError`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: {refused(error, 'a TOML file')}") from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{option} {path}: not TOML: it is not UTF-8 text; write it in UTF-8"
        ) from None


def _check_meant(given: RunConfig, *, whole: bool) -> None:
    """Check that these settings have a meaning for this kind of run. Raises `UsageError`."""
    if not whole and given.flush == "off":
        raise UsageError(
            "with flush=off the broker promises nothing, so a run cannot be judged; with --whole "
            "its losses are counted, and --failure names what goes wrong"
        )
    for name in ("faults", "fault_every_ms"):
        if whole and getattr(given, name):
            raise UsageError(f"{name}: {_NOTHING_DRAWN}; name a --failure")


def _check_kind(name: str, value: int | str | bool, typed: str) -> None:
    """Check the type of a setting's value. Unknown names are reported elsewhere. Raises
    `UsageError`."""
    from ottla.sim.settings.settings import SETTINGS, RunConfig

    if name not in SETTINGS:
        return
    kind = type(getattr(RunConfig(), name))
    if kind is not type(value):
        raise UsageError(f"--set {typed}: {_KINDS[kind]} is expected")


def check_faults(config: RunConfig) -> None:
    """Raises `ConfigError` for a fault that the nemesis does not have, or that needs more nodes,
    and for a blank list, which would mean all faults."""
    from ottla.broker.errors import ConfigError
    from ottla.sim.clients.workload import models_of
    from ottla.sim.nemesis.nemesis import check_faults as check

    if config.faults and not config.faults.split():
        raise ConfigError("faults is blank; name some, or leave it out for all")
    check(config)
    models_of(config)


def _value(text: str) -> int | str | bool:
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        return text


def taped(what: str) -> bool:
    """Whether the argument names a file, not a seed. Raises `UsageError`."""
    if not what.strip():
        raise UsageError(f"the argument is empty; name {_TAPE}")
    path = Path(what)
    try:
        there = _is_there(path)
    except OSError as error:  # such as a name that is too long, or a folder that is closed to us
        raise UsageError(f"{what}: {refused(error, _TAPE)}") from None
    if there and path.is_dir():
        raise UsageError(f"{what}: is a folder; name {_TAPE}")
    return there


def _is_there(path: Path) -> bool:
    """Like `Path.exists`, which hides some errors in some versions of Python. Raises `OSError`."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def check_scenario(what: str) -> None:
    """Raises `UsageError` if the argument looks like a scenario, for commands that take none, or
    if no scenario has this name."""
    if _SCENARIO.fullmatch(what) is None or taped(what):
        return
    from ottla.sim.recording.scenario import scenario_named
    from ottla.sim.scenarios.files import files

    if scenario_named(what) is not None:
        raise UsageError(f"{what} is a scenario; to see it, run ottla sim explain {what}")
    known = " ".join(each.stem.split("_")[0] for each in files())
    raise UsageError(f"no such scenario: {what}; there are {known}")


def outcome_of(what: str, config: Path | None = None, settings: list[str] | None = None) -> Outcome:
    """Run a seed under these settings, or a tape, which has its own settings. Raises
    `UsageError`."""
    from ottla.broker.errors import ConfigError
    from ottla.commands.sim.telling import busy
    from ottla.sim.chance.choices import Replayed
    from ottla.sim.run import replay as replay_tape
    from ottla.sim.run import run as run_seed
    from ottla.sim.sweeps.tape_file import TapeError, read

    if not taped(what):
        check_scenario(what)
        try:
            seed = seed_of(what)
        except UsageError as error:
            raise UsageError(f"{error}; nor is it a file") from None
        chosen = config_of(config, settings)
        with busy(f"running seed {seed}"):
            return run_seed(seed, chosen)
    if config is not None or settings:
        raise UsageError(f"{what}: a tape has its own settings; leave out --config and --set")
    try:
        kept = read(Path(what))
        check_faults(kept.case.config)
    except OSError as error:
        raise UsageError(f"{what}: {refused(error, _TAPE)}") from None
    except (TapeError, ConfigError) as error:
        raise UsageError(f"{what}: {error}") from None
    warn_of_other_code(f"{what}: kept", kept.code, "the run may be another")
    if kept.plugins != kept.case.config.plugins:
        with_ = f"with {kept.plugins}" if kept.plugins else "without plugins"
        now = kept.case.config.plugins
        typer.echo(f"{what}: kept {with_}; this is {now}, the run may be another", err=True)
    with busy(f"replaying {what}"):
        return replay_tape(kept.case.tape, kept.case.config, Replayed)


def warn_of_other_code(what: str, made_by: str, so: str) -> None:
    """Warn if something, such as a tape, was made by other code than this."""
    from ottla.sim.machine.code_hash import code

    here = code()
    if made_by != here:
        told = (
            f"by code {made_by}" if made_by else "by an older Ottla, it does not say by what code"
        )
        typer.echo(f"{what} {told}; this is {here}, {so}", err=True)


def whole_of(
    seed: str, config: Path | None, settings: list[str] | None, failure: str | None
) -> tuple[Outcome, Again]:
    """Run a seed under exactly these settings, to its end, as studies do; also returns a function
    that runs it again. Raises `UsageError`."""
    from ottla.broker.arguments.spelling import called, listed
    from ottla.broker.errors import ConfigError
    from ottla.commands.sim.telling import busy
    from ottla.sim.chance.choices import Drawn
    from ottla.sim.whole import BY_NAME, run_whole

    if failure is not None and failure not in BY_NAME:
        there = f"there is no such failure; there are {listed(BY_NAME)}"
        raise UsageError(f"--failure {called(failure)}: {there}")
    given = config_of(config, settings, whole=True)
    if failure is not None:
        _check_room(BY_NAME[failure], given)
    away_ms = given.client_trip_us // 1_000
    if given.request_timeout_ms <= away_ms:
        raise UsageError(
            f"request_timeout_ms is {given.request_timeout_ms}, but a node is {away_ms} ms away "
            "from clients, there and back: no answer of it could come in time; "
            f"{_NOTHING_DRAWN} to fit, so set it higher"
        )

    def again(choices: Choices, watching: Sequence[Callable[[World], None]]) -> Outcome:
        return run_whole(choices, given, failure, watching)[0]

    try:
        with busy(f"running seed {seed} to its end"):
            return again(Drawn(seed_of(seed)), ()), again
    except ConfigError as error:
        raise UsageError(f"{error}; {_NOTHING_DRAWN} to fit, so set it higher") from None


def _check_room(failure: Plan, given: RunConfig) -> None:
    """Check that the load lasts long enough for this failure. Raises `UsageError`."""
    from ottla.broker.errors import ConfigError

    try:
        failure.check(given)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def check_out(path: Path | None) -> None:
    """Check that a file can be written there, before work that takes minutes. Raises
    `UsageError`."""
    if path is None:
        return
    try:
        refusal = _why_not(path)
    except OSError as error:
        refusal = refused(error)
    if refusal:
        raise UsageError(f"{path}: {refusal}")


def _why_not(path: Path) -> str:
    """Why a file cannot be written there; empty if it can. Raises `OSError`."""
    there = _is_there(path)
    if path.is_dir():
        return "is a folder; name a file"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; make it, or name another file"
    if path.is_file():
        path.open("ab").close()
    elif there:  # such as a pipe: to open and close it would be the end for its reader
        return "" if os.access(path, os.W_OK) else refused(OSError(EACCES, os.strerror(EACCES)))
    else:  # tried with a temporary file in that folder
        TemporaryFile(dir=path.parent).close()
    return ""


def keep(path: Path, case: Case) -> None:
    """Write the tape that replays a run. Raises `UsageError`."""
    from ottla.sim.sweeps.tape_file import write

    try:
        write(path, case)
    except OSError as error:
        raise UsageError(f"{path}: {refused(error)}") from None
