"""The package as one zip, for executors whose interpreter does not have it.

PySpark puts `.zip` files on the path of its workers, but not wheels. So once per session all that a
worker's task imports is written into a zip: modules and the files beside them, read through
`importlib.resources`, so that it also works from a wheel or from another zip. Paths and times in it
are fixed: the same code gives the same bytes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from ottla.sim.machine.code_hash import sources

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_ROOT = '"""Ottla, as it is shipped to executors."""\n'


def packed(folder: Path) -> Path:
    """Write the zip into this folder."""
    path = folder / "ottla.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "ottla/__init__.py", _ROOT.encode())
        for name, data in sources():
            _add(archive, f"ottla/{name}", data)
    return path


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)
