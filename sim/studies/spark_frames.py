"""Folders and columns as Spark is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COMPRESSION = "zstd"


def located(path: Path) -> str:
    """A folder as Spark is told of it: without a scheme it would be one of `fs.defaultFS`. No URI,
    whose %20 Hadoop takes for three letters."""
    return f"file://{path}"


def ddl(columns: Mapping[str, str]) -> str:
    """Columns with SQL types in Spark's words: its VARCHAR wants a length; a text without one is
    its STRING."""
    kinds = {"VARCHAR": "STRING"}
    return ", ".join(f"{name} {kinds.get(kind, kind)}" for name, kind in columns.items())


def write_parquet(frame: Any, folder: Path) -> None:
    """The rows of a DataFrame as files in a folder, which is there."""
    (
        frame.write.mode("append")
        .option("compression", _COMPRESSION)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(located(folder))
    )
