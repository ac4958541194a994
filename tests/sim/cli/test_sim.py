"""``tilewright sim``: what it accepts, prints and reports."""

import importlib
import json
import re
from pathlib import Path

import pytest

import tilewright
from gen.verilog import emit
from hw.arch.tma_sizes import TmaSizes
from sim.cocotb import bench_runner
from sim.cocotb.bench_runner import BenchResult, bench_names
from sim.cocotb.tma_choice import TmaChoice, asked_tma
from tests.unelaborated import unelaborated

FIELDS = ("block", "tests", "seed", "passed", "failed", "seconds")


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Runs asked for; none really happens, and that of `grid` fails for seed 13."""
    asked = []

    def run_bench(block, *, seed, simulator, waves, progress):
        asked.append((block, seed, simulator, waves))
        failures = ("sums: 1, not 2",) if (block, seed) == ("grid", 13) else ()
        return BenchResult(
            block=block,
            simulator=simulator,
            seed=seed,
            tests=4,
            seconds=0.5,
            build_seconds=2.0,
            cache_hit=False,
            failures=failures,
            log=tmp_path / "log",
        )

    monkeypatch.setattr(bench_runner, "run_bench", run_bench)
    monkeypatch.chdir(tmp_path)
    return asked


def test_one_block_is_run_and_reported(calls, capsys):
    assert tilewright.main(["sim", "grid", "--seed", "5", "--json"]) == 0
    out, error = capsys.readouterr()
    report = json.loads(out)
    assert {name: report[name] for name in FIELDS} == {
        "block": "grid",
        "tests": 4,
        "seed": 5,
        "passed": 4,
        "failed": 0,
        "seconds": 0.5,
    }
    assert calls == [("grid", 5, "verilator", None)]
    assert "grid: 4 of 4 tests passed in 0.5 s (build 2.0 s)" in error


def test_without_a_block_all_are_run_and_summed(calls, capsys):
    assert tilewright.main(["sim", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    names = bench_names()
    assert [call[0] for call in calls] == names == [row["block"] for row in report["blocks"]]
    assert (report["block"], report["tests"], report["failed"]) == (None, 4 * len(names), 0)
    assert all(set(FIELDS) <= set(row) for row in report["blocks"])


def test_a_failure_is_exit_code_1_with_the_command_that_repeats_it(calls, capsys):
    arguments = ["sim", "grid", "--seed", "13", "--simulator", "icarus"]
    assert tilewright.main(arguments) == 1
    out, error = capsys.readouterr()
    assert "grid: FAILED sums: 1, not 2" in out
    assert "repeat with: tilewright " + " ".join(arguments) in out
    assert error == "tilewright sim: 1 of 4 tests failed, in grid\n"
    assert tilewright.main([*arguments, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["failed"], report["passed"], report["error"]["code"]) == (1, 3, 1)


def test_a_failure_does_not_keep_the_other_blocks_from_running(calls):
    assert tilewright.main(["sim", "--seed", "13"]) == 1
    assert [call[0] for call in calls] == bench_names()


def test_the_list_is_that_of_tilewright_list(calls, capsys):
    assert tilewright.main(["sim", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["blocks"]
    assert [row["block"] for row in listed] == bench_names()
    assert all(row["summary"].endswith(".") for row in listed)
    assert tilewright.main(["sim", "--list"]) == 0
    assert all(row["summary"] in capsys.readouterr().out for row in listed[:1])
    assert calls == []


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("systolic", "--rows 5 --cols 6 --dataflow is --format e4m3 --latency 2"),
        pytest.param(
            *("tensor_unit", "--rows 5 --format int8 --buffer-rows 99"), marks=pytest.mark.slow
        ),
        pytest.param(*("tensor_top", "--rows 4 --cols 3 --format int8"), marks=pytest.mark.slow),
    ],
)
def test_a_bench_is_asked_to_test_another_unit(block, options, monkeypatch, tmp_path, capsys):
    """The unit that `verilog` emits for the same options, told to the bench by its environment."""
    asked = []

    def run_bench(block, **given):
        asked.append((block, given))
        return BenchResult(block, "verilator", 1, 1, ("x",), 1.0, tmp_path)

    monkeypatch.setattr(bench_runner, "run_bench", run_bench)
    arguments = ["sim", block.replace("_", "-"), *options.split()]
    assert tilewright.main(arguments) == 1
    ((used, given),) = asked
    assert f"tilewright sim {block} --seed 1 {options}\n" in capsys.readouterr().out
    for name, value in given["environment"].items():
        monkeypatch.setenv(name, value)
    bench = importlib.import_module(f"sim.tb.{used}")
    design = emit(bench.design())
    assert design == emit(given["component"])
    words = ["verilog", "--component", *arguments[1:], "-o", str(tmp_path / "unit.v")]
    assert tilewright.main(words) == 0
    alone = (tmp_path / "unit.v").read_text()
    assert set(re.findall(r"^module (\w+)", alone, re.M)) <= set(design.instances)


def test_the_testbench_of_a_tma_unit_tests_the_one_asked_for(monkeypatch, tmp_path, capsys):
    asked = []

    def run_bench(block, **given):
        asked.append((block, given))
        return BenchResult(block, "verilator", 1, 1, ("x",), 1.0, tmp_path)

    monkeypatch.setattr(bench_runner, "run_bench", run_bench)
    options = ["--data-bits", "128", "--set", "scratchpads=3", "--set", "reduces=1"]
    assert tilewright.main(["sim", "tma_unit", *options]) == 1
    ((block, given),) = asked
    assert block == "tma_host"
    repeated = "--set width_bits=128 --set scratchpads=3 --set reduces=1"
    assert f"tilewright sim tma_unit --seed 1 {repeated}\n" in capsys.readouterr().out
    for name, value in given["environment"].items():
        monkeypatch.setenv(name, value)
    chosen = asked_tma()
    assert chosen == TmaChoice(TmaSizes(width_bits=128, scratchpads=3), reduces=True)
    units = [given["component"], chosen.design()]
    assert units[0].definition_name == units[1].definition_name
    for unit in units:
        unelaborated(unit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["grid", "--rows", "4"],
            "must come with BLOCK systolic or tensor_unit or tensor_top",
        ),
        (["--cols", "4"], "--cols must come with BLOCK systolic or tensor_unit or "),
        (
            ["systolic", "--buffer-rows", "4"],
            "--buffer-rows must come with --component tensor_unit",
        ),
        (["systolic", "--rows", "0"], "--rows must be an integer from 1 to 1024, not '0'"),
        (["tensor-unit", "--dataflow", "os"], "Tensor unit dataflow must be ws, not os"),
        (["gird"], "unknown block 'gird'; did you mean 'grid'?"),
        (["zzzzzz"], "unknown block 'zzzzzz'; one of accumulators, "),
        (["--waves", "grid"], "(BLOCK comes before it) must be a file that ends in .vcd, "),
        (["--waves", "a.vcd"], "BLOCK must be given with a file for --waves"),
        (["grid", "--simulator", "questa"], "questa"),
        (["grid", "--seed", "-1"], "must be an integer from 0"),
        (["tma", "--set", "reduces=1"], "--set must be for a floating-point unit, tma_unit or"),
        (["tma-top", "--set", "reduces=2"], "reduces must be an integer from 0 to 1, not 2"),
        (["tma_unit", "--set", "scratchpads=17"], "scratchpads must be an integer from 1 to 16"),
        (["tma_top", "--set", "commands=4"], "must be at least 8 in the testbench, not 4"),
        (["tma_top", "--set", "scratchpads=2", "--set", "ports=13"], "from 1 to 12, not 13"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(arguments, message, calls, capsys):
    assert tilewright.main(["sim", *arguments]) == 2
    out, error = capsys.readouterr()
    assert message in error and error.count("\n") == 1 and out == ""
    assert calls == []


def test_waves_go_to_the_file_or_below_build(calls):
    assert tilewright.main(["sim", "grid", "--waves", "a/b.vcd"]) == 0
    assert tilewright.main(["sim", "grid", "--waves"]) == 0
    assert [call[3] for call in calls] == [Path("a/b.vcd"), Path("build/waves/grid.vcd")]


def test_a_missing_simulator_is_exit_code_3(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert tilewright.main(["sim", "grid", "--simulator", "icarus"]) == 3
    assert "iverilog is not installed; fix: sudo apt-get install" in capsys.readouterr().err
