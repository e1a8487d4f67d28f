"""CRC-32C, by the package `crc32c` (docs/decisions/0002-crc32c.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import cast


def _extension() -> ModuleType:
    """The C module of the package, without the package's own `__init__`.

    That `__init__` imports argparse for its command line and importlib.metadata for its version,
    which takes 20 ms in every process that opens a log. The whole package is imported only if it is
    loaded already, or if the C module is not found in it.
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
