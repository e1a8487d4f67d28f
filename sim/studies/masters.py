"""Whether Spark's master is valid and answers, checked before Spark tries it.

Spark takes a minute to give up on a standalone cluster, many minutes on Spark Connect. An invalid
master ends its JVM with a traceback on standard error, which no exception here prevents.
"""

from __future__ import annotations

import os
import re
import socket
from importlib.util import find_spec

from ottla.sim.studies.study import StudyError

WITHIN_S = 5.0
"""How many seconds a host is waited for."""
_CONNECT_PORT = 15_002
_LOCAL = re.compile(
    r"local(\[(\d+|\*)( *, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]|yarn|k8s://.+"
)
_HOST = r"(?:\[[\da-fA-F:.]+\]|[^][,/:;]+)"
_HOSTS = re.compile(rf"spark://({_HOST}:\d{{1,5}}(?:,{_HOST}:\d{{1,5}})*)")
_CONNECT = re.compile(rf"sc://({_HOST})(?::(\d{{1,5}}))?(?:/.*)?")
_CORES = re.compile(r"local(?:-cluster\[\s*(?P<workers>\d+)\s*,|\[)\s*(?P<cores>\d+)")
_ENVIRONMENT = ("MASTER", "SPARK_REMOTE")
"""Where PySpark looks for a master, and for a server."""
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""With one of these gRPC uses other routes than a socket."""


def is_named(master: str | None) -> bool:
    """Whether the command or the environment says where Spark is."""
    return master is not None or any(each in os.environ for each in _ENVIRONMENT)


def check(master: str | None) -> None:
    """Raises `StudyError` in two cases: Spark is named both as a master and as a server of Spark
    Connect, by `--master` or in the environment, which PySpark refuses; or what is named is no
    valid master, or does not answer."""
    said = {each: f"{each}={os.environ[each]}" for each in _ENVIRONMENT if each in os.environ}
    if master is not None:
        kind = "SPARK_REMOTE" if master.startswith("sc://") else "MASTER"
        said[kind] = f"--master {master}"
    if len(said) > 1:
        one, other = sorted(said.values())
        raise StudyError(f"{one} and {other}: Spark is to be found one way; leave one of them out")
    remote = os.environ.get("SPARK_REMOTE", "")
    if master is not None:
        _check(master, f"--master {master}")
    elif _CONNECT.fullmatch(remote):
        _check(remote, f"SPARK_REMOTE={remote}")


def _check(master: str, said: str) -> None:
    standalone, connect = _HOSTS.fullmatch(master), _CONNECT.fullmatch(master)
    if standalone is not None:
        places = [each.rpartition(":")[::2] for each in standalone[1].split(",")]
    elif connect is not None:
        # What is missing for a client is reported first, by the code that imports it.
        if find_spec("grpc") is None or any(map(os.environ.get, _PROXIES)):
            return
        places = [(connect[1], connect[2] or str(_CONNECT_PORT))]
    elif _LOCAL.fullmatch(master):
        return
    else:
        raise StudyError(
            f"{said}: is not a master of Spark; write local[4], spark://HOST:7077, yarn, "
            "k8s://URL or sc://HOST:15002"
        )
    lacking = [_lacks(host, int(port)) for host, port in places]
    if None not in lacking:
        raise StudyError(f"{said}: {lacking[0]}")


def _lacks(host: str, port: int) -> str | None:
    """Why there is no connection; None: there is one."""
    try:
        with socket.create_connection((host.strip("[]"), port), WITHIN_S):
            return None
    except UnicodeError:  # no host name can have such a label
        return f"{host} is not an address"
    except OSError as error:
        return error.strerror or str(error)


def cores(master: str) -> int:
    """How many cores a master on this machine has; `local-cluster`: workers, and cores of each.

    >>> cores("local"), cores("local[3]"), cores("local[2,4]"), cores("local-cluster[3,2,1024]")
    (1, 3, 2, 6)
    """
    told = _CORES.match(master)
    if told is not None:
        return int(told["cores"]) * int(told["workers"] or 1)
    return 1 if master == "local" else os.cpu_count() or 1
