"""Whether Spark's master is one, and somebody is there, asked before Spark does.

Spark takes a minute to give up on a standalone cluster, many minutes on Spark Connect, and a name
that is no master ends its JVM with a traceback on standard error, which no exception here stops.
"""

from __future__ import annotations

import os
import re
import socket
from importlib.util import find_spec

from ottla.sim.studies.study import StudyError

WITHIN_S = 5.0
"""So long a host is waited for."""
_CONNECT_PORT = 15_002
_LOCAL = re.compile(
    r"local(\[(\d+|\*)( *, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]|yarn|k8s://.+"
)
_HOST = r"(?:\[[\da-fA-F:.]+\]|[^][,/:;]+)"
_HOSTS = re.compile(rf"spark://({_HOST}:\d{{1,5}}(?:,{_HOST}:\d{{1,5}})*)")
_CONNECT = re.compile(rf"sc://({_HOST})(?::(\d{{1,5}}))?(?:/.*)?")
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""With one of them gRPC goes ways that a socket does not."""


def check_master(master: str) -> None:
    """Raises `StudyError` for a name that is no master, and where none of its hosts answers."""
    standalone, connect = _HOSTS.fullmatch(master), _CONNECT.fullmatch(master)
    if standalone is not None:
        places = [each.rpartition(":")[::2] for each in standalone[1].split(",")]
    elif connect is not None:
        # What is missing to be a client is told first, by who imports it.
        if find_spec("grpc") is None or any(map(os.environ.get, _PROXIES)):
            return
        places = [(connect[1], connect[2] or str(_CONNECT_PORT))]
    elif _LOCAL.fullmatch(master):
        return
    else:
        raise StudyError(
            f"--master {master}: is no master of Spark; write local[4], spark://HOST:7077, yarn, "
            "k8s://URL or sc://HOST:15002"
        )
    lacking = [_lacks(host, int(port)) for host, port in places]
    if None not in lacking:
        raise StudyError(f"--master {master}: {lacking[0]}")


def _lacks(host: str, port: int) -> str | None:
    """Why there is no connection; None where there is one."""
    try:
        with socket.create_connection((host.strip("[]"), port), WITHIN_S):
            return None
    except OSError as error:
        return error.strerror or str(error)
