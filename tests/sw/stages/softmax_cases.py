"""Softmax products on chips: operands, golden by blocks of keys, and launches."""

import dataclasses
import types

import numpy as np

from hw.arch.config import ChipConfig, named
from hw.arch.lanes.key_mask import KeyMask
from hw.numeric import reference
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import ScoresModel, normalized, score_scale
from sim.emulator import emulate
from sim.launch_memory import LaunchMemory
from sw.array_spec import ArraySpec
from sw.fabric.assemble import assemble
from sw.fabric.route import place_and_route
from sw.stages.lowering import lower
from sw.stages.softmax.softmax_pipeline import softmax_pipelines
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.timing.prediction import LATENCY, predict_cycles

__all__ = ["SoftmaxCase", "drawn_product", "softmax_product"]


def softmax_product(queries, keys, depth, width=None, **fields):
    """A product of tensors Q, K, V and O, the scores divided by the root of the depth."""
    offset = fields.pop("offset", None)
    return SoftmaxProduct(
        queries,
        keys,
        depth,
        width or depth,
        *"QKVO",
        scale=fields.pop("scale", depth**-0.5),
        offset=offset,
        window=fields.pop("window", 0),
        ends=offset is not None and offset >= 0,
        block=fields.pop("block", None),
        loops=types.MappingProxyType({}),
        **fields,
    )


def drawn_product(rng, most, most_width):
    """Random sizes up to a number of rows and of columns, sides of 1 among them, and a mask."""

    def side(high):
        return round(high ** rng.random())

    queries, keys = side(most), side(most)
    offset = None
    window = 0
    if rng.random() < 0.6:
        offset = rng.choice([0, keys - queries, rng.randint(-3, keys)])
        window = rng.choice([0, 0, side(most)])
    return softmax_product(
        queries, keys, side(most_width), side(most_width), offset=offset, window=window
    )


@dataclasses.dataclass
class SoftmaxCase:
    """A product on a chip, with its image.

    The pipeline is the best one whose summary has the ``wanted`` text.
    """

    work: SoftmaxProduct
    config: str | ChipConfig = "small"
    wanted: str = ""

    def __post_init__(self):
        self.chip = named[self.config] if isinstance(self.config, str) else self.config
        work = self.work
        shapes = {
            "Q": (work.queries, work.depth),
            "K": (work.keys, work.depth),
            "V": (work.keys, work.width),
            "O": (work.queries, work.width),
        }
        self.arrays = tuple(
            ArraySpec(name, shape, bf16, output=name == "O") for name, shape in shapes.items()
        )
        self.pipeline = next(
            each
            for each in softmax_pipelines(work, self.arrays, self.chip, "product")
            if self.wanted in each.summary
        )
        netlist = lower(self.pipeline.graph, self.pipeline.homes, self.chip)
        placement, routes = place_and_route(netlist, self.chip, seed=1)
        self.program = assemble(netlist, placement, routes, self.chip)
        self.image = self.program.pack()

    def simulated(self, model, inputs, conditions):
        """The output that the RTL stores, and its cycles."""
        layout, memory = self.launch(inputs)
        run = model.run(
            memory,
            list_address=layout.list_address,
            conditions=conditions,
            max_cycles=4_000_000,
        )
        assert run.status == "done", run
        return layout.read(memory, "O"), run.cycles

    @property
    def cycles(self):
        """Predicted cycles of a cold launch."""
        found = predict_cycles(self.program, latency=LATENCY)
        return found.cycles

    def inputs(self, seed, scale=1.0):
        """Normal operands."""
        rng = np.random.default_rng(seed)
        return {
            array.name: reference.cast(
                (scale * rng.normal(0, 1, array.shape)).astype(np.float32), bf16
            )
            for array in self.arrays[:3]
        }

    def golden(self, inputs):
        """The output, by blocks of keys of the pipeline."""
        work, block, columns = self.work, self.pipeline.block_keys, self.chip.grid_columns
        bits = self.chip.pcu.function_bits
        blocks = ceil_div(work.keys, block)
        keys, values = (
            np.pad(inputs[name], ((0, blocks * block - work.keys), (0, 0))) for name in "KV"
        )
        found = []
        for first in range(0, work.queries, columns):
            queries = np.zeros((columns, work.depth), bf16.dtype)
            part = inputs["Q"][first : first + columns]
            queries[: len(part)] = part
            mask = KeyMask(length=work.keys)
            if work.offset is not None:
                mask = KeyMask(
                    work.keys, causal=True, window=work.window, offset=work.offset + first
                )
            model = ScoresModel(score_scale(work.scale), mask, columns=columns, function_bits=bits)
            own = [
                model.block(reference.matmul(keys[at : at + block], queries.T), begins=at == 0)
                for at in range(0, len(keys), block)
            ]
            found.append(np.ascontiguousarray(normalized(values, own, bits).T))
        return np.concatenate(found)[: work.queries]

    def launch(self, inputs, seed=1):
        """Memory of a launch."""
        layout = LaunchMemory.of_image(self.chip, self.image, self.arrays, seed=seed)
        return layout, layout.bytes_before(inputs)

    def emulated(self, inputs):
        """The output that the emulator stores."""
        layout, memory = self.launch(inputs)
        run = emulate(self.chip, memory, list_address=layout.list_address)
        assert run.status == "done", run
        return layout.read(memory, "O")
