"""Which folder of a study holds a file that nobody can read, asked once an engine could not.

`_SUCCESS` tells of sizes: a byte that has rotted is met by who reads it, and DuckDB names no file.
So all files are read, by pyarrow, but only when something has failed already.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.sim.studies.study import StudyError, UntrustedError


@contextmanager
def report_corrupt_files(root: Path) -> Iterator[None]:
    """Within, what could not be done for a file that cannot be read is a `StudyError` that names
    its folder and says what helps."""
    from pyarrow import ArrowException

    try:
        yield
    except UntrustedError:
        raise
    except (StudyError, ArrowException, OSError) as error:
        rotten = _rotten(root) if _may_be_rot(error) else None
        if rotten is None:
            raise
        raise StudyError(
            f"{rotten.parent}: {rotten.name} cannot be read; delete the folder, and the same "
            f"command makes it anew"
        ) from None


def _may_be_rot(error: Exception) -> bool:
    """Or something plainer: to read all files of a large study takes minutes."""
    if isinstance(error, StudyError):
        return "engine " in str(error)
    return getattr(error, "errno", None) is None  # else a disk that is full, a folder that is gone


def _rotten(root: Path) -> Path | None:
    """The first file of a whole folder that cannot be read."""
    for layer in ("gold/*", "silver/*/batch=*", "bronze/wave=*"):
        for part in sorted(root.glob(f"{layer}/*.parquet")):
            if not part.parent.name.startswith("_") and not _readable(part):
                return part
    return None


def _readable(part: Path) -> bool:
    """Piece by piece: a wave may be larger than memory."""
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(part) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)
    except (ArrowException, OSError, UnicodeDecodeError):  # the last for what is no text in UTF-8
        return False
    return True
