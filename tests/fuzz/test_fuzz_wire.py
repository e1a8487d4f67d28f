"""Hostile frames against a broker in a process of its own: it lives, stays small, serves others.

A million frames, about ten minutes on two quiet cores:

    .venv/bin/python tests/fuzz/run.py --frames 1000000 --seed 1
"""

import sys

import pytest

from fuzz_broker import hostile_frames, under_fire


@pytest.mark.slow
def test_a_few_thousand_hostile_frames_harm_nobody():
    report = under_fire(hostile_frames(seed=1, count=3_000))
    sys.stdout.write(f"{report}\n")
    assert report.outcome.sent == 3_000
    assert report.outcome.closed > 300
    assert report.outcome.answered > 1_000
    assert report.bystander["rounds"] > 10


@pytest.mark.slow
def test_a_hundred_thousand_hostile_frames_harm_nobody():
    report = under_fire(hostile_frames(seed=2, count=100_000))
    sys.stdout.write(f"{report}\n")
    assert report.outcome.sent == 100_000
