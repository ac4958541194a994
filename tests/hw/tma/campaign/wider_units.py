"""TMA units with reductions and several scratchpads in native models, and random commands."""

import dataclasses

from gen.verilog import emit
from tests.hw.tma.campaign.random_campaign import Coverage, run_commands
from tests.hw.tma.campaign.wider_modes import WIDER_MODES
from tests.hw.tma.reduction.reduction_stand import ReductionStand
from tests.hw.tma.standalone.unit_stand import STAND_SIZES
from tests.native.stream_model import StreamModel

__all__ = ["WIDER_SIZES", "run_wider_commands"]

#: Sizes of the units by their width.
WIDER_SIZES = {
    width_bits: dataclasses.replace(STAND_SIZES[width_bits], scratchpads=scratchpads)
    for width_bits, scratchpads in ((64, 3), (256, 5), (512, 2))
}


def run_wider_commands(width_bits: int, seed: int, commands: int) -> Coverage:
    """Build the unit of a width, and run so many random commands of all modes on it."""
    sizes = WIDER_SIZES[width_bits]
    stand = ReductionStand(1, sizes)
    with StreamModel(emit(stand), stand) as model:
        return run_commands(model, sizes, seed, commands, modes=WIDER_MODES, name="unit0")
