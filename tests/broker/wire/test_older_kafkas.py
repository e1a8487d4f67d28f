"""What the profiles of older Kafkas do on a connection: versions that they do not serve."""

from __future__ import annotations

import pytest

from broker_wire import default_host, produce_frame, run
from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.api import table

OLDER = ("kafka-3.9", "kafka-2.8", "kafka-2.4")


@pytest.mark.parametrize("profile", OLDER)
def test_only_what_the_profile_has_is_advertised(profile):
    newest = profile_named(profile).newest

    async def test(wire):
        client = await wire.client()
        answer = await client.call("api_versions", 0)
        found = {each.api_key: each.max_version for each in answer.api_keys}
        for row in table.TABLE:
            last = newest.get(row.key, row.served[1])
            assert found.get(row.key, -1) == last, row.name

    run(test, default_host(profile=profile))


@pytest.mark.parametrize("profile", OLDER)
def test_a_newer_version_closes_the_connection(profile):
    last = profile_named(profile).newest[0]

    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame(last))
        await raw.frame()
        raw.write(produce_frame(last + 1))
        assert await raw.is_closed()

    run(test, default_host(profile=profile))
