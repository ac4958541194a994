"""Generated table of softmax products: predicted cycles, and those of the RTL of small chips."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np

from docs.tools.markdown import table
from hw.arch.config import named as configurations
from hw.numeric.formats import bf16
from sim.campaign.models import Models
from sim.launch_memory import LaunchMemory
from sim.native.conditions import MemoryConditions
from sw.array_spec import ArraySpec
from sw.fabric.assemble import assemble
from sw.fabric.route import place_and_route
from sw.stages.lowering import lower
from sw.stages.softmax.softmax_pipeline import softmax_pipelines
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.timing.prediction import LATENCY, predict_cycles

__all__ = ["softmax_products"]

#: Chip, queries and keys, depth and width, and whether a query sees only keys up to its own.
_PRODUCTS: tuple[tuple[str, int, int, bool], ...] = (
    ("tiny", 64, 8, False),
    ("small", 512, 64, True),
    ("small", 512, 64, False),
    ("small", 512, 128, False),
    ("small", 1024, 128, False),
    ("large", 1000, 128, False),
    ("large", 1024, 64, False),
    ("large", 1024, 128, True),
    ("large", 1024, 128, False),
    ("large", 1537, 128, False),
    ("large", 2048, 128, False),
)
#: Chips whose RTL is run.
_RUN = ("tiny", "small")
_MOST_CYCLES = 1_000_000


def softmax_products() -> str:
    """Cycles of softmax products, cold, at the default memory latency."""
    with Models() as models:
        rows = list(_rows(models))
    return table(
        (
            "chip",
            "queries × keys × depth",
            "pairs",
            "keys of a block",
            "predicted",
            "cycles",
            "utilization",
        ),
        rows,
    )


def _rows(models: Models) -> Iterator[tuple[object, ...]]:
    for name, side, depth, causal in _PRODUCTS:
        chip = configurations[name]
        work = SoftmaxProduct(
            queries=side,
            keys=side,
            depth=depth,
            width=depth,
            q="Q",
            k="K",
            v="V",
            o="O",
            scale=depth**-0.5,
            offset=0 if causal else None,
            window=0,
            ends=causal,
            block=None,
            loops=MappingProxyType({}),
        )
        arrays = tuple(ArraySpec(each, (side, depth), bf16, each == "O") for each in "QKVO")
        pipeline = next(softmax_pipelines(work, arrays, chip, "softmax product"))
        netlist = lower(pipeline.graph, pipeline.homes, chip)
        placement, routes = place_and_route(netlist, chip, seed=1)
        program = assemble(netlist, placement, routes, chip)
        image = program.pack()
        cycles = predict_cycles(program, latency=LATENCY).cycles
        measured = None
        if name in _RUN:
            layout = LaunchMemory.of_image(chip, image, arrays, seed=1)
            zeros = np.zeros((side, depth), bf16.dtype)
            run = models.run(
                chip,
                layout.bytes_before(dict.fromkeys("QKV", zeros)),
                list_address=layout.list_address,
                entries=1,
                conditions=MemoryConditions(latency=LATENCY),
                max_cycles=_MOST_CYCLES,
            )
            measured = run.cycles
        share = work.macs / ((measured or cycles) * chip.peak_macs_per_cycle(bf16.bits))
        yield (
            f"`{name}`",
            f"{side} × {side} × {depth}{', causal' if causal else ''}",
            sum(each.startswith("scores") for each in pipeline.graph.stages),
            pipeline.block_keys,
            cycles,
            "–" if measured is None else measured,
            f"{share:.3f}",
        )
