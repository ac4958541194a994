"""Lane programs behind a product, or in parts of their own: comparison by the cost model."""

from __future__ import annotations

import dataclasses
import functools

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format
from sw.passes.parallel import estimate
from sw.passes.stage import Product
from sw.search.constraints import Constraints

__all__ = ["cycles_apart", "held_up"]

#: Ratio of cycles from which on the comparison is clear, which no error of the model turns.
_CLEAR = 1.125
#: Cycles that one more launch takes, about.
_LAUNCH = 500
#: Products alone whose cycles are remembered.
_REMEMBERED = 64


def cycles_apart(product: Product, config: ChipConfig) -> int | None:
    """Cycles of a product and of the lane programs behind it, each by itself on all PCUs.

    What a further launch takes is left out. None if no plan of the product alone fits.

    Parameters
    ----------
    product : Product
        With a chain of lane programs.
    config : ChipConfig
    """
    epilogue = product.epilogue
    assert epilogue is not None
    sent = epilogue.sent[1]
    bare = dataclasses.replace(product, out=sent, epilogue=None)
    sizes = (bare.m, bare.n, bare.k, bare.segments, bare.a_along_k, bare.b_along_k)
    cycles = _alone(_Alone(config, (bare.fmt, bare.b_fmt, bare.out), sizes, bare))
    if cycles is None:
        return None
    elements = product.m * product.n
    lanes = config.pcu.lanes * max(1, config.pcu_count // len(epilogue.chain))
    loaded = sent.bits + sum(epilogue.inputs[each].type.format.bits for each in epilogue.tiles)
    bits = config.agcu.count * config.width_bits
    return cycles + round(elements * max(1 / lanes, loaded / bits, product.out.bits / bits))


@dataclasses.dataclass(frozen=True)
class _Alone:
    """All that the cycles of a product alone depend on; the product has more names."""

    config: ChipConfig
    formats: tuple[Format, ...]
    sizes: tuple[int, ...]
    product: Product = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=_REMEMBERED)
def _alone(case: _Alone) -> int | None:
    try:
        return estimate(case.product, case.config, Constraints())
    except BadInputError:
        return None


def held_up(product: Product, config: ChipConfig, constraints: Constraints) -> str | None:
    """Why lane programs had better not stand behind a product; None if that is not clear.

    Parameters
    ----------
    product : Product
        With a chain of lane programs.
    config : ChipConfig
    constraints : Constraints

    Raises
    ------
    BadInputError
        If no plan fits.
    """
    apart = cycles_apart(product, config)
    behind = estimate(product, config, constraints)
    if apart is None or behind < _CLEAR * (apart + _LAUNCH):
        return None
    return (
        f"lane programs of their own instead of behind products: `{product.c}` takes about "
        f"{apart:,} cycles by the cost model, not {behind:,}"
    )
