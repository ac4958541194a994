"""slice-b: random products, golden = emulator = RTL by bytes, guard bytes included."""

import numpy as np
import pytest

_BATCHES = 10
#: Of the ten products of a batch: four ragged in all extents, one or two with a side of 1.
_SHAPES = ("ragged",) * 4 + ("thin", "thin") + ("any",) * 4


@pytest.mark.slow
@pytest.mark.must("slice-b", goal="100 random products natively, 20 and 4 through cocotb")
@pytest.mark.parametrize("batch", range(_BATCHES))
def test_three_answers_agree(batch, seed, random_products, heavy, figure):
    rng = np.random.default_rng(seed)
    cycles = 0
    for index, shape in enumerate(_SHAPES):
        # Small chips see most: half the products of a batch run on each.
        case = random_products(rng, ("tiny", "small")[index % 2], shape=shape)
        rtl, emulator = case.run("rtl"), case.run("emulator")
        digests = {
            rtl.report["golden_sha256"],
            rtl.report["output_sha256"],
            emulator.report["output_sha256"],
        }
        assert len(digests) == 1, case.command
        assert rtl.report["image_sha256"] == emulator.report["image_sha256"]
        assert rtl.report["dram_bytes_written"] == emulator.report["dram_bytes_written"]
        cycles += rtl.report["cycles"]
    figure(f"{_BATCHES * len(_SHAPES)} products, {cycles:,} cycles in the last ten")


@pytest.mark.slow
@pytest.mark.must("slice-b", goal="100 random products natively, 20 and 4 through cocotb")
@pytest.mark.parametrize(("config", "count", "most"), [("tiny", 20, 40), ("small", 4, 60)])
def test_cocotb_agrees(config, count, most, seed, random_products, heavy, figure):
    rng = np.random.default_rng(seed)
    cycles = 0
    for index in range(count):
        case = random_products(rng, config, shape=_SHAPES[index % len(_SHAPES)], most=most)
        cocotb, emulator = case.run("cocotb").report, case.run("emulator").report
        assert cocotb["verified"], case.command
        for name in ("output_sha256", "image_sha256", "dram_bytes_written"):
            assert cocotb[name] == emulator[name], case.command
        cycles += cocotb["cycles"]
    figure(f"{count} products on {config} through cocotb, {cycles:,} cycles")
