"""Which folder of a study holds an unreadable file, checked after an engine has failed.

`_SUCCESS` has only sizes, so a flipped bit shows only when the file is read, and DuckDB's error
names no file. So all files are read, by pyarrow, but only after something has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.sim.studies.study import StudyError, UntrustedError


@contextmanager
def report_corrupt_files(root: Path) -> Iterator[None]:
    """If something fails inside because a file cannot be read, raises a `StudyError` that names its
    folder and what helps."""
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
            f"command makes it again"
        ) from None


def _may_be_rot(error: Exception) -> bool:
    """Whether the error may come from such a file; not for obvious other causes, because reading
    all files of a large study takes minutes."""
    if isinstance(error, StudyError):
        return "engine " in str(error)
    return getattr(error, "errno", None) is None  # otherwise a full disk, or a missing folder


def _rotten(root: Path) -> Path | None:
    """The first unreadable file of a whole folder."""
    for layer in ("gold/*", "silver/*/batch=*", "bronze/wave=*"):
        for part in sorted(root.glob(f"{layer}/*.parquet")):
            if not part.parent.name.startswith("_") and not _readable(part):
                return part
    return None


def _readable(part: Path) -> bool:
    """Whether a file can be read, piece by piece, because a wave may be larger than memory."""
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(part) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)
    except (ArrowException, OSError, UnicodeDecodeError):  # the last for text that is not UTF-8
        return False
    return True
