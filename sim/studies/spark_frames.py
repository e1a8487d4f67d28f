"""Folders and columns in the form that Spark needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COMPRESSION = "zstd"


def located(path: Path) -> str:
    """A folder for Spark: without a scheme it would be on `fs.defaultFS`. Not a proper URI, because
    Hadoop takes %20 for three characters."""
    return f"file://{path}"


def ddl(columns: Mapping[str, str]) -> str:
    """Columns with SQL types in Spark's DDL: its VARCHAR needs a length; a text without one is its
    STRING."""
    kinds = {"VARCHAR": "STRING"}
    return ", ".join(f"{name} {kinds.get(kind, kind)}" for name, kind in columns.items())


def write_parquet(frame: Any, folder: Path) -> None:
    """Write the rows of a DataFrame as files into an existing folder."""
    (
        frame.write.mode("append")
        .option("compression", _COMPRESSION)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(located(folder))
    )
