"""Options of `ottla up`, and the checks of those that are settings of the cluster.

`ClusterConfig` checks each value by itself. This module has the line of help for each option, and
the checks that also need the number of nodes.
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
"""The shortest is two heartbeats of 50 ms; the longest is ten minutes."""

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
"""Options by the name of their argument in Python, for messages that begin with that name."""
_ARGUMENT = re.compile(rf"^({'|'.join(_OPTIONS)})\b|\ba data_dir\b")

Nodes = Annotated[int, typer.Option(min=1, max=7, help="Brokers to run.")]
Port = Annotated[
    int,
    typer.Option(min=0, max=MAX_PORT, help="Port of node 1; node i has port + i - 1. 0: free."),
]
Profile = Annotated[str, typer.Option(help="Whose behaviour: a profile, or its alias.")]
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
    int, typer.Option(min=1, help="With acks=all: fewer replicas in sync refuse writes.")
]
ElectionTimeoutMs = Annotated[
    int,
    typer.Option(
        min=SHORTEST_TIMEOUT_MS,
        max=LONGEST_TIMEOUT_MS,
        help="After this silence of a leader, in ms, followers elect another.",
    ),
]
DefaultPartitions = Annotated[
    int, typer.Option(min=1, help="Partitions of a topic whose creator gives no number.")
]


Host = Annotated[
    str, typer.Option(help="Where to listen; 0.0.0.0 or :: means all addresses of this machine.")
]
Advertised = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST[:PORT]",
        help="Where clients connect, if it is not where the nodes listen; node i has "
        "PORT + i - 1. May be repeated, once for each node.",
    ),
]


def one_or_each(advertised: list[str] | None) -> str | list[str] | None:
    """The option's values in the form that the cluster takes: a text if there is one, or a list."""
    return advertised[0] if advertised and len(advertised) == 1 else advertised or None


def as_options(told: str) -> str:
    """A message of the cluster about its arguments, with the names of the options instead."""
    return _ARGUMENT.sub(lambda found: _OPTIONS[found[0]], told)


class Chosen(NamedTuple):
    """The values as typed."""

    flush: str
    min_insync_replicas: int
    election_timeout_ms: int
    default_partitions: int


class Meant(NamedTuple):
    """The values in the form that the cluster takes, by the names of its settings."""

    flush: FlushPolicy
    min_insync_replicas: int
    election_timeout_ms: int
    default_partitions: int


def meant(chosen: Chosen, nodes: int) -> Meant:
    """Check the values for a cluster with this number of nodes. Raises `UsageError`."""
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
