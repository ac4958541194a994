"""Check of a tensor's end: random descriptors around the address width, and its cycles."""

import random

import pytest
from amaranth.sim import Simulator

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.tma.tensor_end import TensorEnd


def _cases(rng, bits, count):
    """Descriptors of tensors that end around the address width, most of them nearby."""
    while count:
        rank = rng.randint(1, 5)
        kind = rng.choice(list(ElementFormat))
        dims = [rng.choice([1, rng.getrandbits(rng.randint(1, 32)) or 1]) for _ in range(rank)]
        strides = [rng.getrandbits(rng.randint(1, 36)) << 4 for _ in range(rank - 1)]
        reach = dims[0] * kind.bytes + sum((n - 1) * s for n, s in zip(dims[1:], strides))
        near = (1 << bits) - reach + rng.choice([0, 0, 1, -1, rng.randint(-999, 999)]) * 16
        base = near // 16 * 16 if 0 <= near < 1 << bits else rng.getrandbits(bits) // 16 * 16
        if rng.random() < 0.5 and not 0 <= near < 1 << bits:
            continue
        described = Descriptor(
            base=base, format=kind, dims=dims, strides=strides, box=(16,) + (1,) * (rank - 1)
        )
        count -= 1
        yield described, base + reach > 1 << bits


@pytest.mark.parametrize("bits", [32, 37, 48, 64])
def test_a_tensor_passes_the_width_as_its_last_byte_does(bits, seed, draws):
    cases = list(_cases(random.Random(seed), bits, draws(200, 2000)))
    end = TensorEnd(address_bits=bits)

    async def run(ctx):
        for described, passes in cases:
            ctx.set(end.i_descriptor.as_value(), int.from_bytes(described.pack(), "little"))
            ctx.set(end.i_start, 1)
            await ctx.tick()
            ctx.set(end.i_start, 0)
            cycles = 1
            while not ctx.get(end.o_ends):
                assert ctx.get(end.o_busy)
                await ctx.tick()
                cycles += 1
            await ctx.tick()
            assert (ctx.get(end.o_passes), ctx.get(end.o_busy)) == (passes, 0), described
            assert cycles == 1 + sum(max(1, (n - 1).bit_length()) for n in described.dims[1:])

    simulator = Simulator(end)
    simulator.add_clock(1e-6)
    simulator.add_testbench(run)
    simulator.run()
    shares = [passes for _, passes in cases]
    assert 0.2 < sum(shares) / len(shares) < 0.9
