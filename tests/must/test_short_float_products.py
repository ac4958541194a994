"""unit-m: products of fp16, e4m3, e5m2 and e4m3 × e5m2 on a user's chip, by three back ends."""

import numpy as np
import pytest

from sim.run.driver import compile_job
from sim.run.job import Job
from tests.short_floats import KINDS, chip_of, random_problem, verified

_SHAPES = 24
_MOST = 300


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must(
    "unit-m", goal="20 random shapes of each, log-uniform 1 to 300: golden = emulator = RTL"
)
@pytest.mark.parametrize("name", KINDS)
def test_three_answers_agree_on_short_floats(name, seed, tmp_path, heavy, figure):
    first, second, outs, formats = KINDS[name]
    rng = np.random.default_rng(seed)
    chip = chip_of(formats, tmp_path)
    cycles = macs = 0
    for _ in range(_SHAPES):
        problem = random_problem(rng, chip, first, second, outs, most=_MOST)
        memory = {
            "latency": int(rng.integers(1, 200)),
            "jitter": int(rng.integers(0, 50)),
            "stall": round(float(rng.uniform(0, 0.8)), 2),
        }
        drawn = int(rng.integers(1 << 31))
        compiled = compile_job(Job(problem))
        rtl = verified(problem, "rtl", drawn, compiled, **memory)
        emulator = verified(problem, "emulator", drawn, compiled)
        digests = {rtl["golden_sha256"], rtl["output_sha256"], emulator["output_sha256"]}
        assert len(digests) == 1, (name, problem.params, drawn)
        assert rtl["image_sha256"] == emulator["image_sha256"]
        assert rtl["dram_bytes_written"] == emulator["dram_bytes_written"]
        cycles, macs = cycles + rtl["cycles"], macs + rtl["macs"]
    figure(f"{_SHAPES} products of {name}, {macs:,} products of elements, {cycles:,} cycles")
