"""NaN loaded outside a tensor counts as zero in a product; other NaN propagate."""

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat, OobFill
from hw.numeric import reference
from hw.numeric.formats import bf16, fp16
from sim.emulator import emulate
from sim.emulator.boxes import BoxStream
from sim.oracle import product
from tests.sw.chips import TINY
from tests.units_nan_fill import FilledMatmul

FILL = 0x7FFF


def launched(job, operands, seed):
    """Result of a product on the emulator."""
    layout = job.launch_memory(seed)
    memory = layout.bytes_before(dict(zip("AB", operands, strict=True)))
    run = emulate(job.config, memory, list_address=layout.list_address)
    assert run.status == "done"
    return layout.read(memory, "C")


@pytest.mark.parametrize("config", [TINY, named["small"]], ids=["tiny", "small"])
@pytest.mark.parametrize("special", [0.0, 0.05], ids=["finite", "special"])
def test_a_product_with_fills_is_that_with_zeros(config, special, seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        job = FilledMatmul.drawn(config, rng)
        a, b = job.operands(rng, special_share=special)
        memory = job.hidden_nan(a, b)
        got = launched(job, memory, seed)
        assert got.tobytes() == launched(job.with_zeros, memory, seed).tobytes(), job
        factors = job.zeroed(a, b)
        assert got.tobytes() == product(*factors, job.out.dtype).tobytes(), job
        golden = reference.cast(reference.matmul(*factors), job.out)
        assert got.tobytes() == golden.tobytes(), job


def test_a_nan_in_the_data_propagates_and_the_fill_in_the_data_is_zero(seed):
    job = FilledMatmul(TINY, 8, 4, 12, bf16, bf16, 8, 4, 4, columns=10, rows=9)
    rng = np.random.default_rng(seed)
    a, b = job.operands(rng)
    for code in (0x7FC0, 0x7F81, 0x7FFE, 0xFFFF, 0xFFC0):
        a.view(np.uint16)[3, 5] = code
        a.view(np.uint16)[6, 5] = FILL
        got = launched(job, (a, b), seed)
        assert (got.view(np.uint16)[3] == bf16.canonical_nan).all(), hex(code)
        assert np.isfinite(np.delete(got, 3, 0).astype(np.float32)).all()
        without = job.zeroed(a, b)
        without[0][6, 5] = 0
        assert got.tobytes() == product(*without, bf16.dtype).tobytes()


@pytest.mark.parametrize("fmt", [bf16, fp16], ids=str)
def test_a_fill_is_zero_beside_every_operand(fmt):
    """0 * infinity and 0 * NaN are NaN, -0 + 0 is +0: as with zeros, by golden and the oracle."""
    others = fmt.from_bits(np.arange(1 << 16))[np.newaxis]
    fill = fmt.from_bits(np.array([[FILL]]))
    zero = np.zeros((1, 1), fmt.dtype)
    for multiply in (reference.matmul, product):
        with_fill, with_zero = multiply(fill, others), multiply(zero, others)
        assert with_fill.tobytes() == with_zero.tobytes()
        finite = np.isfinite(with_fill)
        assert not with_fill[finite].view(np.uint32).any()
        with np.errstate(invalid="ignore"):
            special = ~np.isfinite(others.astype(np.float32))
        assert np.count_nonzero(~finite) == np.count_nonzero(special) - 1


@pytest.mark.parametrize("form", [ElementFormat.BF16, ElementFormat.FP16, ElementFormat.FP32])
def test_boxes_have_the_fill_outside_their_tensor(form, seed):
    rng = np.random.default_rng(seed)
    size = form.bytes
    descriptor = Descriptor(
        base=0, format=form, dims=(5, 3), strides=(32,), box=(8, 4), oob_fill=OobFill.NAN
    )
    memory = np.frombuffer(rng.bytes(256), np.uint8).copy()
    points = np.array([[-2, 1, 0, 0, 0], [0, 0, 0, 0, 0], [9, 0, 0, 0, 0]])
    loaded = BoxStream(descriptor, 64, points, 8, 40, 0).load(memory)
    boxes = loaded.reshape(3, 4, 8 * size).view(f"u{size}")
    tensor = memory[64:].view(f"u{size}").reshape(-1, 32 // size)[:3, :5]
    for box, (x, y) in zip(boxes, points[:, :2].tolist(), strict=True):
        expected = np.full((4, 8), (1 << 8 * size - 1) - 1, f"u{size}")
        for row, column in np.ndindex(4, 8):
            if 0 <= y + row < 3 and 0 <= x + column < 5:
                expected[row, column] = tensor[y + row, x + column]
        assert box.tolist() == expected.tolist()
