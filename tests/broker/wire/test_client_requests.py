"""The raw client says what it accepts, and then it is as good as before.

`call("FindCoordinator")` was a KeyError, a field that was misspelt was dropped without a word. What
the node makes of a request that could be written is its own tests' business; here it lives.
"""

import asyncio
import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla import Cluster
from ottla.broker.errors import ConfigError
from ottla.testing import Client, Producer

ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 2**70, 1.5, math.nan, "", "x" * 300, "\ud800", b"\xff", [], [1], ["x"]]
    ),
    st.sampled_from([{}, {"name": 1}, [{"name": "t"}], [{}], [[]], object(), len, Producer(), {1}]),
    st.integers(),
    st.text(max_size=3),
    st.binary(max_size=3),
)
FIELDS = {
    "metadata": ("topics", "allow_auto_topic_creation", "include_topic_authorized_operations"),
    "produce": ("transactional_id", "acks", "timeout", "topic_data"),
    "fetch": ("max_wait", "min_bytes", "max_bytes", "topics", "forgotten_topics_data"),
    "create_topics": ("topics", "timeout", "validate_only"),
    "delete_topics": ("topics", "topic_names", "timeout"),
    "list_offsets": ("replica_id", "isolation_level", "topics"),
    "init_producer_id": ("transactional_id", "transaction_timeout", "producer_id"),
}


def connected(test):
    async def main():
        async with Cluster(nodes=1, topics=["t"]) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await test(client)
            assert cluster.describe().nodes[1].state == "running"
            client.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("NoSuchApi",), "api: there is no NoSuchApi; there are produce, fetch, list_offsets"),
        (("create_topic",), "api: there is no create_topic; did you mean create_topics?"),
        ((3,), "api is 3; a text is wanted"),
        (("metadata", 99), "version is 99; of metadata 0 to 13 are possible"),
        (("metadata", "9"), "version is '9'; a whole number is wanted"),
    ],
    ids=str,
)
def test_what_is_called_that_there_is_not(call, said):
    async def test(client):
        with pytest.raises(ConfigError) as refused:
            await client.call(*call)
        assert str(refused.value).startswith(said)
        assert (await client.metadata(["t"])).topics[0].error_code == 0

    connected(test)


@pytest.mark.parametrize("name", ["Metadata", "metadata", "METADATA"])
def test_an_api_is_named_as_kafka_does_or_as_the_codec_does(name):
    async def test(client):
        assert (await client.call(name, 4, topics=None, allow_auto_topic_creation=False)).topics

    connected(test)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"topic": None}, "metadata has no field topic; did you mean topics?"),
        ({"topics": [{"nmae": "t"}]}, "metadata has no field nmae; did you mean name?"),
        (
            {"topics": 7},
            "metadata 13 of topics, allow_auto_topic_creation, include_topic_authorized",
        ),
        ({"topics": [{"name": 7}]}, "metadata 13 of topics, "),
    ],
    ids=str,
)
def test_a_field_that_does_not_fit_is_named_or_those_that_there_are(fields, said):
    async def test(client):
        others = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
        with pytest.raises(ConfigError) as refused:
            client.send("metadata", 13, **{**others, **fields})
        assert str(refused.value).startswith(said)

    connected(test)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda client: client.metadata("orders"), "topics is 'orders'; a list of names is wanted"),
        (lambda client: client.metadata(5), "topics is 5; a list of names is wanted"),
        (lambda client: client.metadata([b"t"]), "topics[0] is b't'; a text is wanted"),
        (lambda client: client.produce(b"t", 0, [b"x"]), "topic is b't'; a text is wanted"),
        (lambda client: client.fetch(b"t", 0, 0), "topics[0].topic is b't'; a text is wanted"),
        (lambda client: client.list_offset(b"t", 0), "topics[0].name is b't'; a text is wanted"),
        (
            lambda client: client.call("delete_topics", 5, topic_names="orders", timeout=0),
            "topic_names is 'orders'; a list is wanted",
        ),
        (
            lambda client: client.call("metadata", 4, topics={"name": "t"}),
            "topics is {'name': 't'}; a list is wanted",
        ),
    ],
)
def test_a_text_is_no_list_of_letters_and_bytes_are_no_text(call, said):
    """`metadata("orders")` asked for six topics of one letter each."""

    async def test(client):
        with pytest.raises(ConfigError) as refused:
            await call(client)
        assert str(refused.value).startswith(said)
        assert len((await client.metadata(("t",))).topics) == 1
        assert not (await client.metadata([])).topics

    connected(test)


def test_a_field_of_another_version_may_stand_anywhere():
    async def test(client):
        await client.call("metadata", 1, topics=None, allow_auto_topic_creation=False)

    connected(test)


def refused(call, *arguments, **named):
    """Whether this was refused as documented; what else is raised gets out."""
    try:
        return call(*arguments, **named)
    except ConfigError:
        return None


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_a_request_is_made_of_the_client_and_the_node_live(data):
    async def test(client):
        api = data.draw(st.sampled_from(list(FIELDS)))
        names = data.draw(st.sets(st.sampled_from(FIELDS[api]), min_size=1))
        version = data.draw(st.sampled_from([None, None, None, 2, 4, 7]))
        fields = {name: data.draw(ODD) for name in sorted(names)}
        sent = refused(client.send, api, version, **fields)
        if sent is not None and not client.closed.done():
            await asyncio.wait(
                [sent, client.closed], return_when=asyncio.FIRST_COMPLETED, timeout=2
            )

    connected(test)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ODD, st.sampled_from(["topic", "partition", "values", "producer", "acks", "timeout_ms"]))
def test_whatever_is_produced(value, odd):
    async def test(client):
        good = {"topic": "t", "partition": 0, "values": [b"x"]}
        with suppress(ConfigError, ConnectionResetError, TimeoutError):
            await asyncio.wait_for(client.produce(**{**good, odd: value}), 2)

    connected(test)


@pytest.mark.parametrize("address", [(7, 9092), ("127.0.0.1", "9092"), ("127.0.0.1", 70_000)])
def test_an_address_is_a_host_and_a_port(address):
    async def main():
        with pytest.raises(ConfigError):
            await Client.connect(*address)

    asyncio.run(main())


def endless() -> dict[str, object]:
    found: list[object] = []
    found.append(found)
    named: dict[str, object] = {}
    named["topics"] = [named]
    return {"a list in itself": found, "an entity in itself": [named]}


ENDLESS: dict[str, object] = endless() | {
    "a range": range(10**12),
    "a long range": range(2**63 - 1),
    "an iterator": iter([]),
}


@pytest.mark.parametrize("topics", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("api", ["metadata", "create_topics", "fetch"])
def test_a_list_without_an_end_is_refused_at_once(api, topics):
    """A list with itself for a member was looked through for ever; a long range filled memory."""

    async def test(client):
        with pytest.raises(ConfigError):
            await asyncio.wait_for(client.call(api, topics=topics), 20)
        assert (await client.metadata(["t"])).topics[0].error_code == 0

    connected(test)
