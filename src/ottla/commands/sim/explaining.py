"""`ottla sim explain`: a page about one run.

A run is named by its seed, by a file with its tape, or by a scenario of `sim/scenarios/`, such as
`s07`, or of a text file of your own. A seed runs under the given settings; a tape has its own. For
a scenario, one chooses an act, and perhaps a mutant.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import (
    ConfigFile,
    Failure,
    Settings,
    Whole,
    check_out,
    check_scenario,
    mutant_named,
    outcome_of,
    taped,
    whole_of,
)
from ottla.commands.sim.other_trees import words_of_others
from ottla.commands.sim.telling import busy, say
from ottla.commands.usage import UsageError, file_option, refused

if TYPE_CHECKING:
    from ottla.sim.recording.record import Recording


def explain(
    what: Annotated[
        str, typer.Argument(help="A seed, a file with a tape, or a scenario: s07, mine.txt.")
    ],
    *,
    config: ConfigFile = None,
    settings: Settings = None,
    act: Annotated[int, typer.Option(min=1, help="Of a scenario: which of its acts.")] = 1,
    mutant: Annotated[str, typer.Option(help="Of a scenario: without this mechanism.")] = "",
    whole: Whole = False,
    failure: Failure = None,
    partition: Annotated[
        int | None, typer.Option(min=-1, help="Draw this one alone; -1 is the controller.")
    ] = None,
    out: Annotated[Path, file_option("Where the page goes.")] = Path("explain.html"),
) -> None:
    """Write an HTML page about one run: each step, and what went wrong first."""
    from ottla.report.explain.report import page
    from ottla.sim.recording.scenario import scenario_named

    check_page(out)
    path = scenario_named(what)
    if path is None:
        check_scenario(what)
        if mutant or act != 1:
            raise UsageError(f"{what} is no scenario: --act and --mutant choose within one")
        if whole or failure is not None:
            recording = _whole(what, config, settings, failure)
        else:
            recording = _run(what, config, settings)
    else:
        if config is not None or settings or whole or failure is not None:
            raise UsageError(f"{what}: a scenario has its own settings")
        recording = _scenario(path, act, mutant)
    if partition is not None and partition not in recording.placement:
        raise UsageError(f"--partition {partition}: the run has no such partition")
    if partition is not None:
        recording.command += f" --partition {partition}"
    with busy("drawing the page"):
        text = page(recording, partition=partition)
    write(out, text)
    say(_in_short(recording))
    say(f"{out}: {len(text.encode()):,} bytes")


def _in_short(recording: Recording) -> str:
    if not recording.anomalies:
        told = recording.weakened
        return f"weakened: {told[0]}" if told else f"ok: {recording.reason}"
    first = recording.anomalies[0]
    return f"failed: {first.invariant} at event {first.eid}: {first.text}"


def title_of(
    what: str, config: Path | None, settings: list[str] | None, verb: str
) -> tuple[str, str]:
    """The title of a page about a seed or a tape, and the command that makes the page again."""
    title = f"Tape {Path(what).name}" if taped(what) else f"Seed {what}"
    return title, shlex.join(["ottla", "sim", verb, what, *given(config, settings)])


def given(config: Path | None, settings: list[str] | None) -> list[str]:
    """The options that give these settings to a command again."""
    words = words_of_others()
    if config is not None:
        words += ["--config", str(config)]
    for each in settings or ():
        words += ["--set", each]
    return words


def _run(what: str, config: Path | None, settings: list[str] | None) -> Recording:
    from ottla.sim.recording.record import record

    outcome = outcome_of(what, config, settings)
    with busy("running it once more, with a look at each step"):
        return record(outcome, *title_of(what, config, settings, "explain"))


def _whole(
    what: str, config: Path | None, settings: list[str] | None, failure: str | None
) -> Recording:
    from ottla.sim.recording.record import record

    outcome, again = whole_of(what, config, settings, failure)
    title, command = title_of(what, config, settings, "explain")
    command += f" --whole --failure {shlex.quote(failure)}" if failure else " --whole"
    with busy("running it once more, with a look at each step"):
        return record(outcome, title, command, again)


def _scenario(path: Path, act: int, mutant: str) -> Recording:
    from ottla.sim.mutants.catalogue import mutant_ids
    from ottla.sim.plugins.files import setting
    from ottla.sim.recording.scenario import NoSuchActError, record_scenario
    from ottla.sim.scenarios.files import FOLDER
    from ottla.sim.scenarios.lines import ScenarioError

    plugins = setting()
    if mutant:
        mutant = mutant_named(mutant, mutant_ids(plugins))
    own = path.parent != FOLDER
    name = shlex.quote(str(path)) if own else path.stem.split("_")[0]
    given = (f" --act {act}" if act != 1 else "") + (f" --mutant {mutant}" if mutant else "")
    try:
        with busy(f"running scenario {name}"):
            command = " ".join(
                (f"ottla sim explain {name}{given}", *map(shlex.quote, words_of_others()))
            )
            return record_scenario(path, act, mutant, command, plugins=plugins)
    except NoSuchActError as error:
        raise UsageError(f"--act {act}: {error}") from None
    except (ScenarioError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: {error}") from None


def there(path: Path) -> str:
    """The text of the file that a page would replace; empty if there is none. Raises
    `UsageError`."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except OSError as error:
        raise UsageError(f"{path}: {refused(error)}") from None
    except UnicodeDecodeError:
        told = "is there, and no page: no text in UTF-8; name another file"
        raise UsageError(f"{path}: {told}") from None


def check_page(path: Path | None) -> None:
    """Check that a page may be written there: the folder exists, and the file is new or a page of
    Ottla's. Raises `UsageError`."""
    from ottla.report.page.document import is_page

    check_out(path)
    text = "" if path is None else there(path)
    if text.strip() and not is_page(text):
        raise UsageError(f"{path}: exists, and is not a page of Ottla's; name another file")


def write_and_say(path: Path, text: str) -> None:
    """Write a page, and print its size. Raises `UsageError`."""
    write(path, text)
    say(f"{path}: {len(text.encode()):,} bytes")


def write(path: Path, text: str) -> None:
    """Write a page. Raises `UsageError`."""
    from ottla.sim.machine.files import write_whole

    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: {refused(error)}") from None
