"""Where a cluster lives: checks of the host, the port and the folder that its user names.

They run when the cluster is made. As in `arguments.py`, each function takes what was handed in, and
raises `ConfigError` if that cannot name such a place. Whether the place is free, and may be used,
shows only when the cluster starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from ottla.broker.arguments.addresses import MAX_PORT, bare_host, is_group, is_host
from ottla.broker.arguments.arguments import reading, text, whole
from ottla.broker.arguments.spelling import printable, said, shown
from ottla.broker.errors import ConfigError

Folder: TypeAlias = os.PathLike[str] | os.PathLike[bytes] | str | bytes


def host_of(value: object) -> str:
    """A host's name or address. Raises `ConfigError`."""
    host = bare_host(text("host", value))
    if is_group(host):
        raise ConfigError(f"host is {shown(value)}; it stands for many machines, name this one")
    try:
        named = is_host(host) and len(host.encode("idna")) >= 0
    except UnicodeError:
        named = False
    if not named:
        raise ConfigError(f"host is {shown(value)}; the name or address of this machine is wanted")
    return host


def port_of(value: object, nodes: int) -> int:
    """The port of node 1; 0 for free ports. Raises `ConfigError`, also if the last of `nodes` would
    need a port that does not exist."""
    port = whole("port", value, 0, MAX_PORT)
    if port and port + nodes - 1 > MAX_PORT:
        raise ConfigError(f"port is {port}: node {nodes} would need port {port + nodes - 1}")
    return port


def folder_of(value: object) -> Path | None:
    """The folder for logs as an absolute path; None if they live in memory. A relative path starts
    at the present working directory, `~` is the user's home. Raises `ConfigError`."""
    if value is None:
        return None
    with reading("data_dir", value):
        named = os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else ""
        named = text("data_dir", named)
    if not named or "\0" in named:
        raise ConfigError(f"data_dir is {shown(value)}; the path of a folder is wanted")
    try:
        folder = Path(named).expanduser().absolute()
        str(folder).encode()
    except RuntimeError as error:
        raise ConfigError(f"data_dir is {shown(value)}; {error}") from None
    except UnicodeEncodeError:  # LMDB, and all messages about the folder, need UTF-8
        raise ConfigError(f"data_dir is {shown(value)}; a name in UTF-8 is wanted") from None
    except OSError as error:
        why = f"the working directory: {error.strerror}"
        raise ConfigError(f"data_dir is {shown(value)}; {why}; write the whole path") from None
    _check_folder(folder, value)
    return folder


def _check_folder(folder: Path, value: object) -> None:
    """Check that the folder exists or can be made, as far as the system tells. Raises
    `ConfigError`."""
    try:
        folder.stat()
        above = folder
    except FileNotFoundError:
        return  # it is made at the start
    except NotADirectoryError:
        above = next((each for each in folder.parents if each.exists()), folder.parent)
    except OSError as error:
        why = error.strerror or said(error)
        raise ConfigError(f"data_dir is {shown(value)}; {why}; name another folder") from None
    if not above.is_dir():
        what = "it" if above == folder else printable(str(above))
        raise ConfigError(f"data_dir is {shown(value)}; {what} is a file; name a folder")
