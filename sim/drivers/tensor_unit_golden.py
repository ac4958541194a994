"""Layers of a tensor unit by numpy: random operands, and results with its rounding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric import reference
from hw.numeric.division import ceil_div
from hw.tpu.tensor_config import TensorConfig
from sim.drivers.tensor_unit_driver import host_vectors, vectors_for_host
from sw.tensor_program import Layer, Packing, Program, mlp_program, mlp_results

__all__ = ["TensorChain", "layer_results", "tensor_operands"]

Array = npt.NDArray[Any]


def tensor_operands(
    rng: np.random.Generator, shape: tuple[int, ...], config: TensorConfig
) -> Array:
    """Random operands in the format of a tensor unit.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : tuple of int
    config : TensorConfig
    """
    if not config.format.is_float:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape).astype(config.format.dtype)


def _sums(config: TensorConfig, left: Array, right: Array, packing: Packing) -> Array:
    """Sums of a product; with an adder below the array, the terms of a tile are summed first."""
    if not config.unit.bottom:
        return reference.matmul(left, right)
    inner = packing.vectors * config.sizes.elements
    wide = np.zeros((len(left), inner), left.dtype)
    tall = np.zeros((inner, right.shape[1]), right.dtype)
    wide[:, packing.places], tall[packing.places] = left, right
    return reference.matmul(wide, tall, tile=config.sizes.elements)


def layer_results(config: TensorConfig, activations: Array, layers: Sequence[Layer]) -> Array:
    """Expected results of layers, with numpy's rounding.

    Parameters
    ----------
    config : TensorConfig
    activations : array
        Rows of the first layer's input.
    layers : sequence of Layer
    """
    packing = Packing.of_host(config.sizes, activations.shape[1])
    for layer in layers:
        sums = _sums(config, activations, layer.weight, packing)
        packing = Packing.of_results(config.sizes, layer.weight.shape[1])
        if config.format.is_float:
            sums = np.where(sums < 0, np.float32(0), sums) if layer.relu else sums
            activations = reference.cast(sums, config.format)
        else:
            # Exact in float64: 49 bits at most.
            scaled = np.rint(sums.astype(np.float64) * layer.scale / 2.0**layer.shift)
            activations = scaled.clip(0 if layer.relu else -128, 127).astype(np.int8)
    return activations


@dataclass(frozen=True)
class TensorChain:
    """Chain of layers on random activations, whose intermediate results stay in the unit.

    Parameters
    ----------
    config : TensorConfig
    activations : array
        Rows of the first layer's input.
    layers : list of Layer
    """

    config: TensorConfig
    activations: Array
    layers: list[Layer]

    @staticmethod
    def random(rng: np.random.Generator, config: TensorConfig) -> "TensorChain":
        """Three layers of random extents, mostly ragged."""
        width = config.unit.array.columns + config.sizes.elements
        rows, *extents = (int(extent) for extent in rng.integers(1, (25, *[2 * width] * 4)))
        layers = [
            Layer(
                tensor_operands(rng, (k, n), config),
                relu=bool(rng.integers(2)),
                scale=int(rng.integers(1, 1 << 16)),
                shift=int(rng.integers(20, 26)),
            )
            for k, n in zip(extents[:-1], extents[1:], strict=True)
        ]
        return TensorChain(config, tensor_operands(rng, (rows, extents[0]), config), layers)

    @property
    def program(self) -> Program:
        """Instructions and the contents of the streams."""
        return mlp_program(self.config.sizes, self.activations, self.layers)

    def check(self, taken: Sequence[int]) -> None:
        """Compare the vectors for the host with numpy's results.

        Raises
        ------
        AssertionError
            If they differ.
        """
        config, rows = self.config, len(self.activations)
        size = ceil_div(config.vector_bits + 1, 32) * 4
        data = b"".join(payload.to_bytes(size, "little") for payload in taken)
        words = np.frombuffer(data, np.uint32).reshape(-1, size // 4)
        vectors = host_vectors(config, words, vectors_for_host(self.program))
        found = mlp_results(config.sizes, vectors, self.layers, rows)
        expected = layer_results(config, self.activations, self.layers)
        shapes = [layer.weight.shape for layer in self.layers]
        assert found.tobytes() == expected.tobytes(), f"{rows} rows, weights {shapes}"
