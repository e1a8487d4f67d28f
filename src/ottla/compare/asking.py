"""Reads what a step asks: a request in short or in full, bytes, a wait, or an act.

Versions and fields that an API does not have are refused here; the rest is found when the request
is built (`ottla.compare.loading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.broker.arguments.spelling import no_such, shown
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import known_versions
from ottla.compare.batches import LARGEST_VALUE
from ottla.compare.case import ACTS, FAULTS, MOST_NODES, Act, Raw, Request, Wait
from ottla.compare.errors import CaseError
from ottla.compare.shorthand import SHORTHANDS, records
from ottla.compare.tables import Table

LONGEST_WAIT = 60_000
"""Milliseconds."""
_INT16 = (-(1 << 15), (1 << 15) - 1)


def read_ask(told: Table) -> Request | Raw | Wait | Act:
    """The one thing that a step sends, does or waits for. Raises `CaseError`."""
    words = (*SHORTHANDS, "request", "raw", "text", "wait", *ACTS)
    given = [each for each in words if each in told.names]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise CaseError(
            f"{told.file}: {told.path} has {found}; one of {', '.join(words)} is wanted"
        )
    (word,) = given
    if word == "raw":
        return Raw(told.hexadecimal("raw"))
    if word == "text":
        return Raw(told.text("text").encode())
    if word == "wait":
        return Wait(told.within("wait", 1, LONGEST_WAIT))
    if word in ACTS:
        return _act(told, word)
    inside = told.table(word, told.anything(word))
    return _any_request(inside) if word == "request" else _short_request(word, inside)


def _act(told: Table, word: str) -> Act:
    if word in FAULTS:
        return Act(word, (told.within(word, 1, MOST_NODES),))
    nodes = read_nodes(told, word)
    if not nodes:
        raise told.wrong(word, "is empty; numbers of nodes are wanted")
    return Act(word, nodes)


def read_nodes(told: Table, key: str) -> tuple[int, ...]:
    """The numbers of nodes in a list, each once. Raises `CaseError`."""
    nodes = told.take(key, list, "a list of numbers of nodes")
    for number, each in enumerate(nodes):
        right = isinstance(each, int) and not isinstance(each, bool) and 1 <= each <= MOST_NODES
        if not right or each in nodes[:number]:
            wanted = f"numbers from 1 to {MOST_NODES} are wanted, each once"
            raise told.wrong(key, f"has {shown(each)}; {wanted}")
    return tuple(nodes)


def _frame_options(inside: Table) -> dict[str, Any]:
    null_id = inside.truth("null_client_id")
    client_id = None if null_id else inside.text("client_id", "ottla")
    if client_id is not None and len(client_id.encode()) > _INT16[1]:
        raise inside.wrong("client_id", f"is too long; at most {_INT16[1]} bytes are possible")
    return {
        "version": inside.within("version", *_INT16, None),
        "unserved": inside.truth("unserved"),
        "answered_in": inside.within("answered_in", *_INT16, None),
        "client_id": client_id,
        "cut": inside.within("cut_frame", 0, LARGEST_VALUE, 0),
        "tail": inside.hexadecimal("tail_frame"),
    }


def _short_request(word: str, inside: Table) -> Request:
    api, read = SHORTHANDS[word]
    options = _frame_options(inside)
    _check_version(inside, api, options)
    return Request(api, API_KEYS[api], fields=read(inside), **options)


def _any_request(inside: Table) -> Request:
    """`request`: any API by its name with `fields`, or by a number, with the bytes of a body."""
    options = _frame_options(inside)
    body = inside.hexadecimal("body") if "body" in inside.names else None
    if "key" in inside.names:
        key = inside.within("key", *_INT16)
        inside.done()
        if options["version"] is None:
            raise inside.wrong("version", "is missing; a key has no usual version")
        return Request(str(key), key, fields={}, body=body or b"", **options)
    api = inside.text("api")
    if api not in API_KEYS:
        raise inside.wrong("api", f"is {no_such(api, API_KEYS, all_of_them=True)}")
    if body is None:
        _check_version(inside, api, options)
    given = inside.anything("fields", {})
    inside.table("fields", given)
    fields = _with_records(inside, "fields", given)
    inside.done()
    return Request(api, API_KEYS[api], fields=fields, body=body, **options)


def _with_records(inside: Table, path: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_with_records(inside, f"{path}[{n}]", each) for n, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        key: records(inside.table(f"{path}.{key}", each))
        if key == "records"
        else _with_records(inside, f"{path}.{key}", each)
        for key, each in value.items()
    }


def _check_version(inside: Table, api: str, options: Mapping[str, Any]) -> None:
    known, version = known_versions(API_KEYS[api]), options["version"]
    if version is not None and version not in known:
        possible = f"{known[0]} to {known[-1]} are possible, or a request with a body"
        raise inside.wrong("version", f"is {version}; of {api} {possible}")
