"""Liveness of index streams of AGCUs: vectors are counted, values are not looked at."""

import dataclasses

import pytest

from hw.arch.loops import BoxLoop
from sw.netlist import Netlist
from sw.prove import prove
from tests.units_indexed import Indexed, Table
from tests.units_lists import relay


@dataclasses.dataclass(frozen=True)
class Mismatched(Indexed):
    """A job whose index tensor has some boxes more than its indices need, or fewer."""

    more: int = 0

    @property
    def netlist(self):
        right = super().netlist
        agcu = right.units["agcu"]
        (nest,) = agcu.loads[1].loops
        count = nest.count + self.more
        load = dataclasses.replace(agcu.loads[1], loops=(BoxLoop(count, 0, nest.step),))
        units = {
            **right.units,
            "indices": relay(count),
            "agcu": dataclasses.replace(agcu, loads=(agcu.loads[0], load)),
        }
        return Netlist(units, right.nets, right.fixed)


@pytest.mark.parametrize("scatter", [False, True])
def test_a_stream_with_too_few_or_too_many_indices_is_refused(scatter):
    tables = (Table(8, 2, 9, 16),)
    assert prove(Mismatched(tables, scatter).chip_program()).live
    short = prove(Mismatched(tables, scatter, more=-1).chip_program())
    assert not short.live
    assert any("waits for an index from PMU" in wait for wait in short.waits), short
    long = prove(Mismatched(tables, scatter, more=1).chip_program())
    assert long.faults == ("2 left over in front of AGCU 0 store 0",), long


@pytest.mark.parametrize("scatter", [False, True])
def test_iterations_of_a_job_equal_each_other(scatter):
    """Each begins with a new vector of indices, also where the last one had some left."""
    tables = (Table(8, 1, 9, 7),)
    assert prove(Indexed(tables, scatter).chip_program(), repeat=10**6).live
