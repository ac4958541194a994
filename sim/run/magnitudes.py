"""Error-bound inputs of a program: magnitude sums and numbers of terms of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.golden import Interpreter
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.types import Role

__all__ = ["sum_magnitudes", "sum_terms"]

Array = npt.NDArray[Any]


def sum_magnitudes(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Sum of term magnitudes of each output element: \\|A\\|·\\|B\\| of a product.

    Parameters
    ----------
    program : Program
        Program whose outputs are sums of products of loaded elements, all block sizes chosen.
    inputs : mapping of str to array

    Returns
    -------
    dict of str to float64 array
        By output.
    """
    with np.errstate(invalid="ignore"):
        sizes = {name: np.abs(array.astype(np.float64)) for name, array in inputs.items()}
    return _sums(program, sizes)


def sum_terms(program: Program) -> dict[str, Array]:
    """Number of terms of each output element; parameters as of `sum_magnitudes`."""
    ones = {
        tensor.name: np.ones(tensor.type.shape)
        for tensor in program.tensors
        if tensor.type.role is not Role.OUT
    }
    return _sums(program, ones)


def _sums(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    roles = {tensor.name: tensor.type.role for tensor in program.tensors}
    memory = {
        tensor.name: inputs[tensor.name].copy()
        if tensor.name in inputs
        else np.zeros(tensor.type.shape)
        for tensor in program.tensors
    }
    with np.errstate(all="ignore"):
        _Sums(memory).run(program.nodes)
    return {name: array for name, array in memory.items() if roles[name] is not Role.IN}


class _Sums(Interpreter):
    """Float64 interpreter without rounding to narrower formats, for sums and products only."""

    def results(self, node: ir.Node) -> tuple[Any, ...]:
        match node:
            case ir.Full():
                return (np.zeros((self.room(node.rows), self.room(node.cols))),)
            case ir.Cast():
                return (self.operand(node.operands[0]),)
            case ir.Map():
                left, right = (self.operand(each) for each in node.operands)
                return (left + right,)
        return super().results(node)

    def matmul(self, node: ir.Matmul) -> Array:
        a, b = (self.operand(each) for each in node.operands[:2])
        product: Array = (a.T if node.ta else a) @ (b.T if node.tb else b)
        return product + self.operand(node.operands[2]) if len(node.operands) == 3 else product

    def store(self, node: ir.Store) -> None:
        target = self.memory[node.view.tensor]
        box = self.box(node.view)
        target[box] = self.stored(node.values[0]).reshape(target[box].shape)
