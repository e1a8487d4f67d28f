"""The report of a study as files: `report.html`, and beside it a page for each worst run."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path

from ottla.report.study.page import page
from ottla.report.study.pictures import FOLDER, picture_of
from ottla.sim.machine.files import write_whole
from ottla.sim.studies.findings import Findings
from ottla.sim.studies.study import Study


def write(
    findings: Findings,
    study: Study,
    path: Path,
    told: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the report, all of it or nothing, and remove the pages of an earlier report. Returns
    the size in bytes. `told` is called with each step. Raises `NotTheSameError` if one of the worst
    runs has changed, and `OSError`."""
    pictures = {}
    for each in findings.worst:
        told(f"drawing seed {each.seed}")
        if each.digest:
            pictures[each.run_id] = picture_of(study, each, path.parent)
    text = page(findings, pictures).encode()
    write_whole(path, text)
    _remove_others(path.parent, {each.link for each in pictures.values()})
    return len(text)


def _remove_others(beside: Path, linked: Container[str]) -> None:
    """Remove pages of an earlier report: nothing links to them, and their runs are others."""
    for each in (beside / FOLDER).glob("run*.html"):
        if f"{FOLDER}/{each.name}" not in linked:
            each.unlink()
