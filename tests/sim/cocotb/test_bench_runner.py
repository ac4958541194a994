"""The cocotb testbenches: they pass, they fail when they should, and they say so."""

import json
import re
from pathlib import Path

import pytest

import tilewright
from gen.design import Definition, Design, Port
from gen.verilog import emit
from hw.arch.errors import MissingToolError
from hw.arch.tma_sizes import TmaSizes
from hw.tma.reduction.beat_combiner import BeatCombiner
from sim.cocotb import bench_runner
from sim.cocotb.bench_runner import bench_names, run_bench
from sim.cocotb.tma_choice import TmaChoice
from sim.tb import accumulators, barrier, grid, pmu


def run(block, seed, capsys):
    code = tilewright.main(["sim", block, f"--seed={seed}", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0, report["error"]
    assert report["block"] == block and report["seed"] == seed
    assert report["tests"] == report["passed"] > 0 and report["failed"] == 0
    assert 0 < report["seconds"]


@pytest.mark.slow
def test_the_chip_passes_the_shortest_test_of_its_testbench(seed, heavy, capsys, monkeypatch):
    """An image that is refused, then a product."""
    monkeypatch.setenv("COCOTB_TEST_FILTER", "a_refused_image")
    run("chip", seed, capsys)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", bench_names())
def test_every_testbench_passes(block, seed, heavy):
    result = run_bench(block, seed=seed)
    assert result.failed == 0 < result.passed, result.failures


@pytest.mark.slow
@pytest.mark.parametrize("block", ["accumulators", "command", "pmu", "switch", "tma"])
def test_a_block_passes_on_icarus_too(block, seed, heavy):
    """Where nothing is known before it is set; the blocks that Icarus has time for."""
    result = run_bench(block, seed=seed, simulator="icarus")
    assert result.failed == 0 < result.passed, result.failures


@pytest.mark.slow
@pytest.mark.parametrize("faulty", [False, True])
def test_a_tma_unit_with_reductions_and_scratchpads_passes_its_testbench(
    faulty, seed, heavy, monkeypatch
):
    """It fails if a reduction is a plain store."""
    if faulty:
        combine = BeatCombiner.elaborate

        def store(self, platform):
            m = combine(self, platform)
            m.d.comb += self.o_combined.eq(self.i_stored)
            return m

        monkeypatch.setattr(BeatCombiner, "elaborate", store)
    sizes = TmaSizes(width_bits=64, landing_beats=32, descriptors=4, barriers=4, scratchpads=3)
    chosen = TmaChoice(sizes, commands=8, reduces=True)
    given = {"component": chosen.design(), "environment": chosen.environment}
    result = run_bench("tma_host", seed=seed, **given)
    assert result.tests == 9
    assert [name for name in result.failures if "slices" not in name] == []
    assert len(result.failures) == (7 if faulty else 0), result.failures


@pytest.mark.slow
@pytest.mark.parametrize("block", bench_names())
def test_every_block_passes_its_testbench(block, seed, heavy, capsys):
    run(block, seed, capsys)


def fake_model(monkeypatch, tmp_path, script):
    """A model that is this shell script."""
    model = tmp_path / emit(barrier.design()).top
    model.write_text(f"#!/bin/sh\n{script}\n")
    model.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench_runner, "build_model", lambda *args, **kwargs: (tmp_path, True))


RESULTS = "<testsuites><testsuite name='a'>{}</testsuite></testsuites>"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("script", "tests", "passed", "failure"),
    [
        ("kill -9 $$", 1, 0, "simulator: .* ended with code -9"),
        ("exit 0", 1, 0, "simulator: .*"),
        (f'echo "{RESULTS.format("")}" > $COCOTB_RESULTS_FILE', 1, 0, "simulator: no test ran"),
        (
            f'''echo "{RESULTS.format("<testcase name='a'><skipped/></testcase>")}" '''
            "> $COCOTB_RESULTS_FILE",
            1,
            0,
            "simulator: no test ran",
        ),
        (
            f'''echo "{RESULTS.format("<testcase name='a'/>")}" > $COCOTB_RESULTS_FILE; exit 7''',
            2,
            1,
            "simulator: .* ended with code 7",
        ),
        (
            'echo "{}" > $COCOTB_RESULTS_FILE'.format(
                RESULTS.format(
                    "<testcase name='a'/><testcase name='b'><failure message='x is 3'/></testcase>"
                    "<testcase name='c'><error message='y'/></testcase>"
                )
            ),
            3,
            1,
            "b: x is 3",
        ),
        (f'''echo "{RESULTS[:20]}" > $COCOTB_RESULTS_FILE; exit 1''', 1, 0, "simulator: .* code 1"),
    ],
)
def test_a_simulator_that_dies_or_runs_nothing_counts_as_a_failure(
    script, tests, passed, failure, monkeypatch, tmp_path
):
    fake_model(monkeypatch, tmp_path, script)
    result = run_bench("barrier")
    assert (result.tests, result.passed, result.failed) == (tests, passed, tests - passed)
    assert re.fullmatch(failure, result.failures[0])


def test_a_simulator_that_hangs_is_stopped(monkeypatch, tmp_path):
    fake_model(monkeypatch, tmp_path, "exec sleep 60")
    monkeypatch.setattr(bench_runner, "_LIMIT_SECONDS", 0.2)
    result = run_bench("barrier")
    assert (result.tests, result.failed) == (1, 1)
    assert result.failures == ("simulator: stopped after 0.2 s",)


@pytest.mark.slow
def test_a_model_that_cannot_be_built_is_a_failure_with_the_tools_words(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    text = "module barrier(x);\n  input x;\n  assign\nendmodule\n"
    definitions = {"barrier": Definition({"x": Port(False, 1)}, {})}
    result = run_bench("barrier", design=Design("barrier", text, definitions))
    assert (result.tests, result.failed) == (1, 1)
    assert result.failures == ("build: Build of barrier failed",)
    assert "syntax error" in result.log.read_text()
    left = [path for path in tmp_path.glob("verilator/*") if path.suffix != ".lock"]
    assert all((path / "verilated_vpi.o").exists() for path in left), "nothing half built"


def test_a_stream_without_data_has_no_payload_port():
    text = emit(pmu.design()).text
    assert "o_token__0__valid" in text
    assert "o_token__0__payload" not in text and "[-1:0]" not in text


def test_the_seed_reaches_the_tests_and_the_garbage(monkeypatch, tmp_path):
    fake_model(monkeypatch, tmp_path, 'echo "seed $COCOTB_RANDOM_SEED" "$@"')
    result = run_bench("barrier", seed=77)
    assert "seed 77 +verilator+rand+reset+2 +verilator+seed+78" in result.log.read_text()
    assert result.command == "tilewright sim barrier --seed 77"


def test_every_bench_is_a_module_with_a_summary_and_a_design():
    assert {"barrier", "chip"} < set(bench_names())
    for module in (accumulators, barrier, grid):
        assert module.__doc__ and module.__doc__.count("\n") == 0
        assert emit(module.design()).top


@pytest.mark.parametrize(("simulator", "tool"), [("icarus", "iverilog"), ("verilator", "g++")])
def test_a_missing_tool_is_named_with_the_line_that_mends_it(simulator, tool, monkeypatch):
    monkeypatch.setattr(
        "shutil.which", lambda name: None if name == tool else str(Path("/bin") / name)
    )
    with pytest.raises(MissingToolError, match=re.escape(f"fix: sudo apt-get install {tool}")):
        run_bench("barrier", simulator=simulator)
