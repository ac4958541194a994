"""Example 9. A chip of your own: a larger mesh, with more units, for the same kernel.

Every parameter can be changed (`tilewright config small --toml` prints them). Compiling for a
chip needs none of its Verilog: the machine model says how many cycles a program takes on it.
`tilewright area --config FILE` has the cells.
"""

import dataclasses

import tilewright as tw
from hw.arch.config import named


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def product(A, B, C):
    """C = A B."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], acc)


def chips() -> dict[str, tw.ChipConfig]:
    """`small` as it is, and with a larger mesh."""
    small = named["small"]
    return {"4 x 4 switches": small, "6 x 4 switches": dataclasses.replace(small, rows=6)}


if __name__ == "__main__":
    for name, chip in chips().items():
        program = product.compile(chip, M=192, K=192, N=192, dtype=tw.bf16)
        peak = chip.peak_macs_per_cycle(tw.bf16.bits)
        share = 192**3 / (program.predicted_cycles * peak)
        print(f"{name:16} {program.predicted_cycles:6,} cycles, {share:.3f} of {peak:,} MAC/cycle")
