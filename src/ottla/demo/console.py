"""The terminal output of a run: progress while it runs, each fault when it is over, the table.

On a terminal, bars move while producers write. Elsewhere, and for steps without bars, a line on
standard error says every few seconds what goes on, so that a log of a run reads well. Other modules
make the text of figures and checks; this one gives it its place and its colour.
"""

from __future__ import annotations

from pathlib import Path

import rich.box
from rich.console import Console as Terminal
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ottla.commands.sim.telling import Line
from ottla.demo.losses import told
from ottla.demo.result import Result
from ottla.demo.settings import DemoSettings
from ottla.demo.stage import Deed, Stage
from ottla.demo.work import Work

NODE_COLOURS = ("", "blue", "dark_orange", "green")
BAR_WIDTH = 32


class Console:
    """Prints the output of a run."""

    def __init__(self, settings: DemoSettings):
        self._settings = settings
        self._terminal = Terminal(highlight=False)
        self._live: Live | None = None
        self._shown = 0
        self._line = Line()

    def beating(self) -> Line:
        """A context in which a line of progress is updated; the first step is the start."""
        self._line.doing("starting three nodes")
        return self._line

    def begin(self, stage: Stage) -> None:
        """Print the head of a run: the cluster is up."""
        self._line.clear()
        kind = "idempotent" if self._settings.idempotent else "plain"
        self._terminal.print(
            f"[bold]ottla demo[/]: three nodes in this process ({stage.bootstrap}), two {kind} "
            f"producers, acks={self._settings.acks}, seed {self._settings.seed}",
            soft_wrap=True,
        )
        if self._may_move():
            self._live = Live(console=self._terminal, refresh_per_second=10, transient=True)
            self._live.start()

    def _may_move(self) -> bool:
        """Whether lines may be overwritten. FORCE_COLOR makes rich take a pipe for a terminal: then
        it prints colours, but a log must not have overwritten lines."""
        terminal = self._terminal
        return terminal.is_terminal and not terminal.is_dumb_terminal and terminal.file.isatty()

    def progress(self, stage: Stage, work: Work, steps: int) -> None:
        """Show how far the run is."""
        for deed in stage.deeds[self._shown :]:
            self._terminal.print(_deed_line(stage, deed))
            self._shown += 1
        if self._live is None:
            acked = sum(each.acked_count for each in work.ledgers)
            told = f"{self._wanted(acked)} records acknowledged"
            self._line.tell(lambda _: f"{told}, {len(stage.deeds)} of {steps} faults")
        elif stage.samples:
            self._live.update(self._picture(stage, work, steps))

    def finished(self, stage: Stage, work: Work, steps: int) -> None:
        """Show the last progress: writing is over."""
        self.progress(stage, work, steps)
        self.close()

    def close(self) -> None:
        """Remove the bars, if there are any; the terminal gets its cursor back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print the next step, as a line that stays."""
        self._line.clear()
        self._terminal.print(f"  [dim]{text}[/]")
        self.doing(text)

    def doing(self, text: str) -> None:
        """Show the next step while it lasts."""
        self._line.doing(text)

    def _picture(self, stage: Stage, work: Work, steps: int) -> RenderableType:
        sample = stage.samples[-1]
        grid = Table.grid(padding=(0, 2))
        acked = sum(sample.acked)
        bars = (
            ("records", acked, self._settings.records, f"{self._wanted(acked)} acknowledged"),
            ("faults", len(stage.deeds), steps, stage.now_doing),
        )
        for name, done, whole, text in bars:
            grid.add_row(name, ProgressBar(whole, min(done, whole), width=BAR_WIDTH), text)
        for partition, leader in enumerate(sample.leaders):
            who = (
                Text(f"node {leader}", style=NODE_COLOURS[leader])
                if leader
                else Text("no leader", style="bold red")
            )
            mark = f"high watermark {sample.high_watermarks[partition]:,}"
            grid.add_row(f"demo-{partition}", who, mark)
        return Group(Text(), grid)

    def _wanted(self, acked: int) -> str:
        """Acknowledged records, and the number that was asked for. There may be many more, because
        producers go on while faults do."""
        return f"{acked:,} of at least {self._settings.records:,}"

    def end(self, result: Result, report: Path) -> None:
        """Print the table, the checks, and the path of the report."""
        self._line.clear()
        terminal = self._terminal
        terminal.print()
        terminal.print(_table(result))
        terminal.print()
        for verdict in result.verdicts:
            mark = "[green]pass[/]" if verdict.passed else "[bold red]FAIL[/]"
            terminal.print(
                f"  {mark}  {verdict.check} [dim]({verdict.compared})[/]", soft_wrap=True
            )
            for line in verdict.shown:
                terminal.print(f"        {line}", style="red", markup=False, soft_wrap=True)
            if verdict.violations > len(verdict.shown):
                terminal.print(f"        and {verdict.violations - len(verdict.shown):,} more")
        if result.loss_groups:
            terminal.print()
        for group in result.loss_groups:
            terminal.print(f"  {told(group)}", style="yellow", soft_wrap=True)
        terminal.print()
        terminal.print(result.sentence, style="bold", soft_wrap=True)
        terminal.print(f"report: {report}", soft_wrap=True)


def _deed_line(stage: Stage, deed: Deed) -> str:
    at = (deed.at - stage.started) / 1e6
    return f"  {at:5.1f} s  partition {deed.partition}  {deed.text}"


def _table(result: Result) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("what it is", style="dim")
    for figure in result.figures:
        table.add_row(figure.name, figure.text, figure.source)
    return table
