"""tma-h: area of the TMA engine and of the stand-alone units, by width of the data."""

import re
import tomllib
from pathlib import Path

import pytest

from docs.tools.area_tables import TMA_WIDTHS
from docs.tools.reports import report
from gen.area import measure
from gen.unit_designs import UnitDesign
from gen.verilog import emit
from hw.tma.engine import TmaEngine
from hw.tma.standalone.tma_unit import TmaSizes, TmaUnit

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = tomllib.loads((ROOT / "sim" / "peers_area.toml").read_text())
_GOAL = "figures of the docs' table; no more than a tenth above those of 2026-11-25"
#: Cells on that day, of each component at each width.
_CELLS = {
    "tma": (21_443, 27_627, 36_701),
    "tma_unit": (94_205, 134_003, 177_073),
    "tma_top": (99_498, 139_258, 182_165),
}
#: Bits of the largest memory that counts as flip-flops.
_SMALL = 2048


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("tma-h", goal=_GOAL)
@pytest.mark.parametrize("name", _CELLS)
def test_the_area_is_that_of_the_page(name, figure):
    page = (ROOT / "docs" / "tma_unit.md").read_text()
    found = []
    for width, most in zip(TMA_WIDTHS, _CELLS[name], strict=True):
        command = f"tilewright area --component {name} --data-bits {width}"
        cells = report(command)["totals"]["cells"]
        assert re.search(rf"^\| `{name}` \| {width} \| {cells:,} \|", page, re.MULTILINE)
        assert cells <= 1.1 * most
        found.append(f"{width} bits {cells:,}")
    figure(f"{name}: {', '.join(found)} cells")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("tma-h", goal="the area of reductions and of a second scratchpad is the page's")
def test_the_area_of_reductions_and_of_scratchpads_is_that_of_the_page(figure):
    page = (ROOT / "docs" / "tma_unit.md").read_text()
    found = []
    for setting in ("reduces=1", "scratchpads=2"):
        command = f"tilewright area --component tma_unit --data-bits 64 --set {setting}"
        found.append(f"{report(command)['totals']['cells']:,}")
    with_reductions, with_two = found
    assert (
        f"`tma_unit` has {with_reductions} cells with `--set reduces=1`, "
        f"and {with_two} with `--set scratchpads=2`" in page
    )
    figure(f"64 bits, with reductions {with_reductions}, with two scratchpads {with_two} cells")


def _in_flip_flops(component):
    """Area with every small memory as flip-flops."""
    unit = UnitDesign("tma", 1, emit(component))
    small = [each.name for each in measure(unit).definitions if 0 < each.memory_bits <= _SMALL]
    assert small
    return measure(unit, in_gates=small)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.must("tma-h", goal="beside verilog-axi's axi_dma at 64 bits, small memories in gates")
def test_the_area_beside_a_dma_of_one_dimension(figure):
    """The other one moves ranges of bytes: it has no tensors, cache or barriers."""
    peer = PEERS["verilog_axi_dma"]["cells"]
    engine = _in_flip_flops(TmaEngine(width_bits=64, load_streams=1, store_streams=1))
    unit = _in_flip_flops(TmaUnit(TmaSizes(width_bits=64)))
    figure(f"engine of one stream each way {engine.cells:,}, unit {unit.cells:,}, axi_dma {peer:,}")
    assert (
        engine.flip_flops
        > measure(
            UnitDesign("tma", 1, emit(TmaEngine(width_bits=64, load_streams=1, store_streams=1)))
        ).flip_flops
    )
    assert engine.cells <= 2 * peer
