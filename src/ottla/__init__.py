"""Ottla: a small, exact, embeddable reference broker for Kafka's idempotent produce.

The names a user needs are resolved on first use, so `import ottla` costs next
to nothing and works where the broker's dependencies are not installed (on a
Spark executor, for example).
"""

import importlib as _importlib
import pathlib as _pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.cluster.cluster import Cluster
    from ottla.broker.cluster.faults import DiskFault
    from ottla.broker.errors import OttlaError
    from ottla.broker.topics.topic import Topic

__all__ = ["Cluster", "DiskFault", "OttlaError", "Topic", "__version__"]

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "ottla.broker.cluster.cluster",
    "DiskFault": "ottla.broker.cluster.faults",
    "OttlaError": "ottla.broker.errors",
    "Topic": "ottla.broker.topics.topic",
}

# Links get lost on checkouts without symlink rights and in unpacked sdists; the packages
# then lie two folders up, where the real code is. An archive on the path has no links to lose.
_here = _pathlib.Path(__file__).resolve().parent
if not (_here / "broker").is_dir() and (_here.parents[1] / "broker").is_dir():
    __path__.append(str(_here.parents[1]))


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
