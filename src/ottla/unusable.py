"""What an address or a folder that cannot be had means to who started `ottla up`."""

from __future__ import annotations

import errno
import os


def unusable(error: OSError) -> str:
    """What an address or a folder that cannot be had means to the user."""
    text = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        port = _port_in(text)
        return f"port {port} is in use; stop what listens there, or choose another with --port"
    if error.filename is not None:
        return f"--data-dir {error.filename}: {os.strerror(error.errno or 0)}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"not allowed to listen ({text}); choose a port above 1023 with --port"
    return text


def _port_in(text: str) -> str:
    """The port in `address ('127.0.0.1', 9092): address already in use`, as asyncio says it."""
    return text.partition("',")[2].partition(")")[0].strip() or "asked for"
