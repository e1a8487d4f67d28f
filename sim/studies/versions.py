"""Versions of bronze: what changed in each, where a file says its own, and which ones are read.

| version | what is new in it |
|---|---|
| 0 | nothing: what there was first |
| 1 | column `told` |
| 2 | its files say the version; `noticed` rows, `term` of *fetch*, `off aux` of *expire*, (1) |

(1) and `aux` of the *apply* of a deletion. All of them came while the version was still 1, one
commit after the other. So a file that says nothing may or may not have them.

**Older versions are read.** A column that they lack is NULL, and so is what comes of rows that they
lack: `noticed` of a run that failed. Verdicts in them are those of the judge of that day. SQL may
find otherwise where records were deleted up to the inside of a batch (sim-I12), or a producer was
forgotten. A newer version is refused: its rows may mean what nobody here knows.

**Where a file says it.** In the metadata of Parquet. The pool writes them with the Arrow schema.
Spark has no word for them, but keeps its own schema there, with what is said of each column: so its
files say it of the first column.

Who changes what columns or rows of bronze mean adds a line above and one to `VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ottla.sim.studies.study import StudyError

VERSION = 2
"""Of what is written."""
KEY = "bronze-version"
"""What the metadata calls it."""
_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def version_of(part: Path) -> str | None:
    """What a Parquet file says of its version; None where it says nothing."""
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
    """Raises `StudyError` for bronze of a version that this code does not know."""
    for folder in folders:
        for part in sorted(folder.glob("*.parquet")):
            try:
                said = version_of(part)
            except (OSError, ValueError):
                continue  # the engine says what is wrong with it
            if said is not None and not (said.isdecimal() and int(said) <= VERSION):
                raise StudyError(
                    f"{part}: bronze of version {said}; this code knows versions up to {VERSION}"
                )
