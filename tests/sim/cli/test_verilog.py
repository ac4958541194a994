# amaranth: UnusedElaboratable=no
"""``tilewright verilog``: where the text goes, what its head says, what its help lists."""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from gen.lint import waivers
from gen.verilog import emit
from hw.arch.errors import BadInputError
from hw.array.cell_config import CellConfig
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.unit_parameters import FORMATS, PAIRS
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.tpu_catalog import PRESETS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import named as formats
from hw.tma.engine import TmaEngine
from sim.cli.unit_options import PRESET_NAMES, add_systolic
from tests.verilog_tools import faults_of_verilator

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SMALL = "--component systolic --rows 2 --cols 3 --format int8"


def run(words, capsys):
    assert tilewright.main(["verilog", *words.split()]) == 0
    return capsys.readouterr()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (
            "--component systolic --rows 16 --cols 16 --dataflow ws --format bf16",
            "systolic_unit_r16_c16_ws_bf16_l1_a512_r0_t1_none_b0_top",
        ),
        ("--component array --rows 2 --cols 2", "stationary_array_r2_c2_ws_bf16_l1_s1_b0"),
        ("--config tiny --component matrix-unit", "matrix_unit_r4_c2_bf16_int8_l2_a256_s0"),
    ],
)
def test_without_an_output_a_file_below_build_is_written_and_named(words, name, here, capsys):
    said = run(words, capsys).out
    assert [path.relative_to(here) for path in here.rglob("*.v")] == [Path(f"build/{name}.v")]
    assert said.startswith(f"build/{name}.v: module ") and said.count("\n") == 1


@pytest.mark.slow
def test_a_file_gives_its_name_to_the_output_and_not_to_the_text(here, capsys):
    (here / "mine.toml").write_text(
        "rows = 2\ncolumns = 2\nwidth_bits = 64\n[agcu]\ncount = 1\naxi_data_bits = 64\n"
    )
    assert run("--config ./mine.toml", capsys).out.startswith("build/mine.v: module tilewright")
    text = Path("build/mine.v").read_text()
    assert "--config FILE.toml\n" in text and "mine" not in text


def test_a_preset_gives_its_name(here, capsys):
    assert run("--preset tpu-v3", capsys).out.startswith("build/tpu-v3.v: module systolic_unit_")
    assert "matrix unit of tpu-v3, 2 per core" in Path("build/tpu-v3.v").read_text()


@pytest.mark.few(1)
@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_standard_output_gets_the_text_and_nothing_else(output, here, capsys):
    out, error = run(f"{SMALL} -o {output}", capsys)
    assert out.startswith("// systolic_unit_r2_c3_") and out.endswith("endmodule\n")
    assert error.startswith("standard output: module systolic_unit_r2_c3_")
    assert list(here.iterdir()) == []
    run(f"{SMALL} -o a.v", capsys)
    assert Path("a.v").read_text() == out


@pytest.mark.few(1)
@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1"])
def test_a_pipe_is_written_to(output, here):
    line = f"{sys.executable} -m tilewright verilog {SMALL} -o {output} | grep -c endmodule"
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert int(done.stdout) > 5 and "fault" not in done.stderr
    assert list(here.iterdir()) == []


