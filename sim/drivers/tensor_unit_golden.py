"""Layers of a tensor unit by numpy: random operands, and results with its rounding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric import reference
from hw.tpu.tensor_config import TensorConfig
from sw.tensor_program import Layer, Packing

__all__ = ["layer_results", "tensor_operands"]

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
