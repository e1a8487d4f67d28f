"""What a person wrote: refused where nothing could go well with it, else drawn to fit.

Each of the refusals was a run that failed, and told of a broker what was the settings'.
"""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Drawn
from ottla.sim.settings.settings import SETTINGS, RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.settings.swarm import draw


def test_no_beat_has_to_come_every_millisecond_for_a_follower_that_nobody_asks_for():
    for drawn in [draw(Drawn(seed), from_toml("replica_lag_ms = 1")) for seed in range(50)]:
        assert drawn.min_insync == 1
        assert drawn.heartbeat_ms >= 20


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("delivery_timeout_ms = 1", "with these round trips it must be at least 8"),
        ("delivery_timeout_ms = 900\nrequest_timeout_ms = 1000", "shorter than request_timeout_ms"),
        ("delivery_timeout_ms = 1000\nrtt_us = 2000000", "it must be at least 8"),
        ("request_timeout_ms = 1000\nlinks = 'c-3:2000000'", "it must be at least 8"),
        ("settle_ms = 0", "with such elections it must be at least 10000"),
        ("settle_ms = 60000\nelection_timeout_ms = 10000", "it must be at least 100000"),
        ("load_ms = 86400001", "0 to 86400000 are possible"),
        ("faults = ['kill', 'isolate']", 'write faults = "kill isolate"'),
    ],
)
def test_what_nothing_could_go_well_with_is_refused(told, why):
    with pytest.raises(ConfigError, match=why):
        from_toml(told)


@pytest.mark.parametrize(
    "text", ["records = " + "9" * 5000, "records = 0x" + "f" * 6000, "a = " + "[" * 5000]
)
def test_what_python_refuses_to_read_is_refused_too(text):
    with pytest.raises(ConfigError):
        from_toml(text)


ODD: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 5) | st.integers() | st.booleans() | st.text(max_size=4) | st.floats(),
    st.sampled_from(
        [None, 10**5000, "x" * 500, "\ud800", [], {}, b"", "1-2:9", "all", "kill kill"]
    ),
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*SETTINGS, "nods", ""]), ODD, max_size=3))
@example({"acks": []})  # It was looked up among the words that acks may be.
def test_whatever_a_setting_is_given_it_is_taken_or_refused_in_one_line(settings):
    try:
        from_toml("", settings)
    except ConfigError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said


def test_acks_are_named_as_clients_name_them():
    assert from_toml('acks = "all"') == RunConfig(acks=-1)
    assert from_toml("", {"acks": "all"}) == RunConfig(acks=-1)
