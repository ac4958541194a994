"""Cycles of a product, and of element math, each by itself on the whole chip, by the cost model."""

from __future__ import annotations

import dataclasses
import functools

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format
from sw.passes.parallel import estimate
from sw.passes.product_recognition import Product
from sw.search.constraints import Constraints

__all__ = ["START", "elements_alone", "product_alone"]

#: Cycles of a kernel of element math besides those of its elements: first loads, last stores.
START = 256
#: Products whose cycles are remembered.
_REMEMBERED = 64


@dataclasses.dataclass(frozen=True)
class _Alone:
    """All that the cycles of a product depend on; the product has more names."""

    config: ChipConfig
    formats: tuple[Format, ...]
    sizes: tuple[int, ...]
    digits: tuple[tuple[tuple[int, ...], ...], ...]
    product: Product = dataclasses.field(compare=False)


def product_alone(product: Product, config: ChipConfig, out: Format) -> int | None:
    """Cycles of a product without element math behind it; None if no plan of it fits.

    Parameters
    ----------
    product : Product
    config : ChipConfig
    out : Format
        Of its results.
    """
    bare = dataclasses.replace(product, out=out, epilogue=None, turned_epilogue=None)
    sizes = (bare.m, bare.n, bare.k, bare.segments, bare.a_along_k, bare.b_along_k)
    formats, digits = (bare.fmt, bare.b_fmt, bare.out), bare.digits
    return _estimated(_Alone(config, formats, sizes, digits, bare))


@functools.lru_cache(maxsize=_REMEMBERED)
def _estimated(case: _Alone) -> int | None:
    try:
        return estimate(case.product, case.config, Constraints())
    except BadInputError:
        return None


def elements_alone(
    config: ChipConfig, elements: int, programs: int, loaded: float, stored: float
) -> float:
    """Cycles of element math, without those of a start: of the lanes or of memory.

    Parameters
    ----------
    config : ChipConfig
    elements : int
    programs : int
        Lane programs of one phase each, which form a chain.
    loaded, stored : float
        Bits in memory for each element.
    """
    lanes = config.pcu.lanes * max(1, config.pcu_count // programs)
    bits = config.agcu.count * config.width_bits
    return elements * max(1 / lanes, loaded / bits, stored / bits)
