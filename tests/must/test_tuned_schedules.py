"""see-i: a tuned schedule is never slower than the compiler's own, measured on RTL."""

import pytest

import tilewright as tw
from sim.cli.kernel_lookup import load_kernel

#: Kernel, chip and sizes; other sizes are the kernel's own.
PAIRS = (
    ("matmul", "small", {"M": 100, "N": 90, "K": 700}),
    ("matmul", "small", {"M": 512, "N": 48, "K": 512}),
    ("matmul", "tiny", {"M": 40, "N": 33, "K": 50}),
    ("matmul_tn", "small", {"M": 150, "N": 140, "K": 64}),
    ("matmul_nt", "small", {"M": 130, "N": 200, "K": 90}),
    ("linear", "small", {"M": 150, "N": 130, "K": 200}),
    ("residual", "small", {"M": 100, "N": 100, "K": 150}),
    ("flash_attention", "small", {"H": 4, "M": 64, "D": 16, "G": 2, "S": 64}),
    ("flash_attention", "small", {"H": 2, "M": 100, "D": 32, "G": 2, "S": 100}),
    ("softmax", "small", {"M": 100, "N": 200}),
    ("rms_norm", "small", {"M": 120, "N": 90}),
    ("gda", "small", {"M": 96, "N": 96, "C": 16}),
)
LEAST_FASTER = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.must("see-i", goal="12 pairs on RTL: never slower; 3 faster, or all exhausted")
def test_tuning_is_never_slower_and_finds_faster_schedules(heavy, figure):
    shown, faster, exhausted = [], 0, 0
    for name, config, sizes in PAIRS:
        found = load_kernel(name).tune(
            config, dtype=tw.bf16, trials=30, measured=3, progress=False, **sizes
        )
        told = (name, config, sizes, found)
        ran = [each for each in found.trials if each.measured is not None]
        assert all(each.verified for each in ran), told
        assert found.trials[0] in ran and found.cycles <= found.default_cycles, told
        faster += found.cycles < found.default_cycles
        exhausted += found.exhausted
        shown.append(f"{name} {found.default_cycles} -> {found.cycles}")
    assert faster >= LEAST_FASTER or exhausted == len(PAIRS), shown
    figure(f"{faster} of {len(PAIRS)} faster: {', '.join(shown)}")
