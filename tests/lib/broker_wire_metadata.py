"""Metadata requests, as the tests of the wire ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from ottla.broker.client import Client


def ask(
    client: Client,
    topics: Iterable[str] | None,
    version: int = 12,
    *,
    create: bool = False,
    ids: Sequence[bytes] = (),
) -> asyncio.Future[Any]:
    """About topics by name and by id; all of them with None."""
    named: list[dict[str, Any]] | None = None
    if topics is not None:
        named = [{"topic_id": bytes(16), "name": name} for name in topics]
        named += [{"topic_id": each, "name": None} for each in ids]
    return client.send(
        "metadata",
        version,
        topics=named,
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
