"""The programs in examples: each runs as its reader runs it, and what it runs is verified."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from hw.arch.config import PcuConfig
from hw.numeric.formats import bf16, fp32

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


#: The decoder layer takes as long as all others; tests of its kernel run it in `make test`.
LONG = {"10_decoder_layer"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.stem in LONG else (), id=path.stem)
        for path in EXAMPLES
    ],
)
def test_an_example_runs(path, capsys):
    text = path.read_text()
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert out
    # What an example runs on a back end says so; the one that only compiles has nothing to verify.
    assert out.count("\nVERIFIED") == out.count("emulator on small")
    assert ("emulator on small" in out) == ('backend="emulator"' in text)


def test_examples_are_short_and_in_order():
    assert [path.stem.split("_")[0] for path in EXAMPLES] == [
        f"{number:02}" for number in range(1, len(EXAMPLES) + 1)
    ]
    for number, path in enumerate(EXAMPLES, 1):
        lines = path.read_text().splitlines()
        assert len(lines) <= 60, path.name
        assert lines[0].startswith(f'"""Example {number}. '), path.name


def test_softmax_of_the_example_is_as_accurate_as_its_functions(seed):
    softmax = runpy.run_path(str(EXAMPLES[2]))["softmax"]
    scores = np.random.default_rng(seed).normal(size=(37, 90)).astype(bf16.dtype)
    error = np.abs(softmax(scores, out=fp32) - softmax.reference(scores.astype(np.float64))).max()
    # An exponential and a reciprocal of so many bits, of numbers below 1/2.
    assert 2.0**-24 < error < 2 * 2.0**-PcuConfig.function_bits
