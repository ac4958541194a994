"""NaN loaded outside a tensor on the RTL of `tiny`: the memory that the emulator leaves."""

import numpy as np
import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.backends.emitted import emitted_chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sim.oracle import product
from tests.units_nan_fill import FilledMatmul

CONFIG = named["tiny"]


@pytest.fixture(scope="module")
def model(heavy_lock):
    """Model of `tiny`, as of `test_chip`."""
    with heavy_lock(), ChipModel(emitted_chip(CONFIG), CONFIG, seed=5) as chip:
        yield chip


def launched(model, job, operands, seed):
    """Result on the RTL, whose memory must be that of the emulator."""
    layout = job.launch_memory(seed)
    memory = layout.bytes_before(dict(zip("AB", operands, strict=True)))
    other = bytearray(memory)
    conditions = MemoryConditions(latency=10, jitter=5, stall=0.2, seed=seed)
    run = model.run(
        memory, list_address=layout.list_address, conditions=conditions, max_cycles=200_000
    )
    assert run.status == emulate(CONFIG, other, list_address=layout.list_address).status == "done"
    assert memory == other
    return layout.read(memory, "C")


@pytest.mark.few(1)
@pytest.mark.parametrize("special", [0.0, 0.05], ids=["finite", "special"])
def test_a_product_with_fills_is_that_with_zeros(model, special, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        job = FilledMatmul.drawn(CONFIG, rng)
        a, b = job.operands(rng, special_share=special)
        memory = job.hidden_nan(a, b)
        got = launched(model, job, memory, seed)
        assert got.tobytes() == launched(model, job.with_zeros, memory, seed).tobytes(), job
        assert got.tobytes() == product(*job.zeroed(a, b), job.out.dtype).tobytes(), job


@pytest.mark.parametrize("code", [0x7FC0, 0x7F81, 0x7FFE, 0xFFFF])
def test_another_nan_propagates_to_its_row(model, code, seed):
    job = FilledMatmul(CONFIG, 8, 4, 12, bf16, fp32, 8, 4, 4, columns=10, rows=9)
    a, b = job.operands(np.random.default_rng(seed))
    a.view(np.uint16)[3, 5], a.view(np.uint16)[6, 5] = code, bf16.fill_nan
    got = launched(model, job, (a, b), seed)
    assert (got.view(np.uint32)[3] == fp32.canonical_nan).all()
    assert np.isfinite(np.delete(got, 3, 0)).all()
