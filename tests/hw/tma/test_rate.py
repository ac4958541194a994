from pathlib import Path

import numpy as np
import pytest

from hw.arch.descriptor import Descriptor, ElementFormat, TmaFeature
from tests.hw.tma.engine_bench import Bench
from tests.hw.tma.model import random_bytes

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tma.md"


def chunk(box_bytes):
    """A descriptor whose boxes of so many bytes follow each other, and their coordinates."""
    if box_bytes <= 1024:
        return Descriptor(
            base=0x10000,
            format=ElementFormat.FP32,
            dims=(box_bytes // 4 * 64,),
            box=(box_bytes // 4,),
        ), [(box_bytes // 4 * number,) for number in range(64)]
    rows = box_bytes // 1024
    return Descriptor(
        base=0x10000,
        format=ElementFormat.FP32,
        dims=(256, rows * 16),
        strides=(1024,),
        box=(256, rows),
    ), [(0, rows * number) for number in range(16)]


def cycles_of(side, boxes, latency, **engine):
    """Cycles from the first command to the last box, and from the first beat to the last.

    ``boxes`` is a descriptor and coordinates, or the bytes of boxes as `chunk` has them.
    """
    descriptor, places = chunk(boxes) if isinstance(boxes, int) else boxes
    box_bytes = descriptor.box_bytes
    region = (0x10000, 0x20000)
    data = random_bytes(1, 0x20000)
    bench = Bench(data, latency=latency, readable=[region], writable=[region], **engine)
    figures = {}
    engine = bench.engine
    port = (engine.i_load_commands if side == "load" else engine.i_store_commands)[0]
    started = []

    async def work(ctx):
        await bench.describe(ctx, 0, descriptor)
        figures["start"] = bench.memory.cycle
        started.append(True)
        for place in places:
            await bench.command(ctx, port, 0, place)
        vectors = len(places) * box_bytes * 8 // bench.width_bits
        if side == "load":
            await bench.wait(ctx, lambda: len(bench.loaded[0]) == vectors)
        else:
            await bench.wait(ctx, lambda: bench.stored[0] == len(places))
        figures["end"] = bench.memory.cycle

    async def put(ctx):
        await bench.wait(ctx, lambda: started)
        if side == "store":
            await bench.put(ctx, 0, np.zeros(len(places) * box_bytes, np.uint8))

    bench.run(work, put)
    beats = bench.memory.read_beats if side == "load" else bench.memory.write_beats
    return figures["end"] - figures["start"], beats[-1] - beats[0] + 1, len(beats)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "box_bytes", "latency", "peer"),
    [
        ("load", 64, 10, 0.687),
        ("load", 256, 10, 0.963),
        ("store", 64, 10, 0.798),
        ("store", 64, 100, 0.939),
        ("load", 64, 100, 0.986),
        ("store", 256, 10, 0.913),
    ],
)
def test_small_boxes_use_the_bus_better_than_the_peer(side, box_bytes, latency, peer):
    """The peer is verilog-axi's axi_dma at 64 bits: with as many bytes a descriptor at latency
    10, with 4 KiB a descriptor at latency 100."""
    total, busy, beats = cycles_of(side, box_bytes, latency, landing_beats=256)
    assert beats / busy > peer
    assert total <= busy + 2 * latency + 20


def rows():
    """Rows of the page's table: bytes of a box, latency, and what it says of them."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and " × " in cells[0]:
            size, unit = cells[0].partition(" × ")[0].split()
            box_bytes = int(size) * {"B": 1, "KiB": 1024}[unit]
            yield box_bytes, int(cells[2]), (cells[1], *cells[3:])


@pytest.mark.slow
@pytest.mark.parametrize(("box_bytes", "latency", "stated"), list(rows()))
def test_the_page_has_the_cycles_measured(box_bytes, latency, stated):
    figures = [cycles_of(side, box_bytes, latency, landing_beats=256) for side in ("load", "store")]
    shares = {f"{beats / busy:.3f}" for _, busy, beats in figures}
    totals = [f"{total:,}" for total, _, _ in figures]
    ideals = {f"{beats:,}" for _, _, beats in figures}
    assert stated == (*ideals, *totals, *shares)


def rows_of_a_matrix(row_bytes, rows, boxes, pitch):
    """A matrix's boxes of whole rows, and their coordinates."""
    words = row_bytes // 4
    return Descriptor(
        base=0x10000,
        format=ElementFormat.FP32,
        dims=(words, rows * boxes),
        strides=(pitch,),
        box=(words, rows),
    ), [(0, rows * number) for number in range(boxes)]


@pytest.mark.slow
@pytest.mark.parametrize("side", ["load", "store"])
@pytest.mark.parametrize(
    ("width_bits", "boxes", "outstanding"),
    [
        (64, (64, 1, 32, 128), 64),
        (128, (64, 1, 48, 128), 64),
        (256, (64, 1, 64, 128), 64),
        (256, (32, 64, 5, 32), 16),
    ],
    ids=["64 B, 64 bits", "64 B, 128 bits", "64 B, 256 bits", "adjacent 32 B, 256 bits"],
)
def test_short_rows_fill_the_bus_of_an_engine_with_all_features(
    side, width_bits, boxes, outstanding
):
    _, busy, beats = cycles_of(
        side,
        rows_of_a_matrix(*boxes),
        100,
        width_bits=width_bits,
        outstanding=outstanding,
        landing_beats=256,
        features=tuple(TmaFeature),
    )
    assert beats / busy > 0.95
