"""Pages written from the code are what the code says now.

OTTLA_REWRITE=1 writes them anew. Four more pages are compared beside what they show:
`docs/reference/rules.md` (tests/idempotency), `docs/reference/apis.md` (tests/broker),
`docs/reference/invariants.md` and `docs/reference/scenarios.md` (tests/sim).
"""

import os
from dataclasses import fields
from typing import Any

import pytest

import docs_pages
import docs_rooms
import pages_specification
from ottla.broker.config import LEAST, MOST, MOST_OF, ClusterConfig, FlushPolicy
from ottla.broker.errors import ConfigError

PAGES = {
    "docs/reference/settings.md": docs_pages.settings_page,
    "docs/reference/topic-configs.md": docs_pages.configs_page,
    "docs/reference/simulated-settings.md": docs_pages.simulated_page,
    "docs/reference/raft-roles.md": docs_pages.roles_page,
    "docs/reference/rooms.md": docs_rooms.rooms_page,
    "docs/reference/specification.md": pages_specification.specification_page,
}


@pytest.mark.parametrize("path", PAGES)
def test_the_page_says_what_the_code_says(path):
    page, written = docs_pages.ROOT / path, PAGES[path]()
    if os.environ.get("OTTLA_REWRITE"):
        page.write_text(written, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == written


def test_every_setting_has_a_meaning_on_the_page():
    said = docs_pages.said_of("ClusterConfig")
    assert list(said) == [each.name for each in fields(ClusterConfig)]
    assert [name for name, meaning in said.items() if not meaning] == []
    assert list(docs_pages.said_of("FlushPolicy")) == [each.name for each in FlushPolicy]


def test_the_words_of_a_setting_end_with_the_limits_that_are_checked():
    """Nobody could find out how large `link_delay_ms` may be but by trying."""
    said, plain = docs_pages.said_of("ClusterConfig"), ClusterConfig()
    numbers = [each for each in said if type(getattr(plain, each)) in {int, float}] + ["seed"]
    assert [each for each in numbers if not said[each].endswith(docs_pages.limits(each))] == []


@pytest.mark.parametrize("name", [*LEAST, *MOST_OF, "max_producers"])
def test_the_limits_themselves_are_taken_and_what_is_beyond_them_is_not(name):
    least, most = LEAST.get(name, 1), MOST_OF.get(name, MOST)
    given: dict[str, Any]
    for beyond in (least - 1, most + 1):
        given = {name: beyond}
        with pytest.raises(ConfigError, match=f"{name} is "):
            ClusterConfig(**given)
    given = {name: least}
    assert getattr(ClusterConfig(**given), name) == least


def test_every_setting_of_a_simulated_run_has_a_meaning_on_the_page():
    assert [name for name, meaning in docs_pages.meanings().items() if not meaning] == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"profile": "kafak"}, "there is no profile 'kafak'; there are: reference"),
        ({"heartbeat_ms": 300}, "at most half of election_timeout_ms"),
        ({"max_producers": -1}, "max_producers is -1"),
        ({"max_producers": "7"}, "max_producers is '7'; a whole number is wanted"),
        ({"max_producers": True}, "max_producers is True; a whole number is wanted"),
        ({"max_producers": 7.0}, "max_producers is 7.0; a whole number is wanted"),
        ({"heartbeat_ms": 0}, "heartbeat_ms is 0; 1 to 1000000000000 are possible"),
        ({"auto_create_topics": 1}, "auto_create_topics is 1; True or False is wanted"),
        ({"link_delay_ms": float("nan")}, "link_delay_ms is nan; 0 to 1e.12 are possible"),
        ({"flush": "of"}, "flush: there is no of; did you mean off?"),
        ({"flush": 3}, "flush is 3; one of each-turn, interval, off is wanted"),
        ({"seed": "x"}, "seed is 'x'; a whole number is wanted"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(settings, told):
    with pytest.raises(ConfigError, match=told) as refused:
        ClusterConfig(**settings)
    assert "\n" not in str(refused.value)
