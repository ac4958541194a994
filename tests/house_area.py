"""Area of units that a change of structure must not raise: ``tests/house_area.json``.

``.venv/bin/python -m tests.house_area`` writes the table anew, from the tree as it is.
"""

import json
import shlex
import tempfile
from pathlib import Path

from sim.cli.app import main

__all__ = ["RUNS", "TABLE", "area_rows"]

TABLE = Path(__file__).with_suffix(".json")
_UNIT = "--component systolic --rows 8 --cols 8"
#: Options of ``tilewright area``: two chips, every component by its defaults, stand-alone units.
RUNS = (
    "--config tiny",
    "--config small",
    "--config tiny --component matrix_unit",
    "--config tiny --component tma",
    *(
        f"--component {name}"
        for name in (
            *("barrier", "fp_add", "fp_multiply", "fp_fma", "fp_less", "fp_equal", "fp_maximum"),
            *("fp_minimum", "fp_round_to_integral", "fp_to_int32", "fp_from_int32", "fp_exp"),
            *("fp_exp2", "fp_log2", "fp_reciprocal", "fp_rsqrt", "fp_sigmoid", "fp_tanh"),
        )
    ),
    *(
        f"{_UNIT} {options}"
        for options in (
            "--dataflow ws --format bf16",
            "--dataflow ws --format bf16 --latency 3 --adder bottom --tiles-ahead 2",
            "--dataflow ws --format int8 --out int8 --bias",
            "--dataflow is --format bf16,int8",
            "--dataflow is --format e4m3,e5m2 --out bf16",
            "--dataflow os --format int8 --out int8",
            "--dataflow os --format fp16 --latency 2",
            "--dataflow ws --format mxe4m3",
        )
    ),
    "--component array --rows 4 --cols 4 --format bf16",
    "--component tensor_unit --rows 8 --cols 8 --format int8 --buffer-rows 256",
)


def area_rows(words: str) -> list[list[object]]:
    """Kind, count and generic cells of each unit that the command lists, in its order."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        assert main(["area", *shlex.split(words), "--json", str(report)]) == 0, words
        units = json.loads(report.read_text())["units"]
    return sorted([unit["kind"], unit["count"], unit["cells"]] for unit in units)


if __name__ == "__main__":
    rows = {words: area_rows(words) for words in RUNS}
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")
