"""The combiner of beats against numpy: every operation on every format that it takes."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.boxes.reductions import INTEGER_FORMATS, REDUCED_FORMATS
from hw.tma.reduction import beat_combiner
from tests.hw.tma.reduction.reduced_boxes import reduced
from tests.hw.tma.test_faults import mutant

_WIDTH = 64


def _cases(seed, beats):
    """Beats of random bytes, of the ends of the ranges, and of elements that are equal."""
    rng = np.random.default_rng(seed)
    size = (beats, _WIDTH // 8)
    memory, stored = (rng.integers(0, 256, size, dtype=np.uint8) for _ in range(2))
    ends = np.array([0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF], np.uint8)
    memory[: beats // 2] = rng.choice(ends, memory[: beats // 2].shape)
    stored[: beats // 2] = rng.choice(ends, stored[: beats // 2].shape)
    stored[::7] = memory[::7]
    return memory, stored


def wrong_pairs(module, seed, beats):
    """Pairs of operation and format of which a beat differs from numpy's."""
    combiner = module.BeatCombiner(width_bits=_WIDTH)
    memory, stored = _cases(seed, beats)
    wrong = []

    async def drive(ctx):
        for operation, formats in REDUCED_FORMATS.items():
            ctx.set(combiner.i_reduction.request.operation, operation.value)
            for format in set(formats) & set(INTEGER_FORMATS):
                ctx.set(combiner.i_reduction.format, format.value)
                found = []
                for old, new in zip(memory, stored, strict=True):
                    ctx.set(combiner.i_memory, int.from_bytes(old.tobytes(), "little"))
                    ctx.set(combiner.i_stored, int.from_bytes(new.tobytes(), "little"))
                    await ctx.delay(1e-9)
                    found.append(int(ctx.get(combiner.o_combined)).to_bytes(_WIDTH // 8, "little"))
                expected = reduced(operation, format, memory.reshape(-1), stored.reshape(-1))
                if b"".join(found) != expected.tobytes():
                    wrong.append((operation, format))

    simulator = Simulator(combiner)
    simulator.add_testbench(drive)
    simulator.run()
    return wrong


def test_every_operation_and_format_is_numpys(seed, draws):
    assert wrong_pairs(beat_combiner, seed, draws(200, 400)) == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        # A carry into the next element; a borrow that is not; signs compared as they are.
        ("Mux(first[index], compares, carry)", "Mux(first[0], compares, carry)"),
        ("^ compares.replicate(8)", "^ 0"),
        ("sign = (flips & last[index]) << 7", "sign = flips & 0"),
        ("Mux(shift == 1, carries[index | 1], carries[-1])", "carries[-1]"),
        ("bit ^ (operation == greatest)", "bit"),
    ],
)
def test_a_fault_of_the_lanes_is_found(healthy, faulty, seed):
    assert wrong_pairs(mutant(beat_combiner, healthy, faulty), seed, 100)
