"""Golden model of a tensor unit in numpy: instructions executed one after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.tensor_instructions import Fault, Instruction, Opcode
from hw.numeric import elementwise, reference
from hw.numeric.formats import fp32
from hw.tpu.tensor_config import TensorConfig

__all__ = ["RefusedInstructionError", "TensorModel"]

Array = npt.NDArray[Any]

_MOST_SHIFT = 47
_MOST_SCALE = (1 << 16) - 1


class RefusedInstructionError(ValueError):
    """Instruction that the unit refuses; those before it have been executed.

    Attributes
    ----------
    fault : Fault
    begun : int
        Instructions before it.
    """

    def __init__(self, fault: Fault, begun: int) -> None:
        super().__init__(f"Instruction {begun} must not be refused for its {fault.name.lower()}")
        self.fault = fault
        self.begun = begun


class TensorModel:
    """Golden model of a tensor unit, whose instructions each end before the next begins.

    Parameters
    ----------
    config : TensorConfig

    Attributes
    ----------
    buffer : (vectors, E) array of operands
    """

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        self.buffer = np.zeros((config.buffer_rows, config.sizes.elements), config.format.dtype)
        self._relu = False
        self._scale = 1 if config.unit.integer_only else int(np.float32(1).view(np.uint32))
        self._shift = 0
        self._sums: Array | None = None
        self._results: Array | None = None
        self._source = range(0)

    def run(
        self,
        instructions: Iterable[Instruction],
        *,
        host: Array,
        weights: Array,
        biases: Array | None = None,
    ) -> Array:
        """Execute instructions; returns the vectors sent to the host.

        Parameters
        ----------
        instructions : iterable of Instruction
        host : (n, E) array
            Vectors of the host.
        weights : (m, R, C, E / R) array
            Tiles: vectors of C lanes, each of the operands of one lane.
        biases : (p, C) array
            One per multiply that finishes; of a unit with a bias.

        Raises
        ------
        RefusedInstructionError
            At an instruction that the unit refuses.
        """
        coming, tiles = iter(host), iter(weights)
        vectors = iter(()) if biases is None else iter(biases)
        sent: list[Array] = []
        for begun, each in enumerate(instructions):
            fault = self._fault(each)
            if fault:
                raise RefusedInstructionError(fault, begun)
            place = slice(each.address, each.address + each.rows)
            if each.opcode == Opcode.READ_HOST:
                self.buffer[place] = [next(coming) for _ in range(each.rows)]
            elif each.opcode == Opcode.MULTIPLY:
                self._multiply(each, next(tiles))
                if each.finish:
                    self._finish(next(vectors) if self._config.unit.bias else None)
            elif each.opcode == Opcode.ACTIVATE:
                self._activate(each)
            elif each.opcode == Opcode.WRITE_HOST:
                sent.extend(self.buffer[place].copy())
            else:
                self._relu, self._scale, self._shift = each.relu, each.scale, each.shift
        shape = (len(sent), self._config.sizes.elements)
        return np.array(sent, self._config.format.dtype).reshape(shape)

    def _fault(self, each: Instruction) -> Fault:
        """Reason why an instruction is refused."""
        config = self._config
        if each.opcode not in list(Opcode):
            return Fault.OPCODE
        if each.opcode == Opcode.CONFIGURE:
            large = each.scale > _MOST_SCALE or each.shift > _MOST_SHIFT
            if config.unit.scales and large:
                return Fault.SCALING
        else:
            multiplies, activates = (
                each.opcode == code for code in (Opcode.MULTIPLY, Opcode.ACTIVATE)
            )
            keeps = multiplies and (each.accumulate or not each.finish)
            if each.rows == 0 or (keeps and each.rows > config.unit.accumulator_rows):
                return Fault.ROWS
            if (
                each.address + each.rows * (config.sizes.parts if activates else 1)
                > config.buffer_rows
            ):
                return Fault.ADDRESS
            if activates and each.slot >= config.sizes.slots:
                return Fault.SLOT
        return self._fault_of_order(each)

    def _fault_of_order(self, each: Instruction) -> Fault:
        """Reason why an instruction, valid by itself, is refused in its context."""
        if (self._results is not None) != (each.opcode == Opcode.ACTIVATE):
            return Fault.ORDER
        if self._results is not None:
            if len(self._results) != each.rows:
                return Fault.ROWS
            stop = each.address + each.rows * self._config.sizes.parts
            if each.address < self._source.stop and self._source.start < stop:
                return Fault.OVERLAP
        elif each.opcode == Opcode.MULTIPLY and each.accumulate:
            if self._sums is None:
                return Fault.ORDER
            if len(self._sums) != each.rows:
                return Fault.ROWS
        return Fault.NONE

    def _multiply(self, each: Instruction, tile: Array) -> None:
        self._source = range(each.address, each.address + each.rows)
        columns = self._config.unit.array.columns
        # A lane holds operands of successive k: k counts operands within a lane, then lanes.
        matrix = tile.transpose(0, 2, 1).reshape(self._config.sizes.elements, columns)
        vectors = self.buffer[self._source.start : self._source.stop]
        former = self._sums if each.accumulate else None
        if former is None or not self._config.unit.bottom:
            self._sums = reference.matmul(vectors, matrix, former)
            return
        sums = reference.matmul(vectors, matrix)
        floats = self._config.format.is_float
        self._sums = elementwise.add(former, sums) if floats else former + sums

    def _finish(self, bias: Array | None) -> None:
        """Output stage: sums to results."""
        config = self._config.unit
        assert self._sums is not None
        sums, self._sums = self._sums, None
        if config.scales:
            biased = sums.astype(np.int64) + (0 if bias is None else bias)
            product = biased * self._scale
            # Nearest, ties to even: add half a unit less one step, and the step if it is odd.
            odd = product >> self._shift & 1
            up = (1 << self._shift >> 1) - 1 + odd if self._shift else 0
            results: Array = ((product + up) >> self._shift).clip(-128, 127).astype(np.int8)
        else:
            results = sums
            if bias is not None:
                scale = fp32.from_bits(np.array(self._scale))
                results = elementwise.fma(results, scale, bias) + np.float32(0)
        if self._relu:
            results = np.where(results < 0, results.dtype.type(0), results)
        self._results = results if config.scales else reference.cast(results, self._config.format)

    def _activate(self, each: Instruction) -> None:
        """Write results to the buffer."""
        assert self._results is not None
        config = self._config
        columns = config.unit.array.columns
        sizes = config.sizes
        rows = np.zeros((each.rows, sizes.parts * sizes.elements), config.format.dtype)
        first = each.slot * columns
        rows[:, first : first + columns] = self._results
        self._results = None
        vectors = rows.reshape(each.rows, sizes.parts, sizes.elements).transpose(1, 0, 2)
        place = slice(each.address, each.address + each.rows * sizes.parts)
        self.buffer[place, first:] = vectors.reshape(-1, sizes.elements)[:, first:]
