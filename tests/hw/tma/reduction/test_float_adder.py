"""The adder of floats in beats against the golden sums of each format."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.boxes.reductions import FLOAT_FORMATS, ReductionOperation
from hw.tma.reduction import float_adder
from tests.hw.tma.reduction.reduced_boxes import reduced
from tests.hw.tma.test_faults import mutant

_WIDTH = 64


def _cases(format, seed, beats):
    """Beats of random bits, of which some exponents are near each other, and of special values."""
    rng = np.random.default_rng(seed)
    memory, stored = (rng.integers(0, 256, beats * 8, dtype=np.uint8) for _ in range(2))
    kind = np.dtype(f"<u{format.bytes}")
    first, second = memory.view(kind), stored.view(kind)
    near = slice(0, len(first) // 2)
    # The same but for low bits, and the sign: sums that cancel, subnormals among them.
    second[near] = first[near] ^ rng.integers(0, 9, len(first[near])).astype(kind)
    second[near] ^= kind.type(1 << 8 * format.bytes - 1)
    first[::17] = 0
    second[::23] = kind.type(1 << 8 * format.bytes - 1)
    return memory, stored


def wrong_formats(module, seed, beats=300):
    """Formats of which a sum is not the golden one; and the cycles of a beat."""
    adder = module.FloatAdder(width_bits=_WIDTH)
    wrong, cycles = [], set()

    async def drive(ctx):
        for format in FLOAT_FORMATS:
            ctx.set(adder.i_format, format.value)
            memory, stored = _cases(format, seed, beats)
            found = []
            for at in range(0, len(memory), _WIDTH // 8):
                for port, content in ((adder.i_memory, memory), (adder.i_stored, stored)):
                    ctx.set(port, int.from_bytes(content[at : at + 8].tobytes(), "little"))
                ctx.set(adder.i_valid, 1)
                count = 1
                while not ctx.get(adder.o_done):
                    await ctx.tick()
                    count += 1
                cycles.add(count)
                found.append(int(ctx.get(adder.o_sums)).to_bytes(_WIDTH // 8, "little"))
                ctx.set(adder.i_take, 1)
                await ctx.tick()
                ctx.set(adder.i_take, 0)
            expected = reduced(ReductionOperation.ADD, format, memory, stored)
            if b"".join(found) != expected.tobytes():
                wrong.append(format)

    simulator = Simulator(adder)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return wrong, cycles


def test_sums_are_golden(seed, draws):
    assert wrong_formats(float_adder, seed, draws(100, 300)) == ([], {_WIDTH // 32 + 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        ("operand[16:] if number else operand", "operand"),
        ("Mux(brain, *halves)", "Mux(~brain, *halves)"),
        ("saturate=False", "saturate=True"),
    ],
)
def test_a_fault_of_the_lanes_is_found(healthy, faulty, seed):
    assert wrong_formats(mutant(float_adder, healthy, faulty), seed)[0]
