"""attn-a: attention of random shapes and masks: definition = golden = emulator = RTL by bytes.

The definition imports nothing of the project (`tests/sw/kernels/kernels_by_definition.py`).
"""

import numpy as np
import pytest

from hw.numeric.formats import bf16
from tests.sw.kernels.test_compiled_kernels import MOST_WORK, random_attention, require_equal

#: Chips of ten cases on the emulator.
CHIPS = ("small",) * 7 + ("tiny", "tiny", "large")
BATCHES, RTL_BATCHES, COCOTB_CASES = 30, 20, 3
GOAL = "300 random cases of attention on the emulator, 60 on RTL, 3 through cocotb: equal by bytes"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def run_attention(rng, config, *, backend, most, work):
    """A random case, equal by bytes; the cycles it took, if cycles are counted."""
    sizes, options = random_attention(rng, config, most=most, work=work)
    mild = bool(rng.random() < 0.3)
    outcome = require_equal(
        rng,
        "flash_attention",
        config,
        sizes,
        bf16,
        None,
        mild=mild,
        backend=backend,
        options=options,
    )
    return outcome.report["cycles"]


@pytest.mark.must("attn-a", goal=GOAL)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_attention_on_the_emulator(batch, seed, figure):
    rng = np.random.default_rng(seed)
    for config in CHIPS:
        run_attention(rng, config, backend="emulator", most=700, work=MOST_WORK)
    figure(f"{BATCHES * len(CHIPS)} cases on the emulator")


@pytest.mark.must("attn-a", goal=GOAL)
@pytest.mark.parametrize("batch", range(RTL_BATCHES))
def test_attention_on_the_rtl(batch, seed, heavy, figure):
    rng = np.random.default_rng(seed)
    for config in ("small", "small", "tiny"):
        work = MOST_WORK if config == "small" else MOST_WORK / 30
        run_attention(rng, config, backend="rtl", most=700, work=work)
    figure(f"{3 * RTL_BATCHES} cases on the RTL")


@pytest.mark.must("attn-a", goal=GOAL)
def test_attention_through_cocotb(seed, heavy, figure):
    rng = np.random.default_rng(seed)
    cycles = [
        run_attention(rng, "tiny", backend="cocotb", most=60, work=1e5) for _ in range(COCOTB_CASES)
    ]
    figure(f"{COCOTB_CASES} cases through cocotb, {sum(cycles):,} cycles")
