"""AXI attributes of a TMA unit: constants of its bursts, IDs, and refusals."""

import dataclasses

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.errors import BadInputError
from hw.arch.tma_sizes import TmaSizes
from hw.tma.host_port.tma_top import TmaTop
from hw.tma.standalone.axi_attributes import AxiAttributes
from hw.tma.standalone.tma_unit import TmaUnit
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.unit_bench import UnitBench

_GOOD = Descriptor(
    base=0x2000, format=ElementFormat.FP32, dims=(16, 32), strides=(64,), box=(16, 4)
)
_AT_IN, _AT_OUT = 0x1000, 0x1080
_CASES = [
    (AxiAttributes(), 1, {3}, {3}, 0, 0, {0, 1}, {0}),
    (AxiAttributes(read_qos=9, write_qos=6), 1, {3}, {3}, 0, 0, {0, 1}, {0}),
    (AxiAttributes(read_qos=15, write_qos=1), 2, {3}, {3}, 0, 0, {0, 1, 2}, {0}),
    (
        AxiAttributes(read_cache=11, write_cache=7, read_protection=2, write_protection=5),
        1, {11}, {7}, 2, 5, {0, 1}, {0},
    ),
    (AxiAttributes(first_id=6, write_cache=0), 1, {3}, {0}, 0, 0, {6, 7}, {6}),
    (AxiAttributes(first_id=48, read_cache=15), 8, {15}, {3}, 0, 0, {*range(48, 57)}, {48}),
]  # fmt: skip


_SEEN = ("arid", "arcache", "arprot", "arqos", "awid", "awcache", "awprot", "awqos")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attributes", "ids", "read", "write", "read_prot", "write_prot", "arids", "awids"), _CASES
)
def test_every_burst_has_the_attributes(
    attributes, ids, read, write, read_prot, write_prot, arids, awids
):
    data = random_bytes(3, 0x4000)
    bench = UnitBench(
        data,
        attributes=attributes,
        read_ids=ids,
        latency=20,
        interleaves=True,
        readable=[(0x1000, 0x3000)],
        writable=[(0x3000, 0x4000)],
    )
    bench.describe(_AT_IN, _GOOD)
    bench.describe(_AT_OUT, dataclasses.replace(_GOOD, base=0x3000))
    seen = {name: set() for name in _SEEN}

    async def watch(ctx):
        axi = bench.unit.axi
        while len(bench.completions) < 9:
            await ctx.tick()
            for name, values in seen.items():
                if ctx.get(getattr(axi, f"{name[:2]}valid")):
                    values.add(int(ctx.get(getattr(axi, name))))

    async def work(ctx):
        for number in range(8):
            fields = {"id": number, "local": 256 * number}
            await bench.command(ctx, TmaOperation.LOAD, _AT_IN, (0, 4 * number), **fields)
        await bench.completed(ctx, 8)
        await bench.command(ctx, TmaOperation.STORE, _AT_OUT, (0, 0), id=8)
        await bench.completed(ctx, 9)

    bench.run(watch, work)
    assert [code for _, code in bench.completions] == [0] * 9
    assert seen == {
        "arid": arids, "arcache": read, "arprot": {read_prot},
        "arqos": {attributes.read_qos}, "awqos": {attributes.write_qos},
        "awid": awids, "awcache": write, "awprot": {write_prot},
    }  # fmt: skip
    np.testing.assert_array_equal(data[0x3000:0x3100], data[0x2000:0x2100])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in ("read_cache", "write_cache")
          for value in (-1, 4, 5, 8, 9, 12, 13, 16, True, "3")),
        *((field, value) for field in ("read_protection", "write_protection")
          for value in (-1, 8, True)),
        *((field, value) for field in ("read_qos", "write_qos") for value in (-1, 16, True, "3")),
        *(("first_id", value) for value in (-1, 1 << 16, 2.0)),
    ],
)  # fmt: skip
def test_an_attribute_outside_its_domain_is_refused(field, value):
    with pytest.raises(BadInputError, match="must be .*, not "):
        AxiAttributes(**{field: value})


@pytest.mark.parametrize("design", [TmaUnit, TmaTop])
def test_the_first_id_is_a_multiple_of_the_number_of_ids(design):
    sizes = TmaSizes(read_ids=4)
    assert AxiAttributes(first_id=16).id_bits(sizes) == 5
    with pytest.raises(BadInputError, match="First ID must be a multiple of 8, not 12"):
        design(sizes, attributes=AxiAttributes(first_id=12))
