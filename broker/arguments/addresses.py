"""Hosts and ports as people write them: what to listen on, and what to tell clients.

A node *listens* on `host` and a port of its own. It is *advertised*, in Metadata and in
`bootstrap_servers`, at the address where clients find it. The two are the same unless `advertised`
says otherwise, for example behind a proxy or in a container. A client cannot connect to a wildcard
(`""`, `0.0.0.0`, `::`). So a node that listens on one is advertised on the loopback.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from typing import TypeAlias

from ottla.broker.arguments.arguments import as_whole, is_a, reading, text
from ottla.broker.arguments.spelling import printable, shown
from ottla.broker.errors import ConfigError
from ottla.raft.types import NodeId

Address: TypeAlias = tuple[str, int]
Advertised: TypeAlias = str | Sequence[str] | Mapping[NodeId, str]
"""`HOST`, or `HOST:PORT` of node 1 (node *i* has `PORT + i - 1`). Or one `HOST:PORT` per node."""

LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it listens there
"""Hosts that stand for all addresses of this machine, each with its loopback address."""
IPV4_LABELS = 4
MAX_PORT = 65_535
MOST_DIGITS = 5
"""Of a port."""
LONGEST_HOST = 255
"""Bytes: the longest name that DNS allows. Not all clients can read an answer with a longer one."""


def is_host(name: str) -> bool:
    """Whether an answer to clients may name this host: it can be encoded, is short enough and
    printable, and if it looks like an address, it is a valid one."""
    sound = name.isprintable() and not any(each in name for each in "[] /,@")
    return sound and len(name.encode()) <= LONGEST_HOST and not _is_broken_address(name)


def _is_broken_address(name: str) -> bool:
    """Whether the host can only be meant as an address, and is not a valid one. A name has no
    colon, and its last label is not a number (RFC 3696). `127.1` is valid: the system reads it as
    an address."""
    try:
        if ":" in name:
            IPv6Address(name)
            return False
        labels = name.removesuffix(".").split(".")
        if len(labels) == 1 or not all(each.isascii() and each.isdecimal() for each in labels):
            return False
        if len(labels) == IPV4_LABELS:
            IPv4Address(".".join(labels))
        else:
            socket.inet_aton(".".join(labels))
    except (OSError, ValueError):
        return True
    return False


def bare_host(host: str) -> str:
    """A host without the brackets of IPv6. Raises `ConfigError` for what cannot be one."""
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if bracketed and ":" not in bare:
        raise ConfigError(f"host is {shown(host)}; only an IPv6 address has brackets")
    if any(each in bare for each in "[] /,@"):
        raise ConfigError(f"host is {shown(host)}; name one host, without a port")
    if bare.count(":") == 1:
        raise ConfigError(f"host is {shown(host)}; leave the port out, it is a setting of its own")
    return plain_host(bare)


def plain_host(host: str) -> str:
    """A host in its usual spelling. Wildcards (`0`, `::0`) become `0.0.0.0` or `::`. An IPv4
    address that is written as IPv6 becomes plain IPv4, because a socket for IPv6 only refuses it.
    All other hosts stay as they are.

    >>> plain_host("0"), plain_host("0:0::0"), plain_host("::ffff:127.0.0.1"), plain_host("h")
    ('0.0.0.0', '::', '127.0.0.1', 'h')
    """
    with suppress(ValueError):
        address = ip_address(host)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(IPv6Address(0)) if address == IPv6Address(0) else host
    with suppress(OSError, ValueError):
        if not any(socket.inet_aton(host)):
            return "0.0.0.0"  # noqa: S104 - all addresses were asked for
    return host


def is_group(host: str) -> bool:
    """Whether an address stands for many machines (multicast, broadcast). A client cannot connect
    to one, although some systems allow to listen on it."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_multicast or str(address) == "255.255.255.255"


