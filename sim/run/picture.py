"""SVG picture of the units and routes that a compiled kernel uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gen.floorplan import floorplan
from sim.run.problem import Problem

if TYPE_CHECKING:
    from sw.compiler import Compiled

__all__ = ["picture"]


def picture(compiled: Compiled, problem: Problem, chip: str) -> str:
    """Draw units, links by net, and a legend as SVG.

    Parameters
    ----------
    compiled : Compiled
    problem : Problem
        The compiled problem.
    chip : str
        Name of the configuration, for the heading.
    """
    sizes = ", ".join(f"{name} = {size}" for name, size in problem.dims.items())
    return floorplan(
        problem.config,
        {at: name for name, at in compiled.placement.tiles.items()},
        {
            name: [(hop.place, hop.program) for hop in hops]
            for name, hops in compiled.routes.vectors.items()
        },
        agcus={number: name for name, number in compiled.netlist.fixed.items()},
        title=f"{problem.kernel.name} on {chip}: {sizes}",
    )
