"""tma-a: random descriptors, coordinates and memory timing of the TMA unit, against numpy."""

import pytest

from gen.verilog import emit
from hw.arch.descriptor import MAX_ELEMENT_STRIDE, MAX_RANK, Swizzle
from tests.hw.tma.campaign.random_campaign import run_commands
from tests.hw.tma.campaign.random_modes import MODES
from tests.hw.tma.campaign.wider_modes import WIDER_MODES
from tests.hw.tma.campaign.wider_units import WIDER_SIZES, run_wider_commands
from tests.hw.tma.standalone.unit_stand import STAND_SIZES, UnitStand
from tests.native.clocked_bundle import ClockedBundle
from tests.native.stream_model import StreamModel

#: Commands at each width, of a unit with several scratchpads too, and beats that a plain one
#: moves at least: a million in all.
_COMMANDS = 30_000
_WIDER_COMMANDS = 16_000
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
    moved = _judged(covered, MODES)
    assert covered.beats >= _BEATS[width_bits]
    figure(f"{width_bits} bits: {moved}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must(
    "tma-a", goal="the same with reductions and several scratchpads; 500 of each load to several"
)
@pytest.mark.parametrize("width_bits", WIDER_SIZES)
def test_random_commands_of_several_scratchpads_are_those_of_numpy(width_bits, seed, heavy, figure):
    """Every scratchpad is compared, and the counts of the barriers of each."""
    covered = run_wider_commands(width_bits, seed, _WIDER_COMMANDS)
    moved = _judged(covered, WIDER_MODES)
    loads = [mode.name for mode in WIDER_MODES if mode.loads]
    assert min(covered.several[name] for name in loads) >= 500
    assert covered.remote >= 1000
    reduced = sum(covered.modes[f"{kind} reduce"] for kind in ("tile", "im2col"))
    figure(
        f"{width_bits} bits, {WIDER_SIZES[width_bits].scratchpads} scratchpads: {moved}; "
        f"{covered.several.total():,} to several, {covered.modes['copy']:,} copies, "
        f"{reduced:,} reductions, {covered.remote:,} remote operations at barriers"
    )


def _judged(covered, modes):
    """Require the quotas; what has moved, in words."""
    assert covered.described >= 10_000
    assert all(covered.modes[mode.name] >= 500 for mode in modes)
    assert all(covered.ranks[rank] >= 1000 for rank in range(1, MAX_RANK + 1))
    assert len(covered.pairs) == _PAIRS
    shares = {side: covered.sides[side] / covered.described for side in ("below", "above")}
    assert min(shares.values()) >= 0.2
    return (
        f"{covered.commands:,} commands, {covered.beats:,} beats in {covered.cycles:,} cycles, "
        f"{shares['below']:.2f} below and {shares['above']:.2f} above"
    )


def test_the_beats_are_a_million():
    assert sum(_BEATS.values()) >= 1_000_000
