"""The options of the data source: read once, with each error in one line.

Spark passes all options as text, under names without case. Unknown options are refused: otherwise a
mistyped name would silently read everything from the start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from ottla.log.types import Offset

Offsets: TypeAlias = dict[str, dict[str, Offset]]
"""Topic → partition → offset, in the format of Spark's own Kafka source: partitions are text, as
JSON keys."""

EARLIEST: Literal["earliest"] = "earliest"
LATEST: Literal["latest"] = "latest"
FROM_EARLIEST, FROM_LATEST = -2, -1
"""Numbers that stand for them among offsets, as in Spark's own Kafka source."""
RECORDS, BATCHES = "records", "batches"
MAX_PORT = 65_535
PASSED_OVER = "failOnDataLoss=false goes on there"
"""What readers can do about records that are gone."""

Place: TypeAlias = Literal["earliest", "latest"] | Offsets


class SourceError(Exception):
    """A topic cannot be read as requested; the text is one line that says what to do about it."""


class DataLossError(SourceError):
    """Records that should have been read are gone."""


@dataclass(frozen=True)
class Asked:
    """The options of one `format("ottla")`."""

    topics: tuple[str, ...]
    bootstrap: tuple[tuple[str, int], ...] = ()
    """Addresses to begin with; empty for a folder."""
    path: str = ""
    """The data folder; empty for a cluster."""
    node: int = 1
    """The node whose log in the folder is read."""
    starting: Place = "earliest"
    ending: Place = "latest"
    rows: str = RECORDS
    headers: bool = False
    per_batch: int = 500_000
    """Most records of a micro-batch."""
    per_partition: int = 100_000
    """Most records that one task reads."""
    strict: bool = True
    """Whether it is an error if records are gone."""
    timeout: float = 30.0
    """Seconds without progress after which a cluster is given up."""


_NAMES = {
    "topic": "topic",
    "bootstrap": "bootstrap",
    "path": "path",
    "node": "node",
    "startingoffsets": "startingOffsets",
    "endingoffsets": "endingOffsets",
    "rows": "rows",
    "includeheaders": "includeHeaders",
    "maxrecordsperbatch": "maxRecordsPerBatch",
    "maxrecordsperpartition": "maxRecordsPerPartition",
    "failondataloss": "failOnDataLoss",
    "timeout": "timeout",
}


def asked(options: Mapping[str, str], *, stream: bool | None = None) -> Asked:
    """The options as Spark passes them, with names without case. `stream`: for a stream or for a
    batch; None: not known yet. Raises `SourceError`."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in _NAMES:
            known = ", ".join(_NAMES.values())
            raise SourceError(f"there is no option {name}; there are {known}")
    if stream is False and "maxrecordsperbatch" in given:
        raise SourceError(
            "maxRecordsPerBatch is for streams: it bounds a micro-batch, and spark.read reads all; "
            "leave it out, or bound what one task reads with maxRecordsPerPartition"
        )
    if stream and "endingoffsets" in given:
        raise SourceError(
            "endingOffsets is for batches: a stream has no end; leave it out, or use spark.read"
        )
    _check_where(given)
    topics = tuple(each.strip() for each in given.get("topic", "").split(",") if each.strip())
    if not topics:
        raise SourceError("say what: topic=NAME, or several with commas between")
    return Asked(
        topics,
        addresses(given["bootstrap"]) if "bootstrap" in given else (),
        given.get("path", ""),
        _number(given, "node", 1),
        _place(given, "startingoffsets", EARLIEST, topics),
        _place(given, "endingoffsets", LATEST, topics),
        _one_of(given, "rows", (RECORDS, BATCHES)),
        _truth(given, "includeheaders", "false"),
        _number(given, "maxrecordsperbatch", Asked.per_batch),
        _number(given, "maxrecordsperpartition", Asked.per_partition),
        _truth(given, "failondataloss", "true"),
        float(_number(given, "timeout", int(Asked.timeout))),
    )


def _check_where(given: Mapping[str, str]) -> None:
    if ("bootstrap" in given) == ("path" in given):
        raise SourceError("say where: either bootstrap=HOST:PORT, or path=FOLDER")
    if "node" in given and "bootstrap" in given:
        raise SourceError(
            "node is for path=FOLDER: it says whose log is read; a cluster is read where its "
            "leaders are, so leave it out"
        )


def addresses(text: str) -> tuple[tuple[str, int], ...]:
    """`HOST:PORT`, or several separated by commas. Raises `SourceError`."""
    found = []
    for each in text.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not (_is_host(host) and colon and port.isdecimal() and 0 < int(port) <= MAX_PORT):
            raise SourceError(f"{each.strip()!r} is not an address; write HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    return tuple(found)


def _is_host(text: str) -> bool:
    """Whether it can be a host name: no label is empty or longer than 63 letters."""
    try:
        return bool(text.encode("idna"))
    except UnicodeError:
        return False


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise SourceError(f"{_NAMES[name]}={text}: write a number from 1 on")
    return int(text)


def _one_of(given: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    text = given.get(name, values[0]).lower()
    if text not in values:
        raise SourceError(f"{_NAMES[name]}={text}: one of {', '.join(values)}")
    return text


def _truth(given: Mapping[str, str], name: str, default: str) -> bool:
    first, second = default, "true" if default == "false" else "false"
    return _one_of(given, name, (first, second)) == "true"


def _place(given: Mapping[str, str], name: str, default: str, topics: tuple[str, ...]) -> Place:
    """A place in every partition. Whether JSON names all partitions is checked when they are
    known."""
    text = given.get(name, default).strip()
    if text.lower() in {EARLIEST, LATEST}:
        if name == "endingoffsets" and text.lower() == EARLIEST:
            raise SourceError(f"{_NAMES[name]}={text}: nothing ends there")
        return cast(Place, text.lower())
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not _is_offsets(found):
        raise SourceError(
            f"{_NAMES[name]}={text}: write earliest, latest or JSON "
            '{"TOPIC": {"PARTITION": OFFSET}}'
        )
    for topic in found:
        if topic not in topics:
            raise SourceError(f"{_NAMES[name]} names {topic}, which is not read")
    return cast(Offsets, found)


def _is_offsets(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(partitions, dict)
        and all(
            partition.isdecimal() and type(offset) is int and offset >= FROM_EARLIEST
            for partition, offset in partitions.items()
        )
        for partitions in found.values()
    )
