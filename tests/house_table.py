"""Hashes and cycles that moves and renames must leave as they are: ``tests/house_table.json``.

``.venv/bin/python -m tests.house_table`` writes the table anew, from the tree as it is.
"""

import hashlib
import json
import tempfile
from pathlib import Path

from sim.cli.app import main
from tests.hw.matrix.units import BUILDS, Case, build, run_case

__all__ = ["RUNS", "TABLE", "kernel_row", "unit_rows"]

TABLE = Path(__file__).with_suffix(".json")
_CHIP = """\
rows = 3
columns = 4
width_bits = 128
tracks = 2
token_tracks = 1
[pcu]
accumulator_rows = 64
cell_latency = 1
[pmu]
capacity_bytes = 8192
slots = 8
[agcu]
count = 2
outstanding = 16
"""
_FIELDS = ("image_sha256", "output_sha256", "golden_sha256", "cycles", "dram_bytes_read")
_TINY, _SMALL, _OWN = "--config tiny", "--config small", "--config {chip}"
#: Command lines of runs: both kernels and formats, ragged sizes, latencies and pauses of memory.
RUNS = (
    f"matmul {_TINY} --set M=37 --set N=5 --set K=90 --dtype int8 --latency 20 --stall 0.5",
    f"matmul {_TINY} --set M=64 --set N=64 --set K=64",
    f"matmul {_TINY} --set M=1 --set N=1 --set K=1 --jitter 30",
    f"matmul {_TINY} --set M=130 --set N=33 --set K=257 --set out=fp32 --latency 200",
    f"gemm {_TINY} --set M=20 --set N=9 --set K=70 --dtype int8",
    f"gemm {_TINY} --set M=50 --set N=31 --set K=40 --stall 0.3 --jitter 9",
    f"matmul {_SMALL} --set M=256 --set N=256 --set K=256",
    f"matmul {_SMALL} --set M=256 --set N=256 --set K=256 --dtype int8 --warm",
    f"matmul {_SMALL} --set M=100 --set N=77 --set K=190 --stall 0.2 --latency 30",
    f"matmul {_SMALL} --set M=8 --set N=128 --set K=500 --set row_par=1 --set col_par=8",
    f"gemm {_SMALL} --set M=77 --set N=100 --set K=64 --dtype int8 --jitter 50",
    f"gemm {_SMALL} --set M=129 --set N=65 --set K=33",
    f"matmul {_OWN} --set M=40 --set N=40 --set K=40",
    f"matmul {_OWN} --set M=33 --set N=70 --set K=129 --dtype int8 --stall 0.4",
    f"gemm {_OWN} --set M=64 --set N=24 --set K=100",
    "matmul --config large --backend emulator --set M=128 --set N=192 --set K=256",
)


def kernel_row(words: str) -> dict[str, object]:
    """Hashes and cycles of a run of the command."""
    with tempfile.TemporaryDirectory() as folder:
        chip, report = Path(folder) / "own.toml", Path(folder) / "report.json"
        chip.write_text(_CHIP)
        line = ["run", *words.format(chip=chip).split(), "--json", str(report)]
        assert main(line) == 0, words
        row = json.loads(report.read_text())
    return {name: row[name] for name in _FIELDS}


def unit_rows(dataflow: str) -> dict[str, list[object]]:
    """Cycles and hash of the answer of a product on each unit of a build, by unit."""
    rows: dict[str, list[object]] = {}
    units = BUILDS[dataflow]
    with build(units) as model:
        for number, (name, config) in enumerate(units.items()):
            fmt = config.array.formats[0]
            stalls = (0.0, 0.0, 0.0) if number % 2 else (0.2, 0.3, 0.1)
            case = Case(name, config, 13, 11, 29, (fmt, fmt), seed=number, stalls=stalls)
            run, *_ = run_case(model, case)
            rows[name] = [run.cycles, hashlib.sha256(run.result.tobytes()).hexdigest()]
    return rows


if __name__ == "__main__":
    table = {
        "runs": {words: kernel_row(words) for words in RUNS},
        "units": {dataflow: unit_rows(dataflow) for dataflow in BUILDS},
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
