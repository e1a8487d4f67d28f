"""Tables `bronze` and `ev`: the rows of some waves, for silver tables and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ottla.sim.studies import bronze
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.names import EVENTS
from ottla.sim.studies.versions import check_versions

BRONZE = "bronze"


def define_events(engine: Engine, folders: Sequence[Path], *, judged: bool = False) -> None:
    """Make `bronze` with every row in these folders, and `ev` with those of histories: of all runs,
    or of the judged ones. Columns that old files lack are NULL. Raises `StudyError` for bronze of
    an unknown version."""
    check_versions(folders)
    engine.define(BRONZE, folders, bronze.SCHEMA)
    engine.make(EVENTS, events_query(judged=judged))


def events_query(*, judged: bool) -> str:
    """The query for `ev`."""
    columns = ", ".join(each for each in bronze.SCHEMA if each != "told")
    others = ", ".join(repr(each) for each in bronze.KINDS)
    only = " AND judged" if judged else ""
    return f"SELECT {columns}\nFROM {BRONZE}\nWHERE kind NOT IN ({others}){only}"
