"""Malformed answers against the raw client, in a process of its own: it lives and stays small."""

import asyncio

import pytest

from fuzz_server import serve


def judge(connections: int, seed: int) -> None:
    seen = asyncio.run(serve(connections, seed))
    assert seen["grown"] < 100 << 20
    assert seen["answer"] > connections // 4
    assert seen["FrameError"] > connections // 4


@pytest.mark.slow
def test_malformed_answers_end_no_client():
    judge(60, seed=1)


@pytest.mark.slow
def test_many_malformed_answers_end_no_client():
    judge(2_000, seed=2)
