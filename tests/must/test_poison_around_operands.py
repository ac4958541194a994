"""slice-j: what lies round the operands in memory is poison, on the chip too: no bit differs.

The printed programs of every kernel are poisoned by tests/sw/language/test_programs.py.
"""

import types

import numpy as np
import pytest

#: Ragged in every extent; both formats.
_CASES = [("bf16", (9, 7, 20)), ("bf16", (37, 13, 41)), ("int8", (19, 5, 33)), ("bf16", (1, 1, 1))]


class _Numpy:
    """Numpy whose random bytes are all alike."""

    def __init__(self, byte):
        generator = types.SimpleNamespace(bytes=lambda count: bytes([byte]) * count)
        self.random = types.SimpleNamespace(default_rng=lambda seed: generator)

    def __getattr__(self, name):
        return getattr(np, name)


def outputs(case, backend, monkeypatch):
    """Outputs of a product in memory full of NaN and of zeros; each run compares with golden."""
    found = set()
    # 0xFFFF is a NaN of bf16, and -1 of int8.
    for byte in (0xFF, 0x00):
        monkeypatch.setattr("sim.launch_memory.np", _Numpy(byte))
        found.add(case.run(backend).report["output_sha256"])
    return found


@pytest.mark.must("slice-j", goal="poison in memory changes no result of the emulator")
@pytest.mark.parametrize(("dtype", "sizes"), _CASES)
def test_poisoned_memory_changes_no_result_of_the_emulator(
    dtype, sizes, product, monkeypatch, figure
):
    assert len(outputs(product("tiny", *sizes, dtype=dtype), "emulator", monkeypatch)) == 1
    figure(f"{len(_CASES)} ragged products on the emulator, memory full of NaN")


@pytest.mark.slow
@pytest.mark.must("slice-j", goal="poison in memory and scratchpads changes no result of the RTL")
@pytest.mark.parametrize(("dtype", "sizes"), _CASES)
def test_poisoned_memory_changes_no_result_of_the_rtl(
    dtype, sizes, product, monkeypatch, heavy, figure
):
    """Its scratchpads and registers start with garbage of the run's seed."""
    found = set()
    for seed in (1, 2):
        case = product("tiny", *sizes, dtype=dtype, seed=seed)
        answers = outputs(case, "rtl", monkeypatch)
        assert len(answers) == 1
        found |= answers
    assert len(found) == 2, "the seed chooses the operands too"
    figure(f"{len(_CASES)} ragged products on RTL, memory full of NaN")
