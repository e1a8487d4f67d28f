"""Every request that is served becomes the value that says the same, in each of its versions.

Whatever the codec reads: durations are microseconds, topic ids bytes, arrays collections; what a
version does not have is the value's default.
"""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_entities import values_of
from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import request_schema
from ottla.broker.wire.requests import ZERO_ID
from ottla.broker.wire.translation.reading import REQUESTS, translator

SERVED = [
    (row.key, version) for row in TABLE for version in range(row.served[0], row.served[1] + 1)
]


def assert_same(value, entity):
    for name in value._fields:
        kio_name = "index" if name == "partition" and not hasattr(entity, name) else name
        found = getattr(value, name)
        if not hasattr(entity, kio_name):
            assert found == value._field_defaults[name], f"{name} has a default"
            continue
        read = getattr(entity, kio_name)
        if isinstance(read, timedelta):
            assert found == read // timedelta(microseconds=1)
        elif isinstance(read, UUID) or name == "topic_id":
            assert found == (ZERO_ID if read is None else read.bytes)
        elif isinstance(read, tuple) and read and hasattr(read[0], "__type__"):
            assert len(found) == len(read)
            for each, of in zip(found, read, strict=True):
                assert_same(each, of)
        elif isinstance(read, tuple):
            assert list(found) == list(read)
        else:
            assert found == read


@pytest.mark.slow
@pytest.mark.parametrize(("key", "version"), SERVED)
@settings(max_examples=5)
@given(data=st.data())
def test_a_request_is_read_into_its_value(key, version, data):
    schema = request_schema(key, version)
    sent = schema.build(**data.draw(values_of(schema.cls)))
    entity = schema.read(schema.write(sent), 0)
    assert_same(translator(REQUESTS[key], schema.cls)(entity), entity)
