"""Depth: no definition of a chip has more cells in series than the goal."""

import pytest

from gen.area import measure
from gen.unit_designs import UnitDesign, unit_designs
from gen.verilog import emit
from hw.agcu.unit import Agcu
from hw.arch.config import named
from hw.chip import Chip
from sim.cache import cache_directory

#: Most cells between two registers of one definition; a cell of the grid has 94.
GOAL = 105


def deeper(unit):
    """Definitions of a unit that are deeper than the goal, with their depth."""
    measured = measure(unit, cache=cache_directory() / "area")
    return {part.name: part.depth for part in measured.definitions if part.depth > GOAL}


@pytest.mark.slow
def test_no_definition_of_an_agcu_is_deeper_than_the_goal():
    assert deeper(UnitDesign("agcu", 1, emit(Agcu.of_chip(named["tiny"])))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "small", "large"])
def test_no_definition_of_a_chip_is_deeper_than_the_goal(name):
    for unit in unit_designs(emit(Chip(named[name]))):
        assert deeper(unit) == {}, unit.kind
