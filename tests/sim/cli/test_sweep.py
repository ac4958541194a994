"""``tilewright sweep``: continued, verified, compared; its refusals."""

import csv
import json
import re

import pytest

import tilewright
from sim.cli.sweep_points import Axis, points_of, run_point
from sim.sweep.charts import roof_ends

SMALL = ["--config", "tiny", "--workers", "1"]
GRID = ["sweep", "matmul", *SMALL, "--set", "M=8", "--set", "N=8", "--set", "K=8,16"]


def run(capsys, *arguments):
    code = tilewright.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_sweep_continues_where_it_was_and_marks_the_front(tmp_path, capsys):
    out = tmp_path / "sweep"
    code, text, _ = run(capsys, *GRID, "--out", str(out))
    assert code == 0 and "2 points, 0 of them" in text
    lines = (out / "points.jsonl").read_text().splitlines()
    code, text, _ = run(
        capsys, *GRID, "--set", "row_par=1,4096", "--set", "slots=1", "--out", str(out), "--charts"
    )
    assert code == 0 and "4 points, 0 of them" in text
    assert (out / "points.jsonl").read_text().splitlines()[: len(lines)] == lines
    code, text, _ = run(capsys, *GRID, "--out", str(out), "--json", str(tmp_path / "r.json"))
    assert code == 0 and "2 points, 2 of them" in text
    rows = json.loads((tmp_path / "r.json").read_text())["points"]
    assert [row["status"] for row in rows] == ["verified"] * 2
    assert all(row["front"] and row["cycles"] > 0 and not row["measured"] for row in rows)
    with (out / "points.csv").open() as file:
        assert [int(row["cycles"]) for row in csv.DictReader(file)] == [r["cycles"] for r in rows]
    for name in ("utilization", "cycles_against_cost", "roofline"):
        assert "<svg" in (out / f"{name}.svg").read_text()


def test_charts_of_equal_points_are_equal(tmp_path, capsys):
    grid = [*GRID[:-1], "K=8"]
    for name in ("a", "b"):
        assert run(capsys, *grid, "--charts", "--out", str(tmp_path / name))[0] == 0
    for name in ("utilization", "cycles_against_cost", "roofline"):
        files = [(tmp_path / each / f"{name}.svg").read_bytes() for each in ("a", "b")]
        assert files[0] == files[1]


def test_no_point_of_a_roofline_is_above_its_roof_or_beside_it(tmp_path, capsys):
    grid = ["sweep", "matmul", "gemm", *SMALL, "--set", "M=8", "--set", "N=8", "--set", "K=8"]
    report = tmp_path / "r.json"
    assert run(capsys, *grid, "--out", str(tmp_path), "--json", str(report))[0] == 0
    for row in json.loads(report.read_text())["points"]:
        # One port of eight bytes each way.
        assert row["peak_bytes_per_cycle"] == 8
        assert row["bytes"] <= row["cycles"] * row["peak_bytes_per_cycle"]
    assert roof_ends(8.0, [0.5, 3.0]) == [0.5, 8.0, 16.0]
    assert roof_ends(8.0, [5.0, 40.0]) == [4.0, 8.0, 40.0]


def test_charts_name_chips_and_the_kernels_that_they_leave_out(tmp_path, capsys):
    sizes = ["--set", "M=8", "--set", "N=8", "--set", "matmul:K=8"]
    line = ["sweep", "matmul", "add", *SMALL, *sizes, "--charts", "--out", str(tmp_path)]
    assert run(capsys, *line)[0] == 0
    texts = {file.stem: file.read_text() for file in tmp_path.glob("*.svg")}
    for name in ("utilization", "roofline"):
        assert ">Without products, so not shown: add<" in texts[name]
    assert "not shown" not in texts["cycles_against_cost"]
    for name in ("roofline", "cycles_against_cost"):
        assert ">tiny<" in texts[name]


def test_a_refused_point_is_a_result_and_a_wrong_one_a_failure(tmp_path, capsys, monkeypatch):
    options = {"dtypes": ["bf16"], "backend": "emulator", "latency": 100, "seed": 1}
    axes = [Axis("M", (8,)), Axis("N", (8,)), Axis("K", (8,)), Axis("place.c", ("pcu[9, :]",))]
    (point,) = points_of(["matmul"], ["tiny"], axes, **options)
    record = run_point(point)
    assert record["status"] == "refused" and "Schedule.place" in record["message"]
    (point,) = points_of(["matmul"], ["tiny"], axes[:-1], **options)
    monkeypatch.setattr("sim.run.driver._difference", lambda *_: "one element differs")
    assert run_point(point)["status"] == "wrong"


def test_the_key_of_a_point_depends_on_its_file(tmp_path):
    options = {"dtypes": ["bf16"], "backend": "emulator", "latency": 100, "seed": 1}
    file = tmp_path / "own.py"
    text = (
        "import tilewright as tw\n\n"
        '@tw.kernel("A[M] -> B[M]")\n'
        "def own(A, B):\n    for i in tw.metapipe(A.shape[0]):\n"
        "        tw.store_tile(B[i], tw.load_tile(A[i]) + {})\n"
    )
    keys = []
    for value in (1.0, 2.0):
        file.write_text(text.format(value))
        (point,) = points_of([f"{file}:own"], ["tiny"], [Axis("M", (4,))], **options)
        keys.append(point.key)
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["matmull"], "unknown kernel 'matmull'; did you mean 'matmul'"),
        (["matmul", "--config", "tiney"], "unknown configuration 'tiney'"),
        (["matmul", "--dtype", "bf16,bf15"], "--dtype must be one of"),
        (["matmul", "--set", "MMM=4"], "unknown key 'MMM'"),
        (["matmul", "--set", "softmax:M=4"], "--set must name a kernel of the sweep"),
        (["matmul", "--set", "M="], r"must be \[KERNEL:\]KEY=VALUE,VALUE"),
        (["matmul", "--set", "M=0"], "M must be"),
        (["matmul", "--workers", "0"], "must be an integer from 1 to 256"),
    ],
)
def test_bad_names_are_refused_before_anything_runs(tmp_path, capsys, arguments, message):
    out = tmp_path / "sweep"
    code, _, error = run(capsys, "sweep", *arguments, "--out", str(out))
    assert code == 2 and not out.exists()
    assert re.search(message, error), error


def test_a_folder_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("kept")
    code, _, error = run(capsys, *GRID, "--out", str(tmp_path / "file"))
    assert code == 2 and "--out must be a folder" in error
    assert (tmp_path / "file").read_text() == "kept"
