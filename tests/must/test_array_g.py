"""array-g: what arrays rest on is proved for every reachable state; planted faults are not."""

import pytest

from gen.formal import Property, prove
from gen.properties.array_drains import DrainIsEmptied
from gen.properties.arrays import (
    ARRAY_PROPERTIES,
    RowsKeepTheirPlace,
    SumsAreThere,
    SwapKeepsProducts,
)

#: Faults that a proof must not survive: swaps a cycle too close, a sum believed a cycle too early,
#: a place given away twice, a tile that finishes without asking.
PLANTED = {
    "swap": lambda: SwapKeepsProducts(3, 2, 3, early=1),
    "sum": lambda: SumsAreThere(6, fault=1),
    "place": lambda: RowsKeepTheirPlace(2, fault=True),
    "drain": lambda: DrainIsEmptied(2, 2, fault=True),
}


@pytest.mark.slow
@pytest.mark.must("array-g", goal="proved at 2 x 2 and 3 x 2, latency 1 to 3; covers reached")
@pytest.mark.parametrize(
    "property",
    ARRAY_PROPERTIES,
    ids=lambda each: "-".join(
        [each.name[:12].replace(" ", "_"), *map(str, each.parameters.values())]
    ),
)
def test_each_property_is_proved(property, figure):
    proof = prove(property)
    assert proof.proved and proof.reached == proof.covers and proof.met
    figure(f"{len(ARRAY_PROPERTIES)} proofs by k-induction")


@pytest.mark.slow
@pytest.mark.must("array-g", goal="each property fails with a planted fault")
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_not_proved(fault, figure):
    proof = prove(Property("array", fault, {}, PLANTED[fault]))
    assert not proof.proved and not proof.met
    figure(f"{len(PLANTED)} faults, each found")
