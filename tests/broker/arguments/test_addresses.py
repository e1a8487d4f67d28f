"""Hosts, ports and what clients are told: wildcards, IPv6, names, proxies.

A cluster that listened on all of a machine's addresses told clients to connect to 0.0.0.0; with
`""` its port on ::1 was another one than on 127.0.0.1; IPv6 stood without its brackets.
"""

import asyncio
import errno
import json
import socket
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import Cluster
from ottla.broker.arguments.addresses import AdvertisedAs, bare_host, join, split
from ottla.broker.client import Client
from ottla.broker.errors import ConfigError, UnusableAddressError
from ottla.broker.wire.ports import ReservedPort

NODES = (1, 2, 3)


def has_ipv6():
    try:
        ReservedPort("::1", 0).close()
    except OSError:
        return False
    return True


def told(address):
    """Host and port of each node, as Metadata and DescribeCluster have them."""

    async def ask():
        client = await Client.connect(*address)
        try:
            metadata = await client.metadata()
            described = await client.call(
                "describe_cluster", 0, include_cluster_authorized_operations=False
            )
        finally:
            client.close()
        answers = [
            {each.node_id: (each.host, each.port) for each in metadata.brokers},
            {each.broker_id: (each.host, each.port) for each in described.brokers},
        ]
        assert answers[0] == answers[1]
        return answers[0]

    return asyncio.run(ask())


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "[::]"])
def test_a_wildcard_is_advertised_on_the_loopback_and_every_node_has_one_port(host):
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with Cluster(nodes=2, host=host) as cluster:
        loopback = "::1" if ":" in host else "127.0.0.1"
        assert {each for each, _ in cluster.addresses.values()} == {loopback}
        assert told(cluster.addresses[1]) == cluster.addresses
        assert told(("127.0.0.1", cluster.addresses[2][1])) == cluster.addresses
        assert cluster.bootstrap_servers == ",".join(map(join, cluster.addresses.values()))
        assert cluster.describe().nodes[1].address == join(cluster.addresses[1])


def test_ipv6_stands_in_brackets():
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with Cluster(nodes=1, host="[::1]") as cluster:
        host, port = cluster.addresses[1]
        assert (host, cluster.bootstrap_servers) == ("::1", f"[::1]:{port}")
        assert told((host, port)) == {1: ("::1", port)}


def test_a_name_listens_at_all_its_addresses_and_is_advertised_as_it_is():
    with Cluster(nodes=1, host="localhost") as cluster:
        (address,) = cluster.addresses.values()
        assert address[0] == "localhost"
        found = {each[4][0] for each in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)}
        for host in found if has_ipv6() else {"127.0.0.1"}:
            assert told((host, address[1])) == {1: address}


NOT_HERE = ["no-such-host.invalid", "192.0.2.1", "fd00::dead", "fe80::1%no-such-link", "fe80::1%lo"]


@pytest.mark.parametrize("host", NOT_HERE)
def test_a_host_that_is_not_there_is_named_at_the_start(host):
    """It was a bare `socket.gaierror`, or an address in which the zone was missing."""
    with pytest.raises(UnusableAddressError) as refused:
        Cluster(nodes=1, host=host).start()
    assert str(refused.value).startswith(f"host is {host!r}; ")
    assert isinstance(refused.value, OSError | ConfigError)
    assert refused.value.errno


def test_a_port_that_is_taken_is_named_at_the_start():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"^port is {port}; 127\.0\.0\.1:{port}: ") as refused:
            Cluster(nodes=1, port=port).start()
    assert (refused.value.errno, type(refused.value)) == (errno.EADDRINUSE, UnusableAddressError)


def links_of_this_machine():
    """Its addresses that hold on one link, each with the link's name."""
    try:
        rows = [row.split() for row in Path("/proc/net/if_inet6").read_text().splitlines()]
    except OSError:
        return []
    local = [(row[0], row[5]) for row in rows if row[3] == "20"]
    return [f"{IPv6Address(int(digits, 16))}%{link}" for digits, link in local]


