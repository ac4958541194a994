"""A product whose operands are windows of tensors, with NaN or zeros loaded outside them."""

import dataclasses

import numpy as np

from hw.arch.descriptor import OobFill
from hw.numeric.formats import bf16, fp32
from tests.units_matmul import UnitsMatmul

__all__ = ["FilledMatmul"]


@dataclasses.dataclass(frozen=True)
class FilledMatmul(UnitsMatmul):
    """A product of which only the first columns of A, and the first rows of B, are tensors.

    Parameters
    ----------
    columns, rows : int
        Columns of A and rows of B that lie in the tensors.
    fill : OobFill
        What the rest of their boxes is loaded as.
    """

    columns: int = 0
    rows: int = 0
    fill: OobFill = OobFill.NAN

    @classmethod
    def drawn(cls, config, rng):
        """A ragged product on a chip."""
        m, n, k = (int(side) for side in rng.integers(1, (41, 14, 41)))
        out = (bf16, fp32)[rng.integers(2)]
        columns, rows = (int(side) for side in rng.integers(1, k + 1, 2))
        lanes = config.width_bits // bf16.bits
        slots = -(-k // lanes) + 1
        return cls(config, m, n, k, bf16, out, 2 * lanes, lanes, slots, columns, rows)

    @property
    def with_zeros(self):
        """The same product with zeros outside the tensors."""
        return dataclasses.replace(self, fill=OobFill.ZERO)

    def _agcu(self):
        program = super()._agcu()
        (a, _), (b, _), c = program.descriptors
        windows = (
            (dataclasses.replace(a, dims=(self.columns, self.m), oob_fill=self.fill), 0),
            (dataclasses.replace(b, dims=(self.n, self.rows), oob_fill=self.fill), 1),
        )
        return dataclasses.replace(program, descriptors=(*windows, c))

    def zeroed(self, a, b):
        """The operands with zeros outside the windows: factors of the product."""
        a, b = a.copy(), b.copy()
        a[:, self.columns :], b[self.rows :] = 0, 0
        return a, b

    def hidden_nan(self, a, b):
        """The operands with NaN in memory outside the windows, where nothing may be read."""
        a, b = a.copy(), b.copy()
        a[:, self.columns :], b[self.rows :] = np.nan, np.nan
        return a, b
