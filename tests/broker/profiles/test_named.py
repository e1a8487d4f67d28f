"""Profiles are values, found by name or alias."""

import dataclasses

import pytest

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ConfigError, UnknownProfileError
from ottla.broker.profiles.named import ALIASES, PROFILES, profile_named
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.sim.settings.settings import RunConfig


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(UnknownProfileError, match="no profile 'Reference'; there are: reference"):
        profile_named("Reference")


def test_an_unknown_name_lists_the_aliases_too():
    """A user of `kafka-3.8` was not told that `kafka` is a name."""
    with pytest.raises(UnknownProfileError) as refused:
        profile_named("kafka-3.8")
    for alias, name in ALIASES.items():
        assert f"{alias} (that is {name})" in str(refused.value)


def test_names_are_unique_and_no_alias_hides_one():
    names = [profile.name for profile in PROFILES]
    assert len(set(names)) == len(names)
    assert not {*names} & {*ALIASES}


def test_every_rulebook_has_a_profile():
    assert {profile.name for profile in PROFILES} == {*RULEBOOKS}


def test_a_profile_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(profile_named("reference"), "one_stage", True)  # noqa: B010 - not for mypy


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_taken_everywhere_and_the_full_name_is_kept(alias, name):
    assert profile_named(alias) is profile_named(name)
    assert ClusterConfig(profile=alias) == ClusterConfig(profile=name)
    assert RunConfig(profile=alias).name == RunConfig(profile=name).name


def test_a_misspelt_name_is_an_error_of_the_setting():
    for config in (ClusterConfig, RunConfig):
        with pytest.raises(ConfigError, match=r"^profile: there is no profile 'kafak'"):
            config(profile="kafak")
