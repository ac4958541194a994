"""array-f: cells of the arrays beside those of peers, by the same tool and flags.

Generic cells always; µm² too where the environment's TILEWRIGHT_LIBERTY names a liberty.
"""

import dataclasses
import json
import os
import tomllib
from pathlib import Path

import pytest

import tilewright
from gen.liberty import FILE_NAME, MAP, load_liberty
from gen.verilog import convert
from gen.yosys import run_script
from hw.numeric.formats import bf16, int8
from hw.systolic.cell import Cell
from hw.systolic.dataflow import ArrayConfig, Dataflow
from hw.systolic.output_stationary import OutputCell

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = tomllib.loads((ROOT / "sim" / "peers_area.toml").read_text())
LIBERTY = os.environ.get("TILEWRIGHT_LIBERTY")


def _cell(dataflow, fmt):
    if dataflow == Dataflow.OS:
        return OutputCell(ArrayConfig(2, 2, dataflow, (fmt,), 1))
    return Cell(formats=(fmt,), latency=1)


@dataclasses.dataclass(frozen=True)
class Measured:
    """Generic cells and flip-flops of a cell, every register in it; its µm² and of what library."""

    cells: int
    flip_flops: int
    square_um: float | None = None
    library: str = ""

    def beside(self, peer, products=1):
        """What to say of the µm² of a product beside a peer's, and their ratio if it is known."""
        if self.square_um is None:
            return "", None
        own = self.square_um / products
        said = f"; {own:,.0f} µm² of {self.library}"
        if (area := peer["square_um"].get(self.library)) is None:
            return said, None
        return f"{said} against {area:,}: {own / area:.3f}", own / area


@pytest.fixture(scope="module")
def liberty():
    """The library that the environment names, if it does."""
    return load_liberty(Path(LIBERTY)) if LIBERTY else None


def measured(component, folder, liberty, *, booth):
    """Figures of a cell by the flow that the peers' page of figures states."""
    text = convert(component, name="cell")
    (folder / "cell.v").write_text(text)
    flags = "-booth " if booth else ""
    script = (
        f"read_verilog cell.v\nsynth {flags}-flatten -top cell\ntee -q -o cells.json stat -json\n"
    )
    if liberty is not None:
        (folder / FILE_NAME).write_text(liberty.text)
        script += f"{MAP}tee -q -o areas.json stat -json -liberty {FILE_NAME}\n"
    run_script(folder, script)
    kinds = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
    found = Measured(sum(kinds.values()), sum(n for kind, n in kinds.items() if "DFF" in kind))
    if liberty is None:
        return found
    area = json.loads((folder / "areas.json").read_text())["design"]["area"]
    return dataclasses.replace(found, square_um=area, library=liberty.name)


@pytest.mark.slow
@pytest.mark.must(
    "array-f", goal="int8 product <= 0.75 of axis-systolic-array's, one flag for both"
)
@pytest.mark.parametrize("booth", [True, False], ids=["booth", "plain"])
def test_a_weight_stationary_int8_product_takes_fewer_cells_than_the_peers(
    tmp_path, liberty, booth, figure
):
    """Exact int32, a shadow register with an enable; a cell makes two products a cycle."""
    cell = measured(_cell(Dataflow.WS, int8), tmp_path, liberty, booth=booth)
    peer = PEERS["axis_systolic_array" + "_booth" * booth]
    assert peer["booth"] == booth
    products = int8.products_per_cycle
    ratio = cell.cells / products / peer["cells"]
    areas, ratio_of_areas = cell.beside(peer, products)
    figure(
        f"{cell.cells / products:.1f} cells and {cell.flip_flops / products:.0f} flip-flops a "
        f"product against {peer['cells']} and {peer['flip_flops']}: {ratio:.3f}{areas}"
    )
    assert ratio <= 0.75
    assert ratio_of_areas is None or ratio_of_areas <= 0.75


@pytest.mark.slow
@pytest.mark.must("array-f", goal="bf16 cell beside HardFloat's bf16 FMA; ours sums in fp32")
def test_a_bf16_cell_takes_fewer_cells_than_a_bf16_fma(tmp_path, liberty, figure):
    cell = measured(_cell(Dataflow.WS, bf16), tmp_path, liberty, booth=False)
    peer = PEERS["hardfloat_bf16_fma"]
    areas, _ = cell.beside(peer)
    figure(
        f"{cell.cells} cells, {cell.flip_flops} flip-flops, fp32 sums, "
        f"against {peer['cells']}{areas}"
    )
    assert cell.cells < peer["cells"]


@pytest.mark.slow
@pytest.mark.must("array-f", goal="<= 4 % of a 16 x 16 unit outside its cells")
@pytest.mark.parametrize("dataflow", ["ws", "os"])
def test_little_of_a_unit_is_outside_its_cells(dataflow, capsys, figure):
    """Skew, queues, accumulator control, read-out and counters included; Koios' has no queues."""
    words = f"area --component systolic --format int8 --dataflow {dataflow} --json".split()
    words += ["--liberty", LIBERTY] if LIBERTY else []
    assert tilewright.main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["array_cells"] == 256
    share = report["share_outside_cells"]
    peer = PEERS[f"koios_{dataflow}_block"]["share_outside_cells"]
    areas = report.get("square_um_share_outside_cells")
    of_areas = "" if areas is None else f"; {areas:.1%} of the µm²"
    figure(f"{share:.1%} against Koios' {peer:.1%}{of_areas}")
    assert share <= 0.04