def test_a_reader_that_goes_away_is_no_fault(here):
    line = f"{sys.executable} -m tilewright verilog {SMALL} -o - | true"
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert "fault" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("- --json -", "--json must be a file of its own, not '-', which --output writes too"),
        ("/proc/nothing.v", "must be a file that can be written, not '/proc/nothing.v'"),
        (".", "--output must be a file that can be written, not '.'\n"),
        ("file/below.v", "--output must be a file that can be written, not 'file/below.v'"),
        ("/dev/full", "--output must be a file that can be written, not '/dev/full': No space"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(output, message, here, capsys):
    (here / "file").touch()
    assert tilewright.main(["verilog", *SMALL.split(), "-o", *output.split()]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_report_is_of_the_file(here, capsys):
    report = json.loads(run(f"{SMALL} -o a.v --json", capsys).out)
    content = Path("a.v").read_bytes()
    assert report["file"] == "a.v" and report["bytes"] == len(content)
    assert report["sha256"] == hashlib.sha256(content).hexdigest()
    assert report["lines"] == content.count(b"\n")


HEADED = [
    SMALL,
    f"{SMALL} --dataflow os --latency 2 --out int8 --bias --result-rows 64",
    "--component systolic --rows 2 --cols 2 --dataflow is --format e4m3,e5m2 --out bf16 --bias "
    "--tiles-ahead 2",
    "--component systolic --rows 2 --cols 2 --format bf16,int8 --adder bottom",
    "--component array --rows 2 --cols 2 --raw-edges --format bf16,fp16",
    "--component array --rows 1 --cols 2 --dataflow os",
    "--component systolic --rows 2 --cols 2 --format mxe4m3,mxe5m2",
    "--component tensor_unit --rows 2 --cols 2 --format int8 --buffer-rows 8",
    "--config tiny --component matrix_unit",
    pytest.param("--config tiny", marks=pytest.mark.slow),
]


def ports(text, top):
    """Width of each port of a module, from its declarations."""
    body = text[text.index(f"\nmodule {top}(") :]
    body = body[: body.index("\nendmodule")]
    found = re.findall(r"^  (?:in|out)put (?:\[(\d+):0\] )?(\S+?) ?;$", body, re.MULTILINE)
    return {name: int(high or 0) + 1 for high, name in found}


@pytest.mark.few(2)
@pytest.mark.parametrize("words", HEADED)
def test_the_head_says_what_it_is_and_how_to_make_it_again(words, here, capsys):
    report = json.loads(run(f"{words} -o a.v --json", capsys).out)
    text = Path("a.v").read_text()
    head, _, design = text.partition("\n\n")
    assert head.isascii() and all(line.startswith("//") for line in head.splitlines())
    assert head.startswith(f"// {report['top']}: ")
    assert not re.search(r"/(home|root|tmp|work)/|\.py\b|\d\d:\d\d:\d\d|20\d\d-", head)
    (command,) = re.findall(r"^//   (tilewright verilog .*)$", head, re.MULTILINE)
    # Elsewhere, from the line in the file alone.
    run(command.removeprefix("tilewright verilog ") + " -o again.v", capsys)
    assert Path("again.v").read_text() == text
    # Every port is there with its width, one by one or as part of an interface.
    said = dict(re.findall(r"^//   (\w+)  (?:stream )?(?:in|out), (\d+) bits?", head, re.MULTILINE))
    groups = tuple(
        name.split("__")[0] for name in re.findall(r"^//   (\S+)\*  \d+ ports", head, re.MULTILINE)
    )
    seen = set()
    for port, width in ports(text, report["top"]).items():
        name, _, part = port.partition("__")
        if name in groups:
            seen.add(name)
            continue
        seen.add(name)
        assert part in ("valid", "ready") or int(said[name]) == width, port
    assert seen == {*said, *groups}
    assert "module" not in head.splitlines()[0] and design.endswith("endmodule\n")


def test_fields_of_a_payload_are_named_with_their_bits(here, capsys):
    text = run(f"{SMALL} -o -", capsys).out
    assert "//     [31:0] data: lane r = 0..1 at bit 16*r: 2 int8, the lowest k in the low" in text
    assert "//     [33] accumulate: add to the sums of the previous tile, row by row\n" in text


def test_source_marks_name_no_machine_and_change_nothing_else(here, capsys):
    run("--config tiny --component matrix_unit -o plain.v", capsys)
    run("--config tiny --component matrix_unit --source -o marked.v", capsys)
    plain, marked = (Path(name).read_text() for name in ("plain.v", "marked.v"))
    marks = re.findall(r'\(\* src = "([^"]*)" \*\)', marked)
    assert any(re.fullmatch(r"hw/matrix/matrix_unit\.py:\d+", mark) for mark in marks)
    # Of a structure, which writes its own text, too.
    assert any(re.fullmatch(r"hw/array/stationary\.py:\d+", mark) for mark in marks)
    places = [place for mark in marks for place in mark.split("|")]
    assert all(re.fullmatch(r"(hw|amaranth)(/\w+)*\.py:\d+", place) for place in places)
    without = re.sub(r'(^ *)?\(\* src = "[^"]*" \*\)(?(1)\n| )', "", marked, flags=re.MULTILINE)
    assert without.split("\nmodule")[1:] == plain.split("\nmodule")[1:]


def test_the_waivers_of_a_file_are_written_beside_it(here, capsys):
    run(f"{SMALL} -o unit.v --waivers unit.vlt", capsys)
    assert Path("unit.vlt").read_text() == waivers("*unit.v")
    top = re.search(r"^// (\w+):", Path("unit.v").read_text())[1]
    assert faults_of_verilator(here / "unit.v", top, waive=here / "unit.vlt") == ""
    for output, rule in [
        ("unit.vlt", "--waivers must be a file of its own, not 'unit.vlt'"),
        ("-", "must be another file than that of --output"),
    ]:
        assert tilewright.main(["verilog", *SMALL.split(), "-o", output, "--waivers=unit.vlt"]) == 2
        assert rule in capsys.readouterr().err


def test_a_design_of_its_own_has_a_head_too():
    design = emit(TmaEngine(width_bits=64))
    assert design.file == design.head + design.text and design.text.startswith("module ")
    assert design.head.isascii() and design.head.startswith(f"// {design.top}: TMA engine: moves ")
    assert "hw.tma.engine.TmaEngine(width_bits=64, address_bits=48, " in design.head
    assert "//   outstanding    16\n" in design.head
    assert "//   o_idle  out, 1 bit: No burst is open or unanswered" in design.head


def test_a_design_has_no_head():
    """What is built from a design is kept by its digest, which a comment must not change."""
    config = UnitConfig(ArrayConfig(1, 1, Dataflow.WS, (formats["int8"],), 1))
    assert "//" not in emit(SystolicUnit(config)).text


def test_the_options_tell_what_there_is():
    assert PRESET_NAMES == tuple(PRESETS)
    for name in formats:
        try:
            CellConfig((formats[name],), 1)
        except BadInputError:
            assert name not in FORMATS
        else:
            assert name in FORMATS
    for first in formats:
        for second in formats:
            try:
                CellConfig((formats[first], formats[second]), 1)
            except BadInputError:
                offered = False
            else:
                offered = True
            listed = any({first, second} == set(pair.split(",")) for pair in PAIRS)
            assert listed == offered


#: Option, its bounds, and a unit that has them.
BOUNDS = [
    ("--rows", 1, 1024, lambda n: ArrayConfig(n, 1, Dataflow.WS, (formats["int8"],))),
    ("--cols", 1, 1024, lambda n: ArrayConfig(1, n, Dataflow.WS, (formats["int8"],))),
    ("--latency", 1, 3, lambda n: ArrayConfig(1, 1, Dataflow.WS, (formats["int8"],), n)),
    ("--accumulator-rows", 1, 65536, lambda n: UnitConfig(SOME, accumulator_rows=n)),
    ("--tiles-ahead", 1, 64, lambda n: UnitConfig(SOME, tiles_ahead=n)),
    ("--result-rows", 1, 65536, lambda n: UnitConfig(SOME, result_rows=n)),
]
SOME = ArrayConfig(1, 1, Dataflow.WS, (formats["int8"],))


@pytest.mark.parametrize(("option", "low", "high", "made"), BOUNDS)
def test_an_option_has_the_bounds_of_the_parameter(option, low, high, made):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_systolic(parser)
    beyond = 2 * high if option == "--result-rows" else high + 1
    for value in (low, high):
        parser.parse_args([option, str(value)])
        made(value)
    for value in (low - 1, beyond):
        with pytest.raises(argparse.ArgumentError):
            parser.parse_args([option, str(value)])
        if value:
            with pytest.raises(BadInputError):
                made(value)


def test_the_help_lists_formats_and_presets(capsys):
    with pytest.raises(SystemExit):
        tilewright.main(["verilog", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for word in (*FORMATS, *PAIRS, *PRESET_NAMES, "build/NAME.v", "default small"):
        assert word in said
