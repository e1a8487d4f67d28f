"""Versions of bronze: what changed in each, where a file states its version, and which are read.

| version | what is new in it |
|---|---|
| 0 | nothing: the first version |
| 1 | column `told` |
| 2 | its files state the version; `noticed` rows, `term` of *fetch*, `off aux` of *expire*, (1) |

(1) and `aux` of the *apply* of a deletion. All of these came while the version was still 1, one
commit after the other. So a file without a version may or may not have them.

**Older versions are read.** Columns that they lack are NULL, and so is what follows from rows that
they lack: `noticed` of a run that failed. Their verdicts are those of the checkers at that time.
SQL may differ if records were deleted up to the inside of a batch (sim-I12), or if a producer was
forgotten. A newer version is refused, because the meaning of its rows is unknown here.

**Where a file states it.** In the metadata of Parquet. The pool writes it with the Arrow schema.
Spark cannot do that, but stores its own schema there, with metadata of each column, so its files
have the version at the first column.

If you change the meaning of columns or rows of bronze, add a line above and one to `VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ottla.sim.studies.study import StudyError

VERSION = 2
"""The version that is written."""
KEY = "bronze-version"
"""Its key in the metadata."""
_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def version_of(part: Path) -> str | None:
    """The version that a Parquet file states; None: it states none."""
    from pyarrow import parquet

    kept: dict[bytes, bytes] = parquet.read_metadata(part).metadata or {}
    if KEY.encode() in kept:
        return kept[KEY.encode()].decode()
    if _OF_SPARK not in kept:
        return None
    for column in json.loads(kept[_OF_SPARK])["fields"]:
        if KEY in column["metadata"]:
            return str(column["metadata"][KEY])
    return None


def check_versions(folders: Iterable[Path]) -> None:
    """Raises `StudyError` for bronze of an unknown version."""
    for folder in folders:
        for part in sorted(folder.glob("*.parquet")):
            try:
                said = version_of(part)
            except (OSError, ValueError):
                continue  # the engine reports what is wrong with it
            if said is not None and not (said.isdecimal() and int(said) <= VERSION):
                raise StudyError(
                    f"{part}: bronze of version {said}; this code knows versions up to {VERSION}"
                )
