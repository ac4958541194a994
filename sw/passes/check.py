"""check: whole-program rules, reported at the user's line."""

from __future__ import annotations

from sw.ir.block_reductions import stored_block_reductions
from sw.ir.cover import CoverError, check_cover
from sw.ir.program import Program
from sw.ir.verify import verify
from sw.language.program_error import ProgramError

__all__ = ["check"]


def check(program: Program) -> Program:
    """Verify the traced IR, and check that each element of an output is stored exactly once.

    Nothing that is stored may depend on the sizes of blocks.

    Shapes, formats and extents were checked operation by operation during the trace.

    Raises
    ------
    ProgramError
        If an output is not written completely, or is written twice, or a reduction along a block is
        stored.
    VerifyError
        If the program breaks a rule of the IR, which no trace should.
    """
    try:
        check_cover(program)
    except CoverError as error:
        span = error.node.span if error.node is not None else None
        raise ProgramError("output", str(error), span) from error
    for node, index in stored_block_reductions(program):
        name = f"{('col', 'row')[node.axis]}_{node.op}"
        whole = ("all rows, as `X[:, j]`", "all columns, as `X[i, :]`")[node.axis]
        raise ProgramError(
            "loop",
            f"`{name}` of each block of `{index}` is stored, and the compiler chooses the size of "
            f"blocks: load {whole}, or carry it from block to block",
            node.span,
            value=name,
        )
    return verify(program.after("check", program.nodes))
