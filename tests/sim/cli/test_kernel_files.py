"""Kernels of a user's file: run, listed, drawn; what is wrong with the file is one line."""

import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
from sim.cli.kernel_lookup import load_kernel
from sim.cli.kernel_options import FORMATS
from sim.run import driver

ROOT = Path(__file__).resolve().parents[3]
README = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)

PRODUCT = '''
import tilewright as tw
from dataclasses import dataclass
from beside import rows


@dataclass
class Block:
    rows: "int" = rows


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def product(A, B, C, MM=Block().rows):
    """Multiply matrices."""
    for i in tw.metapipe(A.shape[0], MM):
        a = tw.load_tile(A[i, :])
        for j in tw.metapipe(B.shape[1]):
            tw.store_tile(C[i, j], a @ tw.load_tile(B[:, j]))


@product.reference
def _(A, B):
    return A @ B
'''
COPY = """
import tilewright as tw


@tw.kernel("X[M] -> Y[M]")
def copy(X, Y, offset=0, scale=1.5, deep=False):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i], tw.load_tile(X[i]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("rows = 16\n")
    (tmp_path / "product.py").write_text(PRODUCT)
    (tmp_path / "copy.py").write_text(COPY)
    (tmp_path / "both.py").write_text(PRODUCT + COPY + "\nagain = copy\n")
    return tmp_path


def ran(line, capsys, *, code=0):
    assert tilewright.main([*line.split(), "--json", "-"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["product.py", "product.py:product", "./both.py:product"])
@pytest.mark.parametrize("backend", ["emulator", "golden"])
def test_a_kernel_of_a_file_runs_as_one_of_the_project(name, backend, folder, capsys):
    sizes = "--set M=33 --set K=20 --set N=9 --config tiny --seed 2"
    report = ran(f"run {name} {sizes} --backend {backend}", capsys)
    known = ran(f"run matmul {sizes} --backend {backend}", capsys)
    for field in ("verified", "macs", "output_sha256", "input_sha256", "error_bound"):
        assert report[field] == known[field], field
    assert report["kernel"] == "product" and report["params"]["MM"] == 16
    assert not list(folder.rglob("__pycache__")) or name == "./both.py:product"
    assert str(folder) not in sys.path


def test_softmax_of_the_readme_runs_by_command_on_golden(folder, capsys):
    (text,) = (block for block in README if "def softmax" in block)
    (folder / "mine.py").write_text(text)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 30), np.float32)
    np.savez("in.npz", X=x)
    Path("precise.toml").write_text("rows = 2\ncolumns = 2\n[pcu]\nfunction_bits = 24\n")
    e = np.exp(x - x.max(axis=1, keepdims=True))
    exact = e / e.sum(axis=1, keepdims=True)
    errors = []
    for config in ("tiny", "precise.toml"):
        for more in ("", "--dtype fp32", "--dtype fp32 --inputs in.npz --outputs out.npz"):
            report = ran(f"run mine.py:softmax --backend golden --config {config} {more}", capsys)
            assert report["verified"] and report["macs"] == 0 and report["max_abs_err"] is None
        with np.load("out.npz") as stored:
            errors.append(np.abs(stored["Y"] - exact).max())
    # A chip decides the significant bits of exp and 1 / x: 16 of `tiny`, 24 of the other.
    assert 1e-6 < errors[0] < 2.0**-15 and errors[1] < 1e-6
    assert ran("run mine.py:softmax --backend emulator --config tiny", capsys)["verified"]


def test_options_of_a_kernel_are_of_the_type_of_their_default(folder, capsys):
    line = "run copy.py --config tiny --backend golden --set M=5 --set"
    params = ran(f"{line} offset=0 --set scale=2 --set deep=true", capsys)["params"]
    assert params == {"M": 5, "offset": 0, "scale": 2, "deep": True}
    for value, read in (("2.5", 2.5), ("-1e-3", -0.001), (".5", 0.5)):
        assert ran(f"{line} scale={value}", capsys)["params"]["scale"] == read
    for setting, rule in (
        ("offset=x", "offset must be an integer, not 'x'"),
        ("offset=true", "offset must be an integer, not True"),
        ("scale=x", "scale must be a number, not 'x'"),
        ("scale=٣.٥", "scale must be a number, not '٣.٥'"),
        ("deep=1", "deep must be true or false, not 1"),
    ):
        assert ran(f"{line} {setting}", capsys, code=2)["error"]["message"] == rule


def test_a_kernel_without_inputs_runs(folder, capsys):
    (folder / "zeros.py").write_text(
        'import tilewright as tw\n@tw.kernel("-> Y[M]")\ndef zeros(Y):\n'
        "    for i in tw.metapipe(Y.shape[0]):\n        tw.store_tile(Y[i], tw.zeros(1, i))\n"
    )
    report = ran("run zeros.py --backend golden --set M=9", capsys)
    assert report["verified"] and report["dtype"] == "int8"


def test_list_shows_the_kernels_of_a_file(folder, capsys):
    report = ran("list both.py", capsys)
    assert [row["name"] for row in report["kernels"]] == [
        "both.py:product",
        "both.py:copy",
        "both.py:again",
    ]
    product, copy, _ = report["kernels"]
    assert product["summary"] == "A[M, K], B[K, N] -> C[M, N]; Multiply matrices."
    sizes = "M = 256, K = 256, N = 256, MM = 16"
    assert product["parameters"] == f"{sizes}; formats bf16, fp16, int8, e4m3, e5m2"
    options = "M = 256, offset = 0, scale = 1.5, deep = False"
    formats = "bf16, fp16, int8, e4m3, e5m2, fp32, int32"
    assert copy["parameters"] == f"{options}; formats {formats}"
    assert "configs" not in report


def test_list_shows_a_kernel_that_cannot_be_traced_and_keeps_what_it_prints(folder, capsys):
    (folder / "bad.py").write_text(COPY.replace("    for", "    print('seen', absent)\n    for"))
    (row,) = ran("list bad.py", capsys)["kernels"]
    assert row["parameters"].endswith("; formats unknown: run it for the reason")
    (folder / "fixed.py").write_text(COPY.replace("X[M]", "X[M]: fp32"))
    assert tilewright.main(["list", "fixed.py"]) == 0
    assert "deep = False; formats of the signature\n" in capsys.readouterr().out


def test_the_formats_that_list_shows_are_those_that_run(capsys, seed, draws):
    rows = ran("list", capsys)["kernels"]
    assert {"softmax", "rms_norm", "matmul"} <= {row["name"] for row in rows}
    for row in random.Random(seed).sample(rows, draws(8, len(rows))):
        formats = row["parameters"].rpartition("; formats ")[2].split(", ")
        if formats == ["of the signature"]:
            formats = list(FORMATS)
        dims = load_kernel(row["name"]).signature.dims
        # Filters of one pixel: images and results of a convolution have the same sizes.
        ones = {"R", "S"} if row["name"] == "conv2d" else {}
        sizes = " ".join(f"--set {dim}={1 if dim in ones else 6}" for dim in dims)
        for dtype in FORMATS:
            line = f"run {row['name']} --backend golden --dtype {dtype} --config tiny {sizes}"
            code = tilewright.main(line.split())
            assert code == (0 if dtype in formats else 2), line
    capsys.readouterr()


@pytest.mark.parametrize("name", ["matmul", "product.py:product"])
def test_map_describes_and_draws_a_compiled_kernel(name, folder, capsys):
    line = f"map {name} --config tiny --set M=40 --set N=8 --set K=9"
    report = ran(f"{line} --svg map.svg", capsys)
    path = folder / report["svg"]
    assert path.read_text().startswith("<svg")
    assert tilewright.main(line.split()) == 0
    text = capsys.readouterr().out
    assert text.splitlines() == report["map"] and "what bounds the speed: " in text
    assert tilewright.main([*line.split(), "--svg", "-"]) == 0
    assert capsys.readouterr().out.strip() == path.read_text().strip()


def test_the_picture_of_a_map_is_written_before_a_reader_of_the_text_ends(folder, monkeypatch):
    seen = []
    monkeypatch.setattr("builtins.print", lambda *words: seen.append((folder / "m.svg").exists()))
    line = "map matmul --config tiny --set M=8 --set N=8 --set K=8 --svg m.svg"
    assert tilewright.main(line.split()) == 0 and seen[0]


def test_a_picture_of_a_map_is_refused_that_does_not_end_in_svg(folder, capsys):
    assert tilewright.main("map matmul --config tiny --svg m.png".split()) == 2
    message = "--svg must be a file that ends in .svg, not 'm.png'"
    assert message in capsys.readouterr().err and not (folder / "m.png").exists()


NULL_BYTES = "SyntaxError" if sys.version_info >= (3, 11, 4) else "ValueError"
BAD = [
    ("", "mine.py must hold a kernel, a function under @tw.kernel(...)"),
    ("def f(:\n", "mine.py:1: SyntaxError: invalid syntax"),
    ("x = 1\nimport nonesuch\n", "mine.py:2: ModuleNotFoundError: No module named 'nonesuch'"),
    ("\n\n1 / 0\n", "mine.py:3: ZeroDivisionError: division by zero"),
    ("import sys\nsys.exit(0)\n", "mine.py:2: SystemExit: 0"),
    ("raise ValueError('a\\nb')\n", "mine.py:1: ValueError: a b"),
    ("raise ValueError\n", "mine.py:1: ValueError"),
    ("x\0", f"mine.py:1: {NULL_BYTES}: source code string cannot contain null bytes"),
    ("x = " + "(" * 300, "mine.py:1: SyntaxError: too many nested parentheses"),
    (COPY.replace("X[M]", "X[M"), "mine.py:5: "),
    (
        COPY.replace("tw.load_tile", "tw.lod_tile"),
        "mine.py:8: tilewright has no `lod_tile`; did you mean 'load_tile'",
    ),
    (COPY.replace("tw.load_tile(X[i])", "absent"), "mine.py:8: NameError: name 'absent'"),
    (COPY + "\n\n@copy.reference\ndef _(X):\n    return absent\n", "mine.py:13: NameError"),
    (COPY + "\n\n@copy.reference\ndef _(X):\n    return X[1:]\n", "mine.py:11: Reference of"),
    (COPY + COPY.replace("copy", "other"), "mine.py has 2 kernels; KERNEL must be one of mine.py"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_file_that_cannot_work_is_one_line_with_its_place(text, message, folder, capsys):
    (folder / "mine.py").write_text(text)
    assert tilewright.main("run mine.py --backend golden --config tiny".split()) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and f"tilewright run: {message}" in error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("copy.py:copi", "unknown kernel 'copi' in copy.py; did you mean 'copy'"),
        ("copy.py:", "unknown kernel '' in copy.py; it must be one of copy.py:copy"),
        ("both.py:tw", "unknown kernel 'tw' in both.py"),
        ("absent.py", "cannot read 'absent.py': No such file or directory"),
        ("copy", "unknown kernel 'copy'; it must be one of add, "),
    ],
)
@pytest.mark.parametrize("command", ["run", "map"])
def test_a_name_without_a_kernel_is_refused(name, message, command, folder, capsys):
    assert tilewright.main([command, name]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error


def test_a_fault_of_ours_in_a_users_kernel_stays_an_internal_fault(folder, capsys, monkeypatch):
    monkeypatch.setattr(driver, "golden", lambda *given, **named: [][1])
    assert tilewright.main("run copy.py --backend golden --config tiny --set M=3".split()) == 1
    assert "internal fault: IndexError" in capsys.readouterr().err
