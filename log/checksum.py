"""CRC-32C, by the package `crc32c` (docs/decisions/0002-crc32c.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import cast


def _extension() -> ModuleType:
    """The C module of the package, without the package around it.

    The package's own front imports argparse for its command, and importlib.metadata to look up its
    version: 20 ms of every process that opens a log. Where the C module is not where it used to be,
    or the package is loaded already, the front is taken.
    """
    package = None if "crc32c" in sys.modules else find_spec("crc32c")
    if package is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    import crc32c as front

    return front


crc32c = cast(Callable[..., int], _extension().crc32c)
"""`crc32c(data, value=0)`: the checksum of any buffer, continued from `value`."""
