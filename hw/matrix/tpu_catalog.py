"""Catalog of published TPU matrix units as ready-made configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from hw.arch.checks import require_int
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import Format, bf16, e4m3, e5m2, int8
from hw.tpu.tensor_config import TensorConfig

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True)
class Preset:
    """Published matrix units of one TPU core.

    Parameters
    ----------
    name : str
        Name on the command line.
    units : int
        Matrix units per core.
    inner, columns : int
        Extents of a unit's stationary tile: elements of the inner extent, and columns. Two 8-bit
        elements share a cell, so 256 × 256 of them are 128 × 256 cells.
    formats : tuple of Format
        Operand formats.
    accumulator_rows : int
        Depth of a column's accumulator RAM.
    tiles_ahead : int
        Weight tiles in the weight buffer.
    buffer_rows : int
        Vectors of the unified buffer; 0 for a preset without buffer and instructions.
    """

    name: str
    units: int
    inner: int
    columns: int
    formats: tuple[Format, ...]
    accumulator_rows: int = 4096
    tiles_ahead: int = 4
    buffer_rows: int = 0

    @property
    def products_per_cycle(self) -> int:
        """Products per cycle of all units of a core, in the format that gives the most."""
        return self.units * self.inner * self.columns

    @property
    def config(self) -> UnitConfig:
        """Parameters of one unit; a cell takes two 8-bit elements, or one of 16 bits."""
        elements = min(fmt.products_per_cycle for fmt in self.formats)
        return UnitConfig(
            ArrayConfig(self.inner // elements, self.columns, Dataflow.WS, self.formats, 1),
            accumulator_rows=self.accumulator_rows,
            tiles_ahead=self.tiles_ahead,
        )

    def scaled(self, divisor: int) -> UnitConfig:
        """Parameters of one unit with both extents divided, for simulation.

        Raises
        ------
        BadInputError
            The divisor is not a positive integer.
        """
        require_int("Divisor", divisor, 1, 1 << 16)
        config = self.config
        array = config.array
        smaller = replace(
            array, rows=max(1, array.rows // divisor), columns=max(1, array.columns // divisor)
        )
        return replace(config, array=smaller, accumulator_rows=64, tiles_ahead=2)

    @property
    def tensor(self) -> TensorConfig | None:
        """Parameters of the tensor unit, of a preset that has one."""
        if not self.buffer_rows:
            return None
        return TensorConfig(replace(self.config, out=self.formats[0]), self.buffer_rows)

    def scaled_tensor(self, divisor: int) -> TensorConfig | None:
        """Parameters of the tensor unit with all extents divided, for simulation."""
        if not self.buffer_rows:
            return None
        unit = replace(self.scaled(divisor), out=self.formats[0])
        return TensorConfig(unit, max(2, self.buffer_rows // divisor))


#: Presets by name. Sizes and counts are those of the CS149 lecture's table and of Jouppi et al.,
#: ISCA 2017 (v1) and ISCA 2021 (v2 to v4i); later ones as far as their makers state them.
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset("tpu-v1", 1, 256, 256, (int8,), buffer_rows=96 * 1024),
            Preset("tpu-v2", 1, 128, 128, (bf16,)),
            Preset("tpu-v3", 2, 128, 128, (bf16,)),
            Preset("tpu-v4i", 4, 128, 128, (bf16, int8)),
            Preset("tpu-v4", 4, 128, 128, (bf16, int8)),
            Preset("tpu-v5p", 4, 128, 128, (bf16, int8)),
            Preset("tpu-v7", 4, 256, 256, (e4m3, e5m2)),
        )
    }
)
