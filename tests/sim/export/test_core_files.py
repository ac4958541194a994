"""Files of an export: contents of the description for FuseSoC, lint, cases."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim.export.cases.result_vectors import result_vectors
from tilewright import main


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    folder = tmp_path_factory.mktemp("core")
    assert main(["export", "--component", "barrier", "-o", str(folder)]) == 0
    return folder


def test_every_file_of_the_list_is_there_and_the_list_of_sources_too(core):
    manifest = json.loads((core / "export.json").read_text())
    written = {path.name for path in core.iterdir()}
    assert written == {*manifest["files"], "export.json"}
    sources = (core / "tilewright_barrier.f").read_text().split()
    assert set(sources) <= written and len(sources) == 3
    text = (core / "tilewright_barrier.core").read_text()
    assert all(f"- {name}: " in text for name in sources)
    assert text.startswith("CAPI=2:\nname: tilewright:cores:barrier:")


def test_a_check_that_fails_ends_icarus_with_an_error(core):
    """Without -N vvp waits for commands at $stop, and goes on at the end of its input."""
    assert 'test_args=["-N"] if simulator == "icarus"' in (core / "run.py").read_text()
    assert "      vvp_options: [-N]" in (core / "tilewright_barrier.core").read_text().splitlines()


def test_an_export_is_the_same_again(core, tmp_path):
    assert main(["export", "--component", "barrier", "-o", str(tmp_path)]) == 0
    for path in core.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_another_seed_changes_the_stimuli_alone(core, tmp_path):
    assert main(["export", "--component", "barrier", "--seed", "7", "-o", str(tmp_path)]) == 0
    different = {
        path.name
        for path in core.iterdir()
        if (tmp_path / path.name).read_bytes() != path.read_bytes()
    }
    assert different == {"vectors.json", "export.json"}


def test_the_testbench_imports_nothing_of_ours():
    code = (
        "import ast, sys\n"
        "names = set()\n"
        "for file in sys.argv[1:]:\n"
        "    for node in ast.walk(ast.parse(open(file).read())):\n"
        "        if isinstance(node, ast.Import):\n"
        "            names |= {each.name.split('.')[0] for each in node.names}\n"
        "        if isinstance(node, ast.ImportFrom):\n"
        "            names.add(node.module.split('.')[0])\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))\n"
    )
    folder = Path(__file__).resolve().parents[3] / "sim" / "export"
    files = [folder / "core_testbench.py", folder / "run_testbench.py"]
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True)
    assert done.stdout.split() == ["cocotb", "cocotb_tools", "cocotbext"]


def test_vectors_of_a_matrix_are_what_a_driver_reads(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-(2**31), 2**31, (6, 8)).astype(np.int32)

    def decode(vectors):
        words = np.ascontiguousarray(vectors).view(np.int32).reshape(2, 6, 4)
        return np.concatenate([words[0], words[1]], axis=1)

    vectors = result_vectors(decode, matrix, vectors=12, vector_bytes=16)
    assert (decode(vectors) == matrix).all()


def test_the_idle_case_is_in_every_core_and_results_in_the_others(core):
    cases = [case["name"] for case in json.loads((core / "vectors.json").read_text())["cases"]]
    assert cases == ["idle", "operations"]


@pytest.mark.parametrize(
    ("instructions", "cases"),
    [(2, ["idle", "register_map"]), (64, ["idle", "register_map", "two_layers"])],
)
def test_the_instructions_of_a_tensor_top_that_may_wait_are_a_parameter(
    instructions, cases, tmp_path
):
    words = f"export --component tensor_top --rows 2 --cols 2 --instructions {instructions}"
    assert main([*words.split(), "-o", str(tmp_path)]) == 0
    vectors = json.loads((tmp_path / "vectors.json").read_text())
    assert [case["name"] for case in vectors["cases"]] == cases
    head = (tmp_path / "tilewright_tensor_top_modules.v").read_text().partition("\n\n")[0]
    assert f" --instructions {instructions} " in head
    assert re.search(rf"^//   instructions +{instructions}$", head, re.MULTILINE)
