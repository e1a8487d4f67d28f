"""The section *Blind* of a page: what is written is read back, and what is beside it stays."""

import pytest

from ottla.sim.mutants.planted import shipped
from ottla.sim.sweeps.blind import BlindKills, of_a_table
from ottla.sim.sweeps.blind_page import NotBlindError, kept, merged, section, split

TARGETS = {each.id: of_a_table(each) for each in shipped()[:3]}
ONE, TWO, THREE = TARGETS
DIED = BlindKills(ONE, 100, 3, 1, (("sim-I01", 1),), 102, whole=False)
WHOLE = BlindKills(TWO, 100, 50, 20, (("sim-I02", 20), ("did not end", 4)), 101, whole=True)
ALIVE = BlindKills(THREE, 100, 300, 0, (), None, whole=False)


def test_what_is_written_is_read_back():
    assert kept(section([DIED, WHOLE, ALIVE], TARGETS)) == [DIED, WHOLE, ALIVE]


def test_rows_that_were_not_asked_for_stay_in_their_order():
    before = section([DIED, ALIVE], TARGETS)
    later = BlindKills(THREE, 100, 7, 1, (("broke", 1),), 106, whole=False)
    assert merged([later, WHOLE], before, TARGETS) == [DIED, WHOLE, later]


def test_what_stands_before_the_section_is_not_part_of_it():
    told = "# Mutants\n\n| id |\n|---|\n| sim-M01 |\n"
    blind = section([ALIVE], TARGETS)
    assert split(f"{told}\n{blind}") == (told, blind)
    assert split(told) == (told, "")


def test_a_row_that_somebody_changed_is_named():
    changed = section([ALIVE], TARGETS).replace("survived 300", "survived most")
    with pytest.raises(NotBlindError, match="survived most"):
        kept(changed)
