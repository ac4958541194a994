"""Choice between PCUs behind a product, of one phase each, and joined phases in fewer of them.

A PCU of the product has time for several phases on its sums where they are long. So the grid need
not give PCUs to lane programs behind it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.lanes.lane_room import kept_groups
from hw.arch.lanes.phase_word import PHASES
from hw.numeric.formats import Format
from sw.epilogue.epilogue import Epilogue, epilogue_of, turned_epilogue_of
from sw.epilogue.epilogue_region import EpilogueRegion
from sw.fabric.merges import MERGED, MOST_COLLECTED
from sw.lane_codes.joined_codes import cycles_per_group, joined_codes

__all__ = ["epilogues_of"]

#: How much faster joined phases must be by the estimate.
_FASTER = 1.02


def epilogues_of(
    region: EpilogueRegion, product: tuple[int, Format, Format], config: ChipConfig
) -> tuple[Epilogue, Epilogue | None]:
    """Lane programs behind a product, and behind that of the transposes, if lanes compute those.

    Parameters
    ----------
    region : EpilogueRegion
    product : (int, Format, Format)
        Terms of a sum, format of the operands, and of the result.
    config : ChipConfig

    Raises
    ------
    ProgramError
        As `epilogue_of` does.
    """
    terms, form, out = product
    epilogue, turned = (each(region, out, config) for each in (epilogue_of, turned_epilogue_of))
    assert epilogue is not None
    return _joined(epilogue, terms, form, config), turned and _joined(turned, terms, form, config)


def _joined(epilogue: Epilogue, terms: int, form: Format, config: ChipConfig) -> Epilogue:
    """The epilogue with phases joined so that product and lanes take the fewest cycles."""
    best = min(_variants(epilogue), key=lambda each: _cycles(each, terms, form, config))
    faster = _cycles(epilogue, terms, form, config) > _FASTER * _cycles(best, terms, form, config)
    return best if faster else epilogue


def _variants(epilogue: Epilogue) -> Iterator[Epilogue]:
    yield epilogue
    for most in range(2, PHASES + 1):
        codes = joined_codes(epilogue.codes, (epilogue.result,), most, latched=True)
        if epilogue.first is None:
            chain = joined_codes(epilogue.codes, (epilogue.result,), most)
            yield dataclasses.replace(epilogue, chain=chain)
            first, *others = codes
            taken_behind = any(epilogue.sums in code.formats for code in others)
            if first.source == epilogue.sums and not taken_behind:
                yield dataclasses.replace(epilogue, first=first, chain=tuple(others))
        else:
            yield dataclasses.replace(epilogue, first=codes[0], chain=codes[1:])


def _cycles(epilogue: Epilogue, terms: int, form: Format, config: ChipConfig) -> float:
    """Estimated cycles for each element of the result."""
    macs = config.grid_columns * config.width_bits // form.bits
    # A packet is a row of sums.
    strip = min(
        kept_groups(width_bits=config.width_bits, lanes=config.pcu.lanes),
        max(1, config.grid_columns // config.pcu.lanes),
    )
    first = cycles_per_group(epilogue.first, config) if epilogue.first else 0.0
    own = max(terms / macs, first / config.pcu.lanes)
    if not epilogue.chain:
        return own / min(config.pcu_count, MOST_COLLECTED * config.agcu.count)
    behind = max(cycles_per_group(code, config, strip) for code in epilogue.chain)
    chain = behind / config.pcu.lanes
    agcus, taken = config.agcu.count, len(epilogue.chain)
    # An AGCU's result writer has one chain, or two if its PCUs are more than one input merges.
    choices = [*((count, 0) for count in range(1, agcus + 1)), (2 * agcus, MERGED * agcus)]
    return min(
        (
            max(own / grid, chain / chains)
            for chains, fewer in choices
            if (grid := min(config.pcu_count - chains * taken, MERGED * chains)) > fewer
        ),
        default=float("inf"),
    )
