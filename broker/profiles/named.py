"""The profiles by name, and the aliases of the newest ones.

The profile of an older version starts from the profile of the next newer version. It names only
what the older version does differently. So a switch stands at the version where the behaviour
changed. docs/reference/profiles.md says where each difference was measured or read, and what shows
it.
"""

from __future__ import annotations

import reprlib
from dataclasses import replace

from ottla.broker.errors import UnknownProfileError
from ottla.broker.profiles.profile import Profile
from ottla.idempotency.rulebooks import RULEBOOKS

_REDPANDA_24_3 = Profile(
    rulebook=RULEBOOKS["redpanda-24.3"],
    summary="Redpanda v24.3.1 as read in its sources: one state for all epochs of a producer.",
    both_twins_count=True,
    copies_keep_mutex=True,
    resigns_on_failure=True,
    negative_sequences_judged=True,
    first_stage_holds=True,
    bare_produce_answers=True,
    acks_checked_first=True,
    times_unlimited=True,
    installs_no_producers=True,
    keeps_from_log_start=True,
)

_KAFKA_4_3 = Profile(
    rulebook=RULEBOOKS["kafka-4.3"],
    summary="Apache Kafka 4.3 as measured on 4.3.1, with Raft in the place of its replication.",
    one_at_a_time=True,
    last_twin_counts=True,
    waits_for_all_in_sync=True,
    expires_by_timestamp=True,
)
_KAFKA_3_9 = replace(
    _KAFKA_4_3,
    rulebook=RULEBOOKS["kafka-3.9"],
    summary="Apache Kafka 3.9 as measured on 3.9.1, where it differs from 4.3.",
    before_kip_1030=True,
    newest={0: 11, 15: 5, 60: 1, 68: 0, 69: 0},
)
_KAFKA_2_8 = replace(
    _KAFKA_3_9,
    rulebook=RULEBOOKS["kafka-2.8"],
    summary="Apache Kafka 2.8 as measured on 2.8.2 with ZooKeeper, where it differs from 3.9.",
    minimum_uncapped=True,
    append_time_flag_refused=True,
    negative_times_searched=True,
    newest={
        0: 9,
        2: 6,
        3: 11,
        8: 8,
        9: 7,
        10: 3,
        11: 7,
        13: 4,
        15: 5,
        16: 4,
        18: 3,
        22: 4,
        60: 0,
        68: -1,
        69: -1,
    },
)
_KAFKA_2_4 = replace(
    _KAFKA_2_8,
    rulebook=RULEBOOKS["kafka-2.4"],
    summary="Apache Kafka 2.4 as measured on 2.4.1 with ZooKeeper, where it differs from 2.8.",
    no_batch_closes=True,
    earlier_twins_unread=True,
    newest={
        0: 8,
        1: 11,
        2: 5,
        3: 9,
        8: 8,
        9: 6,
        10: 3,
        11: 6,
        13: 4,
        14: 4,
        15: 5,
        16: 3,
        18: 3,
        19: 5,
        20: 4,
        21: 1,
        22: 2,
        23: 3,
        60: -1,
        68: -1,
        69: -1,
    },
)

PROFILES: tuple[Profile, ...] = (
    Profile(
        rulebook=RULEBOOKS["reference"],
        summary="The algorithm of Redpanda's pull request 5157 with Kafka's answers on the wire.",
    ),
    Profile(
        rulebook=RULEBOOKS["reference-strict"],
        summary="As `reference`, but an unknown producer begins at 0 or where it was forgotten.",
    ),
    _KAFKA_4_3,
    _KAFKA_3_9,
    _KAFKA_2_8,
    _KAFKA_2_4,
    _REDPANDA_24_3,
    replace(
        _REDPANDA_24_3,
        rulebook=RULEBOOKS["redpanda-25.3"],
        summary="Redpanda v25.3, where public sources say that it differs from v24.3.1.",
        times_unlimited=False,
    ),
    Profile(
        rulebook=RULEBOOKS["redpanda-5157"],
        summary="Redpanda's pull request 5157 as merged in June 2022: v22.1.5 and v22.2.1.",
    ),
    Profile(
        rulebook=RULEBOOKS["redpanda-22.1.3"],
        summary="Redpanda v22.1.1 to v22.1.4, before that fix: one batch per connection in Raft.",
        one_stage=True,
    ),
)
"""Every profile there is."""

_BY_NAME = {profile.name: profile for profile in PROFILES}

ALIASES: dict[str, str] = {"kafka": "kafka-4.3", "redpanda": "redpanda-25.3"}
"""The newest profile of each broker, by the broker's name."""


def profile_named(name: str) -> Profile:
    """The profile of that name or alias. Raises UnknownProfileError, which lists all of both."""
    found = _BY_NAME.get(ALIASES.get(name, name))
    if found is not None:
        return found
    aliases = (f"{alias} (that is {full})" for alias, full in ALIASES.items())
    names = ", ".join([*_BY_NAME, *aliases])
    raise UnknownProfileError(f"there is no profile {reprlib.repr(name)}; there are: {names}")