@pytest.mark.skipif(not links_of_this_machine(), reason="no link-local address of IPv6")
def test_a_zone_is_part_of_an_address():
    """It was lost on the way, and the rest was no address: EINVAL."""
    host = links_of_this_machine()[0]
    with Cluster(nodes=1, host=host) as cluster:
        address = cluster.addresses[1]
        assert address[0] == host
        assert told(address) == {1: address}


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        *[("::ffff:127.0.0.1", "127.0.0.1"), ("[::ffff:7f00:1]", "127.0.0.1")],
        *[("0", "127.0.0.1"), ("0.0", "127.0.0.1"), ("::ffff:0.0.0.0", "127.0.0.1")],
    ],
)
def test_an_address_that_is_spelt_oddly_is_the_usual_one(host, plain):
    """`::ffff:127.0.0.1` was EINVAL; `0` was advertised, where no client could connect to it."""
    with Cluster(nodes=1, host=host) as cluster:
        assert cluster.addresses[1][0] == plain
        assert told(cluster.addresses[1]) == cluster.addresses


@pytest.mark.parametrize("host", ["224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:224.0.0.1"])
def test_an_address_of_many_machines_is_none_to_listen_at(host):
    """The system let a node listen there, and clients were told of it."""
    with pytest.raises(ConfigError, match=rf"^host is '{host}'; it stands for many machines"):
        Cluster(nodes=1, host=host)


NO_NAMES = ["\udcff", "a" * 40_000, "a." * 200, "a\0b", "a\nb", "a\x7fb", "a\u2028b", "ü" * 130]
"""Neither a resolver nor an answer can take them."""


