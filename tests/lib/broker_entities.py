"""Plain values for entities of any of Kafka's schemas, for `Schema.build` of the codec."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.guard import nested_entity

INT = st.integers(-(2**31), 2**31 - 1)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": INT,
    "int64": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.binary(min_size=16, max_size=16),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": st.integers(0, 2**31 - 1),
    "datetime_i64": st.integers(-1, 10**12),
    "float64": st.floats(allow_nan=False),
    "timedelta_i64": st.integers(0, 2**31 - 1).map(lambda ms: timedelta(milliseconds=ms)),
}


def values_of(cls: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Plain values of an entity; tagged fields are left out, as in all that is answered."""
    return st.fixed_dictionaries(
        {each.name: value_of(each) for each in fields(cls) if "tag" not in each.metadata}
    )


def value_of(field: Any) -> st.SearchStrategy[Any]:
    """A plain value of one field."""
    nested, is_array = nested_entity(field.type)
    one = values_of(nested) if nested else PLAIN[field.metadata["kafka_type"]]
    if is_array or str(field.type).startswith("tuple"):
        return st.lists(one, max_size=3)
    return one
