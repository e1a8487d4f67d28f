"""The codec adapter: headers, tags, builders, lazy imports, and what it keeps from kio.

The table of APIs is checked against kio's schemas here, and the document made from it. One test
starts a process of its own, to see what a broker imports.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.wire import codec, routes
from ottla.broker.wire.api import table
from ottla.broker.wire.requests import ZERO_ID
from pages_apis import apis_markdown

APIS = Path(__file__).parents[3] / "docs" / "reference" / "apis.md"
SERVED = [(row, v) for row in table.TABLE for v in range(row.served[0], row.served[1] + 1)]


def test_the_api_matrix_in_the_docs_is_the_table():
    if os.environ.get("OTTLA_REWRITE"):
        APIS.write_text(apis_markdown(), encoding="utf-8")
    assert APIS.read_text(encoding="utf-8") == apis_markdown()


@pytest.mark.parametrize(("row", "version"), SERVED, ids=lambda x: str(getattr(x, "name", x)))
def test_every_served_version_is_in_the_codec_and_as_flexible_as_the_table_says(row, version):
    request = codec.request_schema(row.key, version)
    response = codec.response_schema(row.key, version)
    assert request.header_tags is (version >= row.flexible_from)
    tagged = version >= row.flexible_from and row.name != "ApiVersions"
    assert response.header_tags is tagged


def snake_case(name):
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


@pytest.mark.parametrize("row", table.TABLE, ids=lambda row: row.name)
def test_the_table_is_sound(row):
    assert row.advertised[0] <= row.served[0] <= row.served[1] == row.advertised[1]
    assert codec.API_NAMES[row.key] == snake_case(row.name)
    assert row.module in {codec.API_NAMES[row.key], "no_groups"}
    assert callable(routes.handler(row.key))
    assert not table.serves(row.key, row.served[0] - 1)
    assert not table.serves(row.key, row.served[1] + 1)


@pytest.mark.parametrize("client_id", [None, "", "a client", "ü" * 40])
def test_a_header_is_read(client_id):
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    data = b"\0\x03\0\x09\0\0\0\x2a" + length.to_bytes(2, "big", signed=True) + name + b"rest"
    for view in (data, memoryview(bytearray(data)).toreadonly()):
        header = codec.read_header(view)
        assert header == (3, 9, 42, client_id, 10 + len(name))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\x03\0\x09\0\0\0\x2a\0",
        b"\0\x03\0\x09\0\0\0\x2a\0\x05abc",
    ],
    ids=["empty", "cut in the length", "cut in the name"],
)
def test_a_broken_header_is_a_frame_error(data):
    with pytest.raises(FrameError):
        codec.read_header(data)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"\0", 1),
        (b"\x01\x05\x02ab", 5),
        (b"\x02\x00\x00\x80\x01\x01z", 7),
    ],
)
def test_tags_are_stepped_over(data, end):
    assert codec.skip_tags(data + b"more", 0) == end


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\x05\x09ab", b"\xff" * 6, b"\x81"])
def test_broken_tags_are_a_frame_error(data):
    with pytest.raises(FrameError):
        codec.skip_tags(data, 0)


@pytest.mark.parametrize("version", range(13))
def test_one_description_builds_every_version(version):
    schema = codec.response_schema(3, version)
    entity = schema.build(
        throttle_time=7,
        brokers=[{"node_id": 1, "host": "h", "port": 9, "rack": None}],
        cluster_id="c",
        controller_id=1,
        topics=[
            {
                "error_code": ErrorCode.NONE,
                "name": "t",
                "topic_id": bytes(range(16)),
                "partitions": (),
            }
        ],
        no_version_has_this=1,
    )
    read = schema.read(schema.write(entity), 0)
    assert read == entity
    assert read.topics[0].name == "t"
    if version >= 10:
        assert codec.id_bytes(read.topics[0].topic_id) == bytes(range(16))
        assert read.topics[0].topic_id == UUID(bytes=bytes(range(16)))
    if version >= 3:
        assert read.throttle_time == timedelta(milliseconds=7)


def test_null_arrays_zero_ids_and_ready_entities_pass_through():
    schema = codec.request_schema(3, 12)
    none = schema.build(topics=None, include_topic_authorized_operations=False)
    assert none.topics is None
    named = schema.build(
        topics=[{"topic_id": ZERO_ID, "name": "t"}],
        include_topic_authorized_operations=False,
    )
    assert codec.id_bytes(named.topics[0].topic_id) == ZERO_ID
    again = schema.build(topics=named.topics, include_topic_authorized_operations=False)
    assert again == named


def test_times_are_milliseconds():
    schema = codec.response_schema(0, 9)
    one = {"index": 0, "error_code": ErrorCode.NONE, "base_offset": 1, "record_errors": ()}
    entity = schema.build(
        responses=[
            {
                "name": "t",
                "partition_responses": [
                    one | {"log_append_time": -1},
                    one | {"log_append_time": 1_700_000_000_123},
                ],
            }
        ],
        throttle_time=timedelta(0),
    )
    never, then = entity.responses[0].partition_responses
    assert never.log_append_time is None
    assert round(then.log_append_time.timestamp() * 1000) == 1_700_000_000_123


@pytest.mark.parametrize("row", table.TABLE, ids=lambda row: row.name)
def test_a_body_cut_short_is_a_frame_error(row):
    with pytest.raises(FrameError):
        codec.request_schema(row.key, row.served[1]).read(b"", 0)


@pytest.mark.slow
def test_a_broker_imports_neither_hypothesis_nor_schemas_it_does_not_need():
    code = (
        "import sys, ottla.broker.wire.server\n"
        "print('hypothesis' in sys.modules, 'ottla.broker.wire.api.fetch' in sys.modules)\n"
        "print(sum(name.startswith('kio.schema.') and name.count('.') > 3 for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert done[:2] == ["False", "False"]
    assert int(done[2]) <= 8, "only the header schemas that kio itself imports"


def test_hypothesis_is_where_it_was_after_the_import():
    assert sys.modules["hypothesis"] is not None