NO_ADDRESSES = [
    *["::::", "1:2:3:::4:5", ":::1", "g::1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "fe80::1%"],
    *["::ffff:999.1.1.1", "12345::1", "[h]", "[1.2.3.4]", "[]", "[::1", "::1]"],
    *["999.1.1.1", "1.2.3.256", "1.2.3.04", "1.2.3.4.5", "999.1.1.1.", "1.99999999"],
]
"""They look like addresses, and are none: no resolver would take them for a name."""


@pytest.mark.parametrize("host", NO_ADDRESSES)
def test_what_looks_like_an_address_and_is_none_is_refused(host):
    with pytest.raises(ConfigError, match="host is"):
        Cluster(nodes=1, host=host)
    bracketed = f"[{host}]:9092" if ":" in host and not set("[]") & set(host) else f"{host}:9092"
    for told in (host, bracketed):
        with pytest.raises(ConfigError, match="advertised"):
            AdvertisedAs(told, NODES)


@pytest.mark.parametrize(
    "host", ["fe80::1%eth0", "::1", "fd00::1", "::ffff:1.2.3.4", "1.2.3.4", "127.1", "1a.2", "h.1a"]
)
def test_what_is_an_address_or_a_name_stays_one(host):
    assert split(host) == (host, None)
    assert split(join((host, 1))) == (host, 1)
    Cluster(nodes=1, host=host)


class Unprintable:
    def __repr__(self):
        raise RuntimeError("not for your eyes")


@pytest.mark.parametrize(
    "host", ["localhost:9092", "127.0.0.1:0", "a b", "kafka://h", "a,b", 5, *NO_NAMES], ids=ascii
)
def test_what_is_no_host_is_refused(host):
    with pytest.raises(ConfigError, match="host is") as refused:
        Cluster(nodes=1, host=host)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 150


def test_one_advertised_address_counts_up_and_several_are_each_nodes_own():
    with Cluster(nodes=2, advertised="proxy.example:19092") as cluster:
        proxied = {1: ("proxy.example", 19092), 2: ("proxy.example", 19093)}
        assert told(cluster.addresses[2]) == proxied
        assert cluster.bootstrap_servers == "proxy.example:19092,proxy.example:19093"
        cluster.kill(2)
        cluster.restart(2)
        assert told(cluster.addresses[2]) == proxied
    with Cluster(nodes=2, advertised=["[fd00::1]:1", "b"]) as cluster:
        port = cluster.addresses[2][1]
        assert cluster.bootstrap_servers == f"[fd00::1]:1,b:{port}"
    with Cluster(nodes=2, advertised={2: "toxic:21000"}) as cluster:
        assert told(cluster.addresses[1]) == {1: cluster.addresses[1], 2: ("toxic", 21000)}


@pytest.mark.parametrize(
    "given",
    [
        *[
            "0",
            "[::0]:9092",
            "",
            "0.0.0.0",
            "[::]:9092",
            "::",
            ":9092",
            "h:",
            "h:0",
            "h:65535",
            "h:x",
            "h:70000",
        ],
        *["[::1", ["a", "b"], {4: "a"}, {1: 9092}, 9092, ["a", "b", 3], "a:1,b:2", "h:\u0661"],
        *[b"abc", {True: "a"}, Unprintable(), {1: Unprintable()}, {Unprintable(): "a"}],
        *["h:" + "9" * 5000, *NO_NAMES, [f"{NO_NAMES[0]}:1", "a", "b"]],
    ],
    ids=lambda each: ascii(each)[:40] if isinstance(each, str | bytes) else None,
)
def test_what_no_client_could_connect_to_is_refused(given):
    """A node that was advertised as a lone surrogate answered no Metadata request any more."""
    with pytest.raises(ConfigError, match="advertised") as refused:
        AdvertisedAs(given, NODES)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 150


@pytest.mark.slow
@given(st.sampled_from(["h", "1.2.3.4", "fd00::1", "a-b.c"]), st.integers(1, 65_000))
def test_what_is_joined_is_split_again(host, port):
    assert split(join((host, port))) == (host, port)
    as_told = AdvertisedAs(join((host, port)), NODES)
    assert [as_told.of(node, ("x", 1)) for node in NODES] == [(host, port + i) for i in range(3)]
    if ":" in host:
        assert bare_host(f"[{host}]") == host


def test_addresses_are_plain_values():
    with Cluster(nodes=1) as cluster:
        assert json.dumps(cluster.addresses)


TWICE = [
    ({"advertised": ["h:1"] * 3}, "nodes 1 and 2 are both h:1"),
    ({"advertised": ["h:1", "g:1", "H:1"]}, "nodes 1 and 3 are both H:1"),
    ({"advertised": {1: "[::1]:5", 3: "[::1]:5"}}, "nodes 1 and 3 are both [::1]:5"),
    ({"advertised": {1: "127.0.0.1:9093"}, "port": 9092}, "nodes 1 and 2 are both 127.0.0.1:9093"),
    (
        {"advertised": {3: "127.0.0.1:9092"}, "port": 9092, "host": "0.0.0.0"},
        "nodes 1 and 3 are both 127.0.0.1:9092",
    ),
]


@pytest.mark.parametrize(("settings", "told"), TWICE)
def test_each_node_is_advertised_with_an_address_of_its_own(settings, told):
    """Clients ask for a node by its address: two of them with one were both not led here."""
    with pytest.raises(ConfigError) as refused:
        Cluster(**settings)
    assert str(refused.value) == f"advertised: {told}; each needs an address of its own"


@pytest.mark.parametrize(
    "settings",
    [
        {"advertised": ["h"] * 3},
        {"advertised": ["h:1", "h:2", "h:3"]},
        {"advertised": "h:1"},
        {"advertised": {1: "127.0.0.1:9093", 2: "127.0.0.1:9092"}, "port": 9092},
    ],
)
def test_nodes_may_share_a_host_and_swap_ports(settings):
    Cluster(**settings)
