"""array-g: what arrays rest on is proved for every reachable state; planted faults are refuted."""

import pytest

from gen.formal import Property, prove
from gen.proof import Outcome
from gen.properties.array_drains import DrainIsEmptied
from gen.properties.array_ports import OffersStay
from gen.properties.array_stationary import SumsMeetTheirRow, SwapKeepsProducts
from gen.properties.arrays import ARRAY_PROPERTIES, RowsKeepTheirPlace, SumsAreThere
from hw.array.dataflow import Dataflow
from hw.emit.structure import Structure
from hw.lib.stream import ElasticBuffer
from hw.matrix.drain_sequencer import DrainSequencer


class _HastyDrain(DrainSequencer):
    """Lets a tile close while the one before has a place to take."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.o_free.eq(1)
        return m


class _Forgetful(ElasticBuffer):
    """Drops an offer that is not taken at once."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i_clear.eq(self.o_stream.valid & ~self.o_stream.ready)
        return m


#: Faults in a block, each against its own property, by what is wrong.
PLANTED = {
    "swaps a cycle too close": lambda: SwapKeepsProducts(3, 2, 3, early=1),
    "a sum believed a cycle too early": lambda: SumsMeetTheirRow(2, 2, 2, fault=1),
    "the same below": lambda: SumsAreThere(6, fault=1),
    "a tile closed over another": lambda: DrainIsEmptied(2, 2, 2, sequencer=_HastyDrain),
    "a place given twice": lambda: RowsKeepTheirPlace(2, fault=True),
}

#: Wires of an array that are joined to the wrong bits: harness, row, its port, and the bits.
_WIRES = {
    "swap": (lambda: SwapKeepsProducts(2, 2, 1), "row_1", "i_swap", slice(0, 1)),
    "load": (lambda: SwapKeepsProducts(2, 2, 1), "row_1", "i_load", slice(0, 1)),
    "operand": (lambda: SumsMeetTheirRow(2, 2, 1), "row_1", "i_moving", slice(0, 16)),
    "finish": (lambda: DrainIsEmptied(2, 2, 1), "row_1", "i_finish", slice(0, 1)),
    "shift": (lambda: DrainIsEmptied(2, 2, 1), "row_0", "i_shift", slice(1, 2)),
}


@pytest.mark.slow
@pytest.mark.must("array-g", goal="proved at 2 x 2 and 3 x 2, latency 1 to 3; covers reached")
@pytest.mark.parametrize(
    "property",
    ARRAY_PROPERTIES,
    ids=lambda each: "-".join([each.name.replace(" ", "_"), *map(str, each.parameters.values())]),
)
def test_each_property_is_proved(property, figure):
    proof = prove(property)
    assert proof.met and proof.reached == proof.covers
    # Of each fault it is known whether it breaks the property.
    assert proof.caught + proof.equivalent == len(proof.faults) == property.faults
    figure(f"{len(ARRAY_PROPERTIES)} proofs, by PDR of the arrays themselves and by k-induction")


def test_each_property_has_faults_at_one_size_at_least():
    names = {property.name for property in ARRAY_PROPERTIES}
    assert names == {property.name for property in ARRAY_PROPERTIES if property.faults}


def _refuted(harness, method):
    proof = prove(Property("array", "planted", {}, harness, method=method, faults=0))
    return proof.outcome is Outcome.COUNTEREXAMPLE


@pytest.mark.slow
@pytest.mark.must("array-g", goal="each property has a counterexample with a planted fault")
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_has_a_counterexample(fault, figure):
    modelled = type(PLANTED[fault]()) is SumsAreThere
    assert _refuted(PLANTED[fault], "k-induction" if modelled else "PDR")
    figure(f"{len(PLANTED)} faults, each refuted by a trace")


@pytest.mark.slow
@pytest.mark.must("array-g", goal="the arrays' own wires are proved: a wrong one is refuted")
@pytest.mark.parametrize("wire", _WIRES)
def test_a_wrong_wire_of_an_array_has_a_counterexample(wire, figure, monkeypatch):
    """A row gets what its neighbour gets."""
    harness, row, port, bits = _WIRES[wire]
    sound = Structure.instance

    def wrong(structure, name, component, **ports):
        if name == row:
            ports[port] = structure.port(port)[bits]
        sound(structure, name, component, **ports)

    monkeypatch.setattr(Structure, "instance", wrong)
    assert _refuted(harness, "PDR")
    figure(f"{len(_WIRES)} wires, each refuted by a trace")


@pytest.mark.slow
@pytest.mark.must("array-g", goal="streams: an offer that falls is refuted")
@pytest.mark.parametrize("dataflow", Dataflow)
def test_an_offer_that_falls_has_a_counterexample(dataflow, figure, monkeypatch):
    monkeypatch.setattr("hw.matrix.output_stage.ElasticBuffer", _Forgetful)
    assert _refuted(lambda: OffersStay(2, 2, 1, dataflow), "PDR")
    figure("an offer that falls is refuted in every dataflow")
