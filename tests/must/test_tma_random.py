"""tma-a: random descriptors, coordinates and memory timing of the TMA unit, against numpy."""

import pytest

from gen.verilog import emit
from hw.arch.descriptor import MAX_ELEMENT_STRIDE, MAX_RANK, Swizzle
from tests.hw.tma.standalone.random_campaign import run_commands
from tests.hw.tma.standalone.random_modes import MODES
from tests.hw.tma.standalone.unit_stand import STAND_SIZES, UnitStand
from tests.native.clocked_bundle import ClockedBundle
from tests.native.stream_model import StreamModel

#: Commands at each width, and beats that they move at least: a million in all.
_COMMANDS = 30_000
_BEATS = {64: 500_000, 256: 280_000, 512: 220_000}
_PAIRS = (
    MAX_ELEMENT_STRIDE * len(Swizzle)
    + MAX_ELEMENT_STRIDE * MAX_RANK
    + MAX_ELEMENT_STRIDE * 3
    + len(Swizzle) * MAX_RANK
    + len(Swizzle) * 3
    + MAX_RANK * 3
)
_GOAL = (
    "10,000 descriptors × coordinates, 1,000 of each rank, 500 of each mode, a fifth out of bounds "
    "on each side, all pairs; 10^6 beats at 64, 256 and 512 bits; memory and scratchpad as numpy's"
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("tma-a", goal=_GOAL)
@pytest.mark.parametrize("width_bits", STAND_SIZES)
def test_random_commands_are_those_of_numpy(width_bits, seed, heavy, figure):
    """Whole memories are compared, and no byte is accessed that the command does not name."""
    bundle = ClockedBundle({"tma": UnitStand(STAND_SIZES[width_bits])})
    model = StreamModel(emit(bundle), bundle)
    covered = run_commands(model, STAND_SIZES[width_bits], seed, _COMMANDS)
    assert covered.described >= 10_000
    assert all(covered.modes[mode.name] >= 500 for mode in MODES)
    assert all(covered.ranks[rank] >= 1000 for rank in range(1, MAX_RANK + 1))
    assert len(covered.pairs) == _PAIRS
    shares = {side: covered.sides[side] / covered.described for side in ("below", "above")}
    assert min(shares.values()) >= 0.2
    assert covered.beats >= _BEATS[width_bits]
    figure(
        f"{width_bits} bits: {covered.commands:,} commands, {covered.beats:,} beats in "
        f"{covered.cycles:,} cycles, {shares['below']:.2f} below and {shares['above']:.2f} above"
    )


def test_the_beats_are_a_million():
    assert sum(_BEATS.values()) >= 1_000_000
