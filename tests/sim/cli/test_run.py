"""``tilewright run``: its report, its files, its endings, and what it refuses at once."""

import hashlib
import json
import re
import time

import numpy as np
import pytest

import tilewright
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.operands import random_operand
from sim.oracle import product
from sim.run import driver
from sim.run.report import FIELDS, STATES
from sw.chip_program import ChipProgram

ENVELOPE = ["schema", "tilewright", "command", "tools", "error"]
SMALL = "--config tiny --set M=9 --set K=20 --set N=7"


def ran(line, capsys, *, code=0):
    """The report of a run that ends with this code; nothing else is on standard output."""
    assert tilewright.main(["run", "matmul", *line.split(), "--json", "-"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("backend", ["emulator", "golden"])
def test_the_report_has_every_field_in_order(backend, capsys):
    report = ran(f"{SMALL} --backend {backend} --seed 3", capsys)
    assert list(report) == [*ENVELOPE, *FIELDS] and report["error"] is None
    assert report["verified"] is True and report["backend"] == backend and report["seed"] == 3
    assert report["params"] == {"M": 9, "K": 20, "N": 7, "MM": 4096, "NN": 256}
    assert report["config"] == "tiny" and (report["dtype"], report["out_dtype"]) == ("bf16",) * 2


def test_the_defaults_are_a_product_of_256_on_small(capsys):
    report = ran("--backend golden --dtype int8", capsys)
    assert report["config"] == "small" and report["macs"] == 1 << 24
    assert report["peak_macs_per_cycle"] == 2048 and report["out_dtype"] == "int32"
    assert all(report["params"][name] == 256 for name in "MNK")


@pytest.mark.parametrize("pieces", [[], ["--set", "out=fp32"], ["--dtype", "int8"]])
def test_people_read_bytes_error_and_the_verdict(pieces, capsys):
    assert tilewright.main(["run", "matmul", *SMALL.split(), "--backend=emulator", *pieces]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("matmul of M = 9, K = 20, N = 7, MM = 4096, NN = 256; ")
    assert lines[0].endswith("emulator on tiny") and lines[-1] == "VERIFIED"
    assert re.fullmatch(
        r"  predicted [\d,]+ cycles, utilization 0\.\d{4} of \d+ MAC/cycle", lines[1]
    )
    assert any("bytes read" in line for line in lines)
    (line,) = (line for line in lines if "golden against float64: " in line)
    assert re.fullmatch(r"  golden against float64: (equal|error 0\.\d\d of its bound)", line)


def test_inputs_of_a_file_give_outputs_in_a_file(capsys, tmp_path, seed):
    rng = np.random.default_rng(seed)
    a = random_operand(rng, (11, 18), bf16, special_share=0.01)
    b = random_operand(rng, (18, 5), bf16, special_share=0.01)
    inputs, outputs = tmp_path / "in.npz", tmp_path / "new" / "out.npz"
    np.savez(inputs, A=a.view(np.uint16), B=b.view(np.uint16))
    line = f"--config tiny --backend emulator --inputs {inputs} --outputs {outputs}"
    report = ran(line, capsys)
    expected = product(a, b, bf16.dtype)
    with np.load(outputs, allow_pickle=False) as stored:
        assert stored.files == ["C"] and stored["C"].tobytes() == expected.tobytes()
        assert stored["C"].dtype == np.uint16
    assert report["params"]["M"] == 11 and report["params"]["K"] == 18
    assert report["output_sha256"] == hashlib.sha256(expected.tobytes()).hexdigest()
    both = hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest()
    assert report["input_sha256"] == both
    assert ran(f"{line} --set K=17", capsys, code=2)["error"]["where"] == "--set"


def test_the_image_is_written_and_is_that_of_the_report(capsys, tmp_path):
    path = tmp_path / "image"
    report = ran(f"{SMALL} --backend emulator --image-out {path}", capsys)
    raw = path.read_bytes()
    assert len(raw) == report["image_bytes"]
    assert hashlib.sha256(raw).hexdigest() == report["image_sha256"]
    assert ChipProgram.unpack(named["tiny"], raw).pack() == raw


def test_the_schedule_of_a_report_is_one_that_can_be_given(capsys, tmp_path):
    first = ran(f"{SMALL} --backend emulator --set slots=1 --set place_seed=5", capsys)
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(first["schedule"]))
    line = f"{SMALL} --backend emulator --set place_seed=5 --schedule {path}"
    again = ran(line, capsys)
    assert again["schedule"] == first["schedule"]
    assert again["image_sha256"] == first["image_sha256"]


def test_placements_differ_and_bytes_do_not(capsys):
    line = "--config small --set M=33 --set K=40 --set N=35 --backend emulator --set place_seed="
    reports = [ran(f"{line}{seed}", capsys) for seed in (1, 2, 3)]
    assert len({report["image_sha256"] for report in reports}) > 1
    assert len({report["output_sha256"] for report in reports}) == 1


def test_a_wrong_answer_is_exit_code_1_and_never_verified(capsys, monkeypatch, tmp_path):
    def wrong(program, inputs, **named):
        (array,) = truth(program, inputs, **named).values()
        array = array.copy()
        array.view(np.uint16)[2, 3] ^= 1
        return {"C": array}

    truth = driver.golden
    monkeypatch.setattr(driver, "golden", wrong)
    assert tilewright.main(["run", "matmul", *SMALL.split(), "--backend", "emulator"]) == 1
    out, error = capsys.readouterr()
    assert out.endswith("NOT VERIFIED\n") and "VERIFIED" not in out.replace("NOT VERIFIED", "")
    assert error.startswith("tilewright run: 1 of 63 elements of C differ from golden; C[2, 3] is")
    report = ran(f"{SMALL} --backend emulator", capsys, code=1)
    assert report["error"]["kind"] == "wrong-result" and report["verified"] is False
    assert report["bit_exact"] is False and report["macs"] == 9 * 20 * 7


REFUSED = [
    ("matmull", "", "unknown kernel 'matmull'; did you mean 'matmul'"),
    ("matmul", "--set rowpar=2", "unknown key 'rowpar'; did you mean 'row_par'"),
    ("matmul", "--set M=0", "M must be an integer of 1 or more, not 0"),
    ("matmul", "--set out=fp23", "unknown format 'fp23'; did you mean 'fp32'"),
    ("matmul", "--config tiny --set row_par=9", "must be at most the chip's 2 PCUs, not 9 x 1"),
    ("matmul", "--dtype int8 --set out=bf16", "`C` is bf16 and cannot take a tile of int32"),
    ("matmul", "--config smal", "unknown configuration 'smal'; did you mean 'small'"),
    ("matmul", "--inputs absent.npz", "cannot read 'absent.npz': No such file or directory"),
    ("matmul", "--schedule absent.json", "cannot read 'absent.json': No such file or directory"),
    ("matmul", "--rtl absent.v", "cannot read 'absent.v': No such file or directory"),
    ("matmul", "--outputs /dev/null/a.npz", "--outputs must be a file that can be written"),
    ("matmul", "--backend golden --image-out x", "--image-out must not be given with back end"),
    ("matmul", "--backend emulator --warm", "--warm must not be given with back end emulator"),
    ("matmul", "--backend cocotb --latency 7", "--latency must not be given with back end cocotb"),
]


@pytest.mark.parametrize(("kernel", "line", "message"), REFUSED)
def test_what_cannot_work_is_refused_in_one_line_before_anything_is_built(
    kernel, line, message, capsys, monkeypatch
):
    monkeypatch.setattr(driver, "open_backend", lambda *given: pytest.fail("it was built"))
    began = time.monotonic()
    assert tilewright.main(["run", kernel, *line.split()]) == 2
    assert time.monotonic() - began < 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and message in error


def test_a_file_of_verilog_must_hold_a_chip(capsys, tmp_path):
    path = tmp_path / "other.v"
    path.write_text("module other(input a);\nendmodule\n")
    assert tilewright.main(["run", "matmul", "--rtl", str(path)]) == 2
    assert "must have a module tilewright" in capsys.readouterr().err


def test_a_configuration_of_a_file_runs_too(capsys, tmp_path):
    assert tilewright.main(["config", "tiny", "--toml"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(
        capsys.readouterr().out.replace("capacity_bytes = 4096", "capacity_bytes = 8192")
    )
    line = f"--config {path} --set M=9 --set K=20 --set N=7 --backend emulator"
    report = ran(line, capsys)
    assert report["verified"] and report["config"] == str(path)
    assert report["config_sha256"] != ran(f"{SMALL} --backend golden", capsys)["config_sha256"]


def test_the_native_model_fills_every_field(capsys, seed, heavy):
    line = f"{SMALL} --seed {seed} --latency 30 --jitter 5 --stall 0.3"
    report = ran(line, capsys)
    assert [name for name in FIELDS if report[name] is None] == []
    assert report["verified"] and report["cycles"] > report["launch_to_first_mac"] > 60
    assert report["launches"] == 1 and report["latency"] == 30
    counters = report["counters"].values()
    assert {sum(unit[state] for state in STATES) for unit in counters} == {report["cycles"]}
    assert sum(unit["macs"] or 0 for unit in counters) == report["macs_issued"]
    emulated = ran(f"{SMALL} --seed {seed} --backend emulator", capsys)
    for name in ("output_sha256", "input_sha256", "image_sha256", "dram_bytes_written"):
        assert report[name] == emulated[name]
    # Of fewer cycles than a thousand a constant error would be a large share.
    larger = f"--config tiny --set M=20 --set K=40 --set N=20 --seed {seed}"
    warm, cold = ran(f"{larger} --warm", capsys), ran(larger, capsys)
    assert warm["launches"] == 2 and 0 < warm["cycles"] < cold["cycles"]
    for unit in warm["counters"].values():
        assert sum(unit[state] for state in STATES) == warm["cycles"]
    assert 0.95 < warm["predicted_cycles"] / warm["cycles"] < 1.05
    assert 0.95 < cold["predicted_cycles"] / cold["cycles"] < 1.05
    failed = ran(f"{SMALL} --error-at read:3:slverr", capsys, code=5)
    assert "READ_SLVERR" in failed["error"]["message"] and failed["verified"] is None
    hung = ran(f"{SMALL} --max-cycles 500", capsys, code=4)
    assert "500 cycles have passed" in hung["error"]["message"]
    assert "the image is live" in hung["error"]["message"] and hung["counters"] is not None


def test_cocotb_gives_the_bytes_of_the_emulator(capsys, seed, heavy):
    line = f"{SMALL} --seed {seed}"
    emulated = ran(f"{line} --backend emulator", capsys)
    report = ran(f"{line} --backend cocotb --stall 0.2", capsys)
    # Its memory answers at once, so no cycles are predicted at a latency.
    missing = ["latency", "jitter", "predicted_cycles"]
    assert [name for name in FIELDS if report[name] is None] == missing
    assert report["verified"] and report["cycles"] > report["launch_to_first_mac"] > 0
    for name in ("output_sha256", "image_sha256", "dram_bytes_written", "dram_bytes_read"):
        assert report[name] == emulated[name]
    hung = ran(f"{line} --backend cocotb --max-cycles 300", capsys, code=4)
    assert "300 cycles have passed" in hung["error"]["message"]