def join(address: Address) -> str:
    """`host:port` as Kafka clients want it, IPv6 in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable(host: str) -> str:
    """The address at which clients on this machine reach a server that listens on `host`."""
    return LOOPBACKS.get(host, host)


def split(spelled: str) -> tuple[str, int | None]:
    """Host and port of `HOST`, `HOST:PORT`, `[HOST]:PORT`. Raises `ConfigError`."""
    host, port = spelled, ""
    if spelled.startswith("["):
        host, closed, rest = spelled[1:].partition("]")
        port = rest.removeprefix(":")
        sound = bool(closed) and ":" in host and (not rest or rest.startswith(":"))
    elif spelled.count(":") == 1:
        host, _, port = spelled.partition(":")
        sound = bool(port)
    else:
        sound = True
    if not sound or plain_host(host) in LOOPBACKS or not is_host(host):
        wanted = "write HOST or HOST:PORT that clients can reach"
        raise ConfigError(f"advertised as {shown(spelled)}; {wanted}")
    if not port:
        return host, None
    digits = port.isascii() and port.isdecimal() and len(port) <= MOST_DIGITS
    if not digits or not 0 < int(port) <= MAX_PORT:
        raise ConfigError(
            f"advertised as {shown(spelled)}; a port is a number from 1 to {MAX_PORT}"
        )
    return host, int(port)


class AdvertisedAs:
    """What each node is advertised as. Raises `ConfigError` for invalid addresses."""

    def __init__(self, given: Advertised | None, nodes: Sequence[NodeId]):
        self._told: dict[NodeId, tuple[str, int | None]] = {}
        if given is None:
            return
        if is_a(given, str):
            host, port = split(text("advertised", given))
            for place, node in enumerate(nodes):
                self._told[node] = host, None if port is None else _checked(given, port + place)
        else:
            self._tell_each(given, nodes)

    def _tell_each(self, given: object, nodes: Sequence[int]) -> None:
        if not isinstance(given, Mapping):
            if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
                wanted = "write HOST:PORT, or one for each node"
                raise ConfigError(f"advertised is {shown(given)}; {wanted}")
            with reading("advertised", given):
                if len(given) != len(nodes):
                    told = f"{len(given)} advertised addresses for {len(nodes)} nodes"
                    raise ConfigError(f"{told}; give one for each node")
                pairs = list(zip(nodes, islice(given, len(nodes)), strict=True))
        else:
            with reading("advertised", given):  # one more than there are nodes is none of them
                pairs = [(key, told) for key, told in islice(given.items(), len(nodes) + 1)]
        for key, told in pairs:
            node = as_whole(key)
            if node is None or node not in nodes:
                raise ConfigError(f"advertised: no node {shown(key)}; nodes are 1 to {len(nodes)}")
            if not is_a(told, str):
                raise ConfigError(f"node {node} is advertised as {shown(told)}; write HOST:PORT")
            self._told[node] = split(text("advertised", told))
        self.check({node: ("", 0) for node, (_, port) in self._told.items() if port})

    def of(self, node: NodeId, listening: Address) -> Address:
        """The address at which a node is advertised, if it listens at `listening`."""
        host, port = self._told.get(node, (listening[0], None))
        return reachable(host), listening[1] if port is None else port

    def check(self, listening: Mapping[NodeId, Address]) -> None:
        """Check that each node has an address of its own, because clients know a node by its
        address. Raises `ConfigError` if two have the same."""
        found: dict[Address, NodeId] = {}
        for node, address in listening.items():
            host, port = self.of(node, address)
            other = found.setdefault((host.casefold(), port), node)
            if other != node:
                told = f"advertised: nodes {other} and {node} are both {join((host, port))}"
                raise ConfigError(f"{printable(told)}; each needs an address of its own")


def _checked(spelled: str, port: int) -> int:
    if port > MAX_PORT:
        raise ConfigError(f"advertised as {shown(spelled)}: the last node would need port {port}")
    return port
