"""Example 8. A kernel of three products: the compiler divides it into parts.

No image of the chip computes all of it, so parts run one after another in one launch list, and
values pass between them through memory. The report says which.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("X[M, D], Wg[D, F], Wu[D, F], Wd[F, D] -> Y[M, D]")
def mlp(X, Wg, Wu, Wd, Y):
    """Y = (silu(X Wg) * (X Wu)) Wd."""
    (M, D), F = X.shape, Wg.shape[1]
    for i in tw.metapipe(M):
        x, y = tw.load_tile(X[i, :]), tw.zeros(i, D)
        for f in tw.metapipe(F):
            gate, up = x @ tw.load_tile(Wg[:, f]), x @ tw.load_tile(Wu[:, f])
            y += (tw.silu(gate) * up).to(tw.bf16) @ tw.load_tile(Wd[f, :])
        tw.store_tile(Y[i, :], y)


@mlp.reference
def _(X, Wg, Wu, Wd):
    gate = X @ Wg
    return gate / (1 + np.exp(-gate)) * (X @ Wu) @ Wd


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    shapes = (64, 48), (48, 96), (48, 96), (96, 48)
    operands = [rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in shapes]
    program = mlp.compile("small", M=64, D=48, F=96, dtype=tw.bf16)
    print(program.report())
    # The programs of the parts, in the notation of the compiler's passes.
    print(program.ir("divide"))
    print(program.run(*operands, backend="emulator"))
