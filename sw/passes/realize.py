"""realize: lower the candidate plans, best first, to the first that routes and is proved live."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.arrays import ArraySpec
from sw.fabric.errors import FitError
from sw.image import ChipProgram
from sw.netlist import Netlist
from sw.passes.assemble import assemble
from sw.passes.fit import Fit
from sw.passes.place import Placement
from sw.passes.plan import Plan
from sw.passes.route import Routes, place_and_route
from sw.passes.units import units
from sw.prove import Liveness, LivenessError, require_live

__all__ = ["MOST_PLANS", "Realized", "realize"]

#: Plans that are placed, routed and proved before a product is refused.
MOST_PLANS = 12


@dataclasses.dataclass(frozen=True)
class Realized:
    """A realized plan: netlist, placement, routes, and an image that is proved live.

    Parameters
    ----------
    plan : Plan
    fit : Fit
    netlist : Netlist
    placement : Placement
    routes : Routes
    chip : ChipProgram
    image : bytes
    liveness : Liveness
    given_up : tuple of BadInputError
        Reason for each better plan that was given up.
    """

    plan: Plan
    fit: Fit
    netlist: Netlist
    placement: Placement
    routes: Routes
    chip: ChipProgram
    image: bytes
    liveness: Liveness
    given_up: tuple[BadInputError, ...]


@contextlib.contextmanager
def _own_fault(step: str) -> Iterator[None]:
    """Context manager that turns a refused encoding of compiler output into an internal error."""
    try:
        yield
    except BadInputError as error:
        raise RuntimeError(f"{step}: {error}") from error


def realize(
    choices: Iterable[tuple[Plan, Fit]],
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    seed: int,
) -> Realized:
    """Return the first plan whose nets can be routed and whose image is live.

    Parameters
    ----------
    choices : iterable of (Plan, Fit)
        At least one, best first; at most `MOST_PLANS` are tried.
    arrays : tuple of ArraySpec
    config : ChipConfig
    seed : int
        Seed of the placement.

    Raises
    ------
    BadInputError
        If no plan that was tried can be placed, routed and proved live.
    """
    given_up: list[BadInputError] = []
    for plan, places in itertools.islice(choices, MOST_PLANS):
        with _own_fault("units"):
            netlist = units(plan, places, arrays)
        try:
            placement, routes = place_and_route(netlist, config, seed=seed)
            with _own_fault("assemble"):
                chip = assemble(netlist, placement, routes, config)
                image = chip.pack()
            liveness = require_live(ChipProgram.unpack(config, image))
        except (FitError, LivenessError) as error:
            given_up.append(error)
            continue
        return Realized(
            plan, places, netlist, placement, routes, chip, image, liveness, tuple(given_up)
        )
    first = given_up[0]
    tried = f"none of {len(given_up)} plans fits" if len(given_up) > 1 else "the one plan does not"
    raise BadInputError(
        f"Product must fit the chip, but {tried}; {first.message}",
        kind=first.kind,
        where=first.where,
        value=first.message if first.value is None else first.value,
        rule="fewer units (row_par, col_par), other tiles or slots, or a chip with more tracks, "
        "PMUs or AGCUs",
    )
