"""array-f: cells of the arrays beside those of peers, by the same tool and flags.

Generic cells, and µm² of a liberty that the tests make; of another one, beside the peers' areas in
it, where the environment's TILEWRIGHT_LIBERTY names it.
"""

import dataclasses
import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tilewright
from gen.liberty import FILE_NAME, MAP, load_liberty
from gen.verilog import emit
from gen.yosys import run_script
from hw.array.cell import Cell
from hw.array.cell_config import CellConfig
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.output_stationary import OutputCell
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import bf16, int8, named
from sim.drivers.unit_driver import UnitTiling
from tests.gen.made_liberty import SQUARE_UM, made_liberty
from tests.native.product_runs import run_product
from tests.native.stream_model import StreamModel

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = tomllib.loads((ROOT / "sim" / "peers_area.toml").read_text())
LIBERTY = os.environ.get("TILEWRIGHT_LIBERTY")


def _cell(dataflow, fmt):
    if dataflow == Dataflow.OS:
        return OutputCell(CellConfig((fmt,), 1))
    return Cell(formats=(fmt,), latency=1)


@dataclasses.dataclass(frozen=True)
class Measured:
    """Generic cells and flip-flops of a cell, every register in it; its µm² and of what library."""

    cells: int
    flip_flops: int
    square_um: float | None = None
    library: str = ""
    yosys: str = ""

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
def liberty_file(tmp_path_factory):
    """The library that the environment names, or the one that is made."""
    if LIBERTY:
        return Path(LIBERTY)
    file = tmp_path_factory.mktemp("liberty") / "made.lib"
    file.write_text(made_liberty())
    return file


@pytest.fixture(scope="module")
def liberty(liberty_file):
    """What is mapped to."""
    return load_liberty(liberty_file)


def measured(component, folder, liberty, flags):
    """Figures of a cell by the flow that the peers' page of figures states."""
    design = emit(component)
    (folder / "cell.v").write_text(design.text)
    script = (
        f"read_verilog cell.v\nsynth {flags} -top {design.top}\ntee -q -o cells.json stat -json\n"
    )
    if liberty is not None:
        (folder / FILE_NAME).write_text(liberty.text)
        script += f"{MAP}tee -q -o areas.json stat -json -liberty {FILE_NAME}\n"
    run_script(folder, script)
    report = json.loads((folder / "cells.json").read_text())
    kinds = report["design"]["num_cells_by_type"]
    # "Yosys 0.70 (git sha1 ...".
    found = Measured(
        sum(kinds.values()),
        sum(n for kind, n in kinds.items() if "DFF" in kind),
        yosys=report["creator"].split()[1],
    )
    if liberty is None:
        return found
    mapped = json.loads((folder / "areas.json").read_text())["design"]
    area = mapped["area"]
    if liberty.name == "made":
        summed = sum(SQUARE_UM[kind] * n for kind, n in mapped["num_cells_by_type"].items())
        assert area == pytest.approx(summed, rel=1e-6)
    return dataclasses.replace(found, square_um=area, library=liberty.name)


def row(line):
    """Cells of a line of a table in Markdown."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(first):
    """Rows of the table of the page on arrays whose head begins so, by their first cell."""
    lines = (ROOT / "docs" / "systolic.md").read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {first} |"))
    end = next(index for index in range(start, len(lines)) if not lines[index].startswith("|"))
    heads = row(lines[start])
    rows = {}
    for line in lines[start + 2 : end]:
        cells = row(line)
        rows[cells[0]] = dict(zip(heads, cells, strict=True))
    return rows


def beside_the_peer(dataflow, flags, folder, liberty, figure):
    """Ratios of cells, and of µm² if known, of an int8 product to axis-systolic-array's cell."""
    cell = measured(_cell(dataflow, int8), folder, liberty, flags)
    peer = PEERS["axis_systolic_array" + "_booth" * ("-booth" in flags)]
    assert (peer["yosys"], peer["flags"]) == (cell.yosys, flags)
    products = int8.products_per_cycle
    ratio, whole = cell.cells / products / peer["cells"], cell.cells / peer["cells"]
    # A whole cell, which multiplies twice a cycle, is larger than the peer's.
    assert whole == pytest.approx(products * ratio) and whole <= 1.6
    areas, ratio_of_areas = cell.beside(peer, products)
    figure(
        f"{cell.cells / products:.1f} cells and {cell.flip_flops / products:.1f} flip-flops a "
        f"product against {peer['cells']} and {peer['flip_flops']}: {ratio:.3f}; a cell of "
        f"{products} products a cycle has {cell.cells}: {whole:.3f}{areas}"
    )
    return ratio, ratio_of_areas


#: Share of a unit's µm² outside its cells. Queues are registers, which have six times the
#: transistors of a gate, so it is above the share of cells: 6.4 and 7.7 % of the library made.
_MOST_AREA_OUTSIDE = {"ws": 0.07, "os": 0.08}
FLAGS = pytest.mark.parametrize("flags", ["-booth -flatten", "-flatten"], ids=["booth", "plain"])


