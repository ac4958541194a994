"""npz files: keys are the names of arrays, bf16 are raw bits."""

import io

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, int8
from sim.cli.npz import pack_arrays, read_inputs
from sim.operands import random_operand
from sw.kernels.matmul import matmul


@pytest.fixture
def pair(seed):
    rng = np.random.default_rng(seed)
    return {
        "A": random_operand(rng, (4, 6), bf16, special_share=0.3),
        "B": random_operand(rng, (6, 3), bf16, special_share=0.3),
    }


def test_arrays_written_are_raw_bits_and_read_back_as_themselves(pair, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(pack_arrays(pair))
    with np.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype == np.uint16 for name in "AB")
    found = read_inputs(path, matmul, bf16)
    assert list(found) == ["A", "B"]
    assert all(found[name].tobytes() == pair[name].tobytes() for name in "AB")
    assert all(found[name].dtype == bf16.dtype for name in "AB")


def test_arrays_of_bfloat16_itself_are_taken_too(pair, tmp_path):
    np.savez(tmp_path / "a.npz", **pair)
    found = read_inputs(tmp_path / "a.npz", matmul, bf16)
    assert found["B"].tobytes() == pair["B"].tobytes() and found["B"].dtype == bf16.dtype


def test_integers_stay_integers(tmp_path):
    given = {"A": np.full((2, 2), -128, np.int8), "B": np.ones((2, 2), np.int8)}
    with np.load(io.BytesIO(pack_arrays(given))) as stored:
        assert stored["A"].dtype == np.int8 and stored["A"][0, 0] == -128
    np.savez(tmp_path / "a.npz", **given)
    assert read_inputs(tmp_path / "a.npz", matmul, int8)["A"].dtype == np.int8


BITS = np.zeros((2, 2), np.uint16)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": BITS}, "must have the array B"),
        ({"A": BITS, "B": BITS, "C": BITS}, "must have the arrays A, B, not 'C'"),
        ({"A": BITS, "B": BITS.astype(np.int8)}, "Array B must be bf16 as uint16, not int8"),
        (
            {"A": BITS, "B": BITS.astype(float)},
            "Array B must be bf16 as uint16, not float64; .astype(ml_dtypes.bfloat16)",
        ),
        ({"A": BITS, "B": np.array([{}], object)}, "must be an npz file of plain arrays"),
    ],
)
def test_arrays_that_are_not_the_kernels_are_refused(arrays, message, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(BadInputError) as caught:
        read_inputs(tmp_path / "a.npz", matmul, bf16)
    assert message in caught.value.message and caught.value.where == "--inputs"


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(content, tmp_path):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(BadInputError, match="must be an npz file of plain arrays"):
        read_inputs(tmp_path / "a.npz", matmul, bf16)
    with pytest.raises(BadInputError, match="cannot read '.*b.npz': No such file"):
        read_inputs(tmp_path / "b.npz", matmul, bf16)


def test_a_plain_npy_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", BITS)
    with pytest.raises(BadInputError, match="must be an npz file of plain arrays"):
        read_inputs(tmp_path / "a.npy", matmul, bf16)
