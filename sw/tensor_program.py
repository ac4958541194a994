"""Programs of a tensor unit from matrices: instructions and the contents of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.arch.tensor_instructions import Instruction, Opcode, TensorSizes
from hw.numeric.division import ceil_div

__all__ = ["Layer", "Packing", "Program", "layer_program", "mlp_program", "mlp_results"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """Layer of a network: a matrix product and its output stage.

    Parameters
    ----------
    weight : (K, N) array of operands
    relu : bool
    scale, shift : int
        As of :class:`hw.arch.tensor_instructions.Instruction`.
    bias : (N,) array of int32 or float32
        Of a unit with a bias.
    """

    weight: Array
    relu: bool = False
    scale: int = 1
    shift: int = 0
    bias: Array | None = None


@dataclass(frozen=True)
class Packing:
    """Layout of a matrix's columns in the vectors of a row.

    Parameters
    ----------
    vectors : int
        Vectors per row.
    places : (columns,) array of int
        Operand number of each column, counted through the vectors of a row.
    """

    vectors: int
    places: npt.NDArray[np.int64]

    @staticmethod
    def of_host(sizes: TensorSizes, columns: int) -> Packing:
        """Layout of a matrix from the host: one operand after another."""
        return Packing(ceil_div(columns, sizes.elements), np.arange(columns))

    @staticmethod
    def of_results(sizes: TensorSizes, columns: int) -> Packing:
        """Layout of results: groups of C columns, side by side in slots or in several vectors."""
        width = sizes.columns
        group, column = np.divmod(np.arange(columns), width)
        groups = ceil_div(columns, width)
        vector, slot = np.divmod(group, sizes.slots)
        places = vector * sizes.parts * sizes.elements + slot * width + column
        return Packing(ceil_div(groups, sizes.slots) * sizes.parts, places)


@dataclass(frozen=True)
class Program:
    """Program of a tensor unit: instructions and the contents of its input streams.

    Members
    -------
    instructions : tuple of Instruction
    host : (n, E) array
        Vectors from the host.
    weights : (tiles, R, C, E / R) array
        Weight tiles.
    biases : (finishes, C) array, or None
        Bias vectors.
    """

    instructions: tuple[Instruction, ...]
    host: Array
    weights: Array
    biases: Array | None


def layer_program(
    sizes: TensorSizes,
    layer: Layer,
    packing: Packing,
    *,
    rows: int,
    source: int,
    target: int,
) -> tuple[list[Instruction], Array, Array | None]:
    """Program of one layer on activations in the buffer: instructions, weight tiles and biases.

    Every group of C columns reads the same vectors again. Vectors lie tile after tile: vector v
    of row i is at ``rows`` · v + i from the first.

    Parameters
    ----------
    sizes : TensorSizes
    layer : Layer
    packing : Packing
        Layout of the K columns of the activations.
    rows : int
        Rows of activations, at most the accumulators if K takes more than one tile.
    source, target : int
        First vector of the activations and of the results.
    """
    extent = layer.weight.shape[1]
    groups = ceil_div(extent, sizes.columns)
    tiles = packing.vectors
    padded = np.zeros((tiles * sizes.elements, groups * sizes.columns), sizes.format.dtype)
    padded[packing.places, :extent] = layer.weight
    lanes = padded.reshape(tiles, sizes.rows, -1, groups, sizes.columns)
    weights = lanes.transpose(3, 0, 1, 4, 2).reshape(
        -1, *lanes.shape[1:2], sizes.columns, lanes.shape[2]
    )
    biases = None
    if sizes.bias:
        sums = sizes.format.accumulator.dtype
        biases = np.zeros(groups * sizes.columns, sums)
        biases[:extent] = 0 if layer.bias is None else layer.bias
        biases = biases.reshape(groups, sizes.columns)
    instructions = [
        Instruction(Opcode.CONFIGURE, relu=layer.relu, scale=layer.scale, shift=layer.shift)
    ]
    for group in range(groups):
        for tile in range(tiles):
            instructions.append(
                Instruction(
                    Opcode.MULTIPLY,
                    address=source + tile * rows,
                    rows=rows,
                    accumulate=tile > 0,
                    finish=tile == tiles - 1,
                )
            )
        vector, slot = divmod(group, sizes.slots)
        place = target + vector * sizes.parts * rows
        instructions.append(Instruction(Opcode.ACTIVATE, address=place, rows=rows, slot=slot))
    return instructions, weights, biases


@dataclass(frozen=True)
class _Plan:
    """Rows per block, layout of each matrix, and start of the two halves of the buffer."""

    blocks: tuple[tuple[int, int], ...]
    packings: tuple[Packing, ...]
    starts: tuple[int, int]


def _plan(sizes: TensorSizes, layers: Sequence[Layer], rows: int) -> _Plan:
    extents = [layer.weight.shape[1] for layer in layers]
    packings = (
        Packing.of_host(sizes, layers[0].weight.shape[0]),
        *(Packing.of_results(sizes, extent) for extent in extents),
    )
    widest = [max(packing.vectors for packing in packings[side::2]) for side in (0, 1)]
    most = sizes.buffer_rows // sum(widest)
    if any(packing.vectors > 1 for packing in packings[:-1]):
        most = min(most, sizes.accumulator_rows)
    if most == 0:
        raise BadInputError(
            f"Unified buffer rows must be at least {sum(widest)} for a row of these layers, "
            f"not {sizes.buffer_rows}"
        )
    count = ceil_div(rows, most)
    edges = [index * rows // count for index in range(count + 1)]
    blocks = tuple(zip(edges[:-1], edges[1:], strict=True))
    longest = max(stop - start for start, stop in blocks)
    return _Plan(blocks, packings, (0, widest[0] * longest))


def _check(sizes: TensorSizes, activations: Array, layers: Sequence[Layer]) -> None:
    if not layers:
        raise BadInputError("Layers must be one or more, not none")
    extent = activations.shape[1]
    for index, layer in enumerate(layers):
        if layer.weight.ndim != 2 or layer.weight.shape[0] != extent or not layer.weight.size:
            raise BadInputError(
                f"Weights of layer {index} must be {extent} × 1 or more, not {layer.weight.shape}"
            )
        if layer.bias is not None and not sizes.bias:
            raise BadInputError(f"Bias of layer {index} must be of a unit with a bias")
        extent = layer.weight.shape[1]
    for name, array in (("Activations", activations), *(("Weights", x.weight) for x in layers)):
        if array.dtype != sizes.format.dtype:
            raise BadInputError(f"{name} must be of {sizes.format.dtype}, not {array.dtype}")


def mlp_program(sizes: TensorSizes, activations: Array, layers: Sequence[Layer]) -> Program:
    """Program of a multi-layer perceptron: activations from the host, last results to the host.

    Activations are split into blocks of rows that fit the buffer and the accumulators; weights are
    streamed again for each block. Two halves of the buffer are read and written alternately.

    Parameters
    ----------
    sizes : TensorSizes
    activations : (M, K) array of operands
    layers : sequence of Layer

    Raises
    ------
    BadInputError
        The shapes do not match, one row does not fit the buffer, or an array has another
        format.
    """
    _check(sizes, activations, layers)
    plan = _plan(sizes, layers, len(activations))
    instructions: list[Instruction] = []
    hosts, weights, biases = [], [], []
    for start, stop in plan.blocks:
        rows, vectors = stop - start, plan.packings[0].vectors
        block = np.zeros((rows, vectors * sizes.elements), sizes.format.dtype)
        block[:, plan.packings[0].places] = activations[start:stop]
        block = block.reshape(rows, vectors, sizes.elements).transpose(1, 0, 2)
        hosts.append(block.reshape(-1, sizes.elements))
        instructions.append(Instruction(Opcode.READ_HOST, plan.starts[0], vectors * rows))
        for index, layer in enumerate(layers):
            added, tiles, vector = layer_program(
                sizes,
                layer,
                plan.packings[index],
                rows=rows,
                source=plan.starts[index % 2],
                target=plan.starts[1 - index % 2],
            )
            instructions += added
            weights.append(tiles)
            biases += [] if vector is None else [vector]
        place = plan.starts[len(layers) % 2]
        count = plan.packings[-1].vectors * rows
        instructions.append(Instruction(Opcode.WRITE_HOST, place, count))
    return Program(
        tuple(instructions),
        np.concatenate(hosts),
        np.concatenate(weights),
        np.concatenate(biases) if biases else None,
    )


def mlp_results(sizes: TensorSizes, vectors: Array, layers: Sequence[Layer], rows: int) -> Array:
    """The (M, N) results from the vectors that such a program sends to the host."""
    plan = _plan(sizes, layers, rows)
    packing, parts, position = plan.packings[-1], [], 0
    for start, stop in plan.blocks:
        count = (stop - start) * packing.vectors
        part = vectors[position : position + count].reshape(packing.vectors, stop - start, -1)
        parts.append(part.transpose(1, 0, 2).reshape(stop - start, -1)[:, packing.places])
        position += count
    return np.concatenate(parts)
