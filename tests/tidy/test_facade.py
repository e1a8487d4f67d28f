"""`import ottla` costs next to nothing, and still offers its names."""

import subprocess
import sys

import pytest

import ottla
from tidy.tables import CONFINED

HEAVY = {*CONFINED, "asyncio", "cramjam", "google_crc32c", "msgpack", "sortedcontainers", "uvloop"}


def test_importing_ottla_loads_nothing_heavy():
    code = "import sys, ottla; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = {name.split(".", 1)[0] for name in told.stdout.split()}
    assert not loaded & HEAVY
    assert "ottla.broker" not in told.stdout.split()


def test_the_names_are_offered_before_they_are_loaded():
    assert {"Cluster", "OttlaError", "Topic", "__version__"} <= set(dir(ottla))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ottla' has no attribute 'Kluster'"):
        _ = ottla.Kluster
