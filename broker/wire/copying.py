"""Large records are copied out of their frame in steps."""

from __future__ import annotations

from collections.abc import Generator
from io import BytesIO

STEP_BYTES = 1 << 18
"""Copied in one step."""
BYTES_A_UNIT = 1 << 13
"""Bytes that cost a unit of the turn to copy."""


def copied(data: bytes | memoryview) -> Generator[int, None, bytes]:
    """A copy of `data`, made over as many turns as it needs (`ottla.broker.event_loop.slices`).

    What a `BytesIO` has been given is one bytes object already: to ask for it costs no copy.
    """
    copy = BytesIO()
    for at in range(0, len(data), STEP_BYTES):
        copy.write(data[at : at + STEP_BYTES])
        yield STEP_BYTES // BYTES_A_UNIT
    return copy.getvalue()
