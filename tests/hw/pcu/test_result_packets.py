"""Result packets of PCUs: nine drains merged at one PMU, by whole passes and by single vectors."""

import pytest

from gen.verilog import emit
from hw.chip import Chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel
from sw.chip_program import ChipProgram
from sw.prove import require_live
from tests.hw.pcu.merged_drains import CHIP, PCUS, Case, Merged, cycles_of_a_pass
from tests.sw.naive import ends


@pytest.mark.parametrize("packet_vectors", [1, 4, 8])
@pytest.mark.parametrize("lanes", [False, True])
def test_merged_packets_are_live_and_their_order_is_exact(packet_vectors, lanes, seed):
    job = Merged(blocks=3, rows=16, packet_vectors=packet_vectors, lanes=lanes)
    program = ChipProgram.unpack(CHIP, job.image())
    require_live(program)
    assert ends(program, seed)
    case = Case(job, seed)
    assert emulate(CHIP, case.memory, list_address=case.layout.list_address).status == "done"
    assert case.equal()


@pytest.mark.slow
def test_drains_of_single_vectors_overlap_and_those_of_whole_passes_do_not(seed, heavy):
    """A drain in bf16 sends a vector every second cycle: nine fill the port, one half of it."""
    with ChipModel(emit(Chip(CHIP)), CHIP) as model:
        cycles = {each: cycles_of_a_pass(model, seed, packet_vectors=each) for each in (1, 64)}
    print(f"cycles of a pass of {PCUS * 64} vectors by packet length: {cycles}")
    assert cycles[1] <= 1.01 * PCUS * 64
    # A drain that waits for its turn is ahead by what the buffers on its way hold.
    assert cycles[64] >= 1.8 * cycles[1]
