"""pipe-j: short bodies, no schedule for a first run, and a user's own kernel by one command."""

import importlib
import inspect
import json

import pytest

import tilewright
from sw.kernels import modules
from sw.kernels.matmul import matmul
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax

KERNELS = list(modules())

MINE = """\
import numpy as np
import tilewright as tw


@tw.kernel("X[M, K], W[K, N], b[N], R[M, N] -> Y[M, N]")
def layer(X, W, b, R, Y):
    bias = tw.load_tile(b)
    for i in tw.metapipe(Y.shape[0]):
        sums = tw.load_tile(X[i, :]) @ tw.load_tile(W)
        tw.store_tile(Y[i, :], tw.silu(sums + bias) + tw.load_tile(R[i, :]))


@layer.reference
def _(X, W, b, R):
    sums = X @ W + b
    return sums / (1 + np.exp(-sums)) + R
"""


@pytest.mark.must("pipe-j", goal="bodies: matmul <= 12 lines, softmax <= 10, rms_norm <= 8")
@pytest.mark.parametrize(("kernel", "most"), [(matmul, 12), (softmax, 10), (rms_norm, 8)])
def test_bodies(kernel, most, figure):
    module = importlib.import_module(modules()[kernel.name])
    lines = inspect.getsource(module).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("def ")) + 1
    body = []
    for line in lines[first:]:
        if line and not line.startswith(" "):
            break
        body.append(line.strip())
    count = sum(bool(line) and not line.startswith("#") for line in body)
    figure(f"{kernel.name}: {count} lines")
    assert 3 < count <= most


@pytest.mark.slow
@pytest.mark.must("pipe-j", goal="any kernel's first run needs no schedule")
@pytest.mark.parametrize("name", KERNELS)
def test_first_run(name, tmp_path, figure):
    report = tmp_path / "report.json"
    line = f"run {name} --config small --backend emulator --json {report}"
    assert tilewright.main(line.split()) == 0
    found = json.loads(report.read_text())
    figure(f"{name}: {found['params']}, {found['parts']} images")
    assert found["verified"] and found["bit_exact"]


@pytest.mark.slow
@pytest.mark.must("pipe-j", goal="a user's own file with bias and residual, by one command, on RTL")
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_own_file(config, tmp_path, heavy, figure):
    path, report = tmp_path / "mine.py", tmp_path / "report.json"
    path.write_text(MINE)
    line = f"run {path} --config {config} --set M=50 --set N=36 --set K=70 --json {report}"
    assert tilewright.main(line.split()) == 0
    found = json.loads(report.read_text())
    figure(f"{config}: {found['cycles']:,} cycles, {found['parts']} images")
    assert found["verified"] and found["bit_exact"]
