"""Options of `ottla up`, and the checks of those that are settings of the cluster.

What a value may be is the setting's own business; here stands what one line of help says of it, and
what makes no sense only together with the number of nodes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ottla.commands.usage import UsageError, folder_option

if TYPE_CHECKING:
    from ottla.broker.config import FlushPolicy

SHORTEST_TIMEOUT_MS, LONGEST_TIMEOUT_MS = 100, 600_000
"""Two heartbeats of 50 ms; ten minutes."""

MAX_PORT = 65_535

_OPTIONS = {
    "without_nodes": "--without-node",
    "a data_dir": "a --data-dir",
    "data_dir": "--data-dir",
    "host": "--host",
    "port": "--port",
    "advertised": "--advertised",
    "profile": "--profile",
    "election_timeout_ms": "--election-timeout-ms",
}
"""Options by what stands for them in Python, where it begins a sentence or is another's word."""
_ARGUMENT = re.compile(rf"^({'|'.join(_OPTIONS)})\b|\ba data_dir\b")

Nodes = Annotated[int, typer.Option(min=1, max=7, help="Brokers to run.")]
Port = Annotated[
    int,
    typer.Option(min=0, max=MAX_PORT, help="Port of node 1; node i has port + i - 1. 0: free."),
]
Profile = Annotated[
    str, typer.Option(help="Whose rules idempotent producers meet: a profile, such as reference.")
]
DataDir = Annotated[
    Path | None,
    folder_option("Keep the logs in this folder; without it they live in memory.", "PATH"),
]
WithoutNode = Annotated[
    list[int] | None,
    typer.Option(metavar="N", help="Start without this node's bad folder. May be repeated."),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME:PARTITIONS:RF", help="Create this topic. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Say `ready` as one JSON object.")]
AutoCreate = Annotated[
    bool, typer.Option("--auto-create/--no-auto-create", help="Create topics on first use.")
]
Flush = Annotated[
    str, typer.Option(metavar="POLICY", help="When logs are synced: each-turn, interval or off.")
]
MinInsyncReplicas = Annotated[
    int, typer.Option(min=1, help="With acks=all: replicas in sync, or writes are refused.")
]
ElectionTimeoutMs = Annotated[
    int,
    typer.Option(
        min=SHORTEST_TIMEOUT_MS,
        max=LONGEST_TIMEOUT_MS,
        help="Silence of a leader, in ms, after which another is elected.",
    ),
]
DefaultPartitions = Annotated[
    int, typer.Option(min=1, help="Partitions of a topic whose creator gives no number.")
]


Host = Annotated[
    str, typer.Option(help="Where to listen; 0.0.0.0 or :: is all of the machine's addresses.")
]
Advertised = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST[:PORT]",
        help="What clients are told to connect to, if it is not where the nodes listen; node i "
        "has PORT + i - 1. Repeated: one for each node.",
    ),
]


def one_or_each(advertised: list[str] | None) -> str | list[str] | None:
    """What was typed, once or several times, as the cluster takes it."""
    return advertised[0] if advertised and len(advertised) == 1 else advertised or None


def as_options(told: str) -> str:
    """What a cluster says of its arguments, said of the options that they were typed as."""
    return _ARGUMENT.sub(lambda found: _OPTIONS[found[0]], told)


class Chosen(NamedTuple):
    """The values as typed."""

    flush: str
    min_insync_replicas: int
    election_timeout_ms: int
    default_partitions: int


class Meant(NamedTuple):
    """The values as the cluster takes them, by the names of its settings."""

    flush: FlushPolicy
    min_insync_replicas: int
    election_timeout_ms: int
    default_partitions: int


def meant(chosen: Chosen, nodes: int) -> Meant:
    """Check what was typed for a cluster of so many nodes. Raises `UsageError`."""
    from ottla.broker.arguments.spelling import shown
    from ottla.broker.config import ClusterConfig, FlushPolicy

    policies = [each.value for each in FlushPolicy]
    if chosen.flush not in policies:
        raise UsageError(f"--flush {shown(chosen.flush)}: there are {', '.join(policies)}")
    if chosen.min_insync_replicas > nodes:
        raise UsageError(
            f"--min-insync-replicas {chosen.min_insync_replicas}: there are {nodes} nodes, and no "
            f"partition can have that many replicas; lower it, or raise --nodes"
        )
    most = ClusterConfig().max_partitions_per_topic
    if chosen.default_partitions > most:
        raise UsageError(
            f"--default-partitions {chosen.default_partitions}: a topic has at most {most}"
        )
    return Meant(FlushPolicy(chosen.flush), *chosen[1:])
