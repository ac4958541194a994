"""Block sizes: chosen, and tails dropped exactly where there are none."""

import pytest

import sw.language as tw
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes, open_sizes
from sw.ir.verify import verify
from sw.kernels.matmul import matmul


def program(m, n):
    return matmul.trace(M=m, N=n, K=4, dtype=tw.bf16)


def test_wishes_choices_and_defaults_in_that_order_of_need():
    traced = program(96, 96)
    assert open_sizes(traced) == ("i", "j")
    sized = choose_sizes(traced)
    assert open_sizes(sized) == ()
    assert [node.tile for node in sized.nodes[0:1]] == [4096]
    assert choose_sizes(traced, {"i": 32}).nodes[0].tile == 32

    def copy(A, C):
        for i in tw.metapipe(8):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))

    plain = tw.kernel("A[M, N] -> C[M, N]")(copy).trace(M=8, N=2, dtype=tw.bf16)
    with pytest.raises(ValueError, match="Block size of loop i must be 1 or more, not None"):
        choose_sizes(plain)
    assert choose_sizes(plain, default=3).nodes[0].tile == 3
    with pytest.raises(ValueError, match="Block size of loop i must be 1 or more, not 0"):
        choose_sizes(plain, {"i": 0})


@pytest.mark.parametrize(
    ("m", "size", "ragged"), [(96, 32, False), (96, 36, True), (96, 96, False), (96, 97, True)]
)
def test_a_tail_stays_exactly_where_the_last_block_is_short(m, size, ragged):
    sized = verify(choose_sizes(program(m, 256), {"i": size}))
    loads = [node for node in walk(sized.nodes) if node.kind == "load"]
    assert loads[0].result.type.rows.full is not ragged
    assert loads[1].result.type.cols.full