@pytest.mark.slow
@pytest.mark.must(
    "array-f", goal="ws: a product of int8 <= 0.75 of axis-systolic-array's cell, one flag for both"
)
@FLAGS
def test_a_weight_stationary_int8_product_takes_fewer_cells_than_the_peers(
    tmp_path, liberty, flags, figure
):
    """Exact int32, a shadow register with an enable; a cell makes two products a cycle."""
    ratio, ratio_of_areas = beside_the_peer(Dataflow.WS, flags, tmp_path, liberty, figure)
    assert ratio <= 0.75
    assert ratio_of_areas is None or ratio_of_areas <= 0.75


@pytest.mark.slow
@pytest.mark.must(
    "array-f", goal="os, as the peer: a product of int8 < its cell (0.75 is met by ws alone)"
)
@FLAGS
def test_an_output_stationary_int8_product_takes_fewer_cells_than_the_peers(
    tmp_path, liberty, flags, figure
):
    """Like for like: both keep sums and have a drain."""
    ratio, ratio_of_areas = beside_the_peer(Dataflow.OS, flags, tmp_path, liberty, figure)
    assert ratio < 1
    assert ratio_of_areas is None or ratio_of_areas < 1


@pytest.mark.slow
@pytest.mark.must("array-f", goal="bf16 cell beside HardFloat's bf16 FMA; ours sums in fp32")
def test_a_bf16_cell_takes_fewer_cells_than_a_bf16_fma(tmp_path, liberty, figure):
    """Without -booth: the peer was not measured with it."""
    peer = PEERS["hardfloat_bf16_fma"]
    cell = measured(_cell(Dataflow.WS, bf16), tmp_path, liberty, peer["flags"])
    assert peer["yosys"] == cell.yosys
    areas, _ = cell.beside(peer)
    figure(
        f"{cell.cells} cells, {cell.flip_flops} flip-flops, fp32 sums, "
        f"against {peer['cells']}{areas}"
    )
    assert cell.cells < peer["cells"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ws, int8", "os, int8", "ws, bf16", "os, bf16"])
def test_the_page_has_the_cells_measured(name, tmp_path):
    dataflow, fmt = name.split(", ")
    cell = _cell(Dataflow(dataflow), named[fmt])
    stated = table("cell")[name]
    for column, flags in (("cells", "-flatten"), ("with `-booth`", "-booth -flatten")):
        found = measured(cell, tmp_path, None, flags)
        assert stated[column] == f"{found.cells:,}"
        assert stated["flip-flops"] == f"{found.flip_flops}"


def share_of(words, capsys):
    """Report of the area of a 16 × 16 unit."""
    assert tilewright.main(["area", "--component", "systolic", *words.split(), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["array_cells"] == 256
    return report


@pytest.mark.slow
@pytest.mark.must("array-f", goal="<= 4 % of a 16 x 16 unit with 32-bit results outside its cells")
@pytest.mark.parametrize("dataflow", ["ws", "os"])
def test_little_of_a_unit_is_outside_its_cells(dataflow, liberty_file, capsys, figure):
    """Skew, queues, accumulator control, read-out and counters included; Koios' has no queues."""
    words = f"--format int8 --dataflow {dataflow} --liberty {liberty_file}"
    report = share_of(words, capsys)
    share = report["share_outside_cells"]
    peer = PEERS[f"koios_{dataflow}_block"]["share_outside_cells"]
    areas = report["square_um_share_outside_cells"]
    figure(f"{share:.1%} against Koios' {peer:.1%}; {areas:.1%} of the µm²")
    assert share <= 0.04 and areas <= _MOST_AREA_OUTSIDE[dataflow]


@pytest.mark.slow
@pytest.mark.must("array-f", goal="exact int32 up to K = 65,536: sums of +-2^30")
@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_the_longest_sums_of_int8_are_exact(dataflow, heavy, figure):
    """-128 · -128, 65,536 times, is 2^30; -128 · 127 is the least."""
    m, n, k = 2, 3, 1 << 16
    config = UnitConfig(ArrayConfig(2, 2, Dataflow(dataflow), (int8,)))
    a = np.full((m, k), -128, np.int8)
    b = np.full((k, n), -128, np.int8)
    b[:, 1] = 127
    unit = SystolicUnit(config)
    with StreamModel(emit(unit), unit) as model:
        run = run_product(model, UnitTiling(config, m, n, k, (int8, int8)), a, b)
    golden = a.astype(np.int64) @ b.astype(np.int64)
    assert golden.max() == 1 << 30 and golden.min() == -127 << 23
    assert np.array_equal(run.result, golden)
    figure(f"{golden.max():,} and {golden.min():,} in {run.cycles} cycles")
