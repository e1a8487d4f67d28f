"""Planted mutants: each fits the code of today, and a table that is none is refused in one line."""

from __future__ import annotations

import ast

import pytest

from ottla.sim.machine.trees import content
from ottla.sim.mutants.planted import Planted, PlantedError, named, read, shipped

ONE = """
[[planted]]
id = "X1"
room = "raft"
file = "src/ottla/raft/core.py"
old = '''
one
'''
new = '''
two
'''
breaks = "what"
shows = "how"
"""


@pytest.mark.parametrize("planted", shipped(), ids=lambda each: each.id)
def test_each_stands_once_in_the_code_of_today(planted: Planted):
    """It says what to do if one does not: whoever changes the code changes the mutant with it."""
    there = content(planted.file)
    assert there is not None, f"{planted.id}: {planted.file} is gone: plant it elsewhere"
    changed = planted.put_into(there.decode())
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(there)), "code is changed, not words"


def test_each_room_of_the_product_has_some():
    rooms = {each.file.rpartition("/")[0] for each in shipped()}
    assert {"raft", "idempotency", "log"} <= rooms
    assert len([each for each in rooms if each.startswith("broker/")]) >= 8


def test_a_table_is_read():
    (found,) = read(ONE)
    assert (found.id, found.file, found.old, found.excuse) == ("X1", "raft/core.py", "one\n", "")
    assert found.put_into("zero\none\n") == "zero\ntwo\n"
    assert named([found], "x1") is found
    assert named([found], "x2") is None


def test_what_does_not_stand_once_says_what_to_do():
    (found,) = read(ONE)
    for source, times in (("zero\n", 0), ("one\none\n", 2)):
        with pytest.raises(PlantedError, match=f"X1: its `old` stands {times} times.*write `old`"):
            found.put_into(source)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('id = "X1"', "id =", "is no TOML"),
        ("[[planted]]", "[[mutants]]", r"each begins with a line \[\[planted\]\]"),
        ('room = "raft"\n', "", "X1: has no `room`"),
        ('room = "raft"', 'house = "raft"\nroom = "raft"', "X1: there is no field `house`"),
        ('room = "raft"', 'room = ""', "X1: `room` is no text, or empty"),
        ('room = "raft"', "room = 7", "X1: `room` is no text, or empty"),
        ("two", "one", "X1: `old` and `new` are the same"),
    ],
)
def test_a_table_that_is_none_is_refused(old, new, told):
    assert old in ONE
    with pytest.raises(PlantedError, match=told):
        read(ONE.replace(old, new))


def test_two_of_one_name_are_refused():
    with pytest.raises(PlantedError, match="two mutants are called X1"):
        read(ONE + ONE)
