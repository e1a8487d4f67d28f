"""Copies large records out of their frame in steps."""

from __future__ import annotations

from collections.abc import Generator
from io import BytesIO

STEP_BYTES = 1 << 18
"""Bytes copied in one step."""
BYTES_A_UNIT = 1 << 13
"""Copying this many bytes costs one unit (`ottla.broker.event_loop.slices`)."""


def copied(data: bytes | memoryview) -> Generator[int, None, bytes]:
    """A copy of `data`, made in steps (`ottla.broker.event_loop.slices`).

    `BytesIO` returns its content without another copy.
    """
    copy = BytesIO()
    for at in range(0, len(data), STEP_BYTES):
        copy.write(data[at : at + STEP_BYTES])
        yield STEP_BYTES // BYTES_A_UNIT
    return copy.getvalue()
