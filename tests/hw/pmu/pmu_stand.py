"""A PMU whose streams are ports by themselves, as native models need them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.pmu.unit import Pmu
from sim.drivers.pmu_case import PmuSizes

__all__ = ["PMU_SETS", "PmuStand", "check_case"]

#: Sizes of the PMUs in must-show tests.
PMU_SETS = {
    "a": PmuSizes(64, 1024, 4),
    "b": PmuSizes(128, 4096, 16),
    "c": PmuSizes(256, 65536, 16),
}


class PmuStand(Component):
    """A PMU that is cleared in the cycle after a reset, and then runs.

    A token is a payload of one bit, 0.
    """

    def __init__(self, sizes):
        sizes = PmuSizes(*sizes)
        self._pmu = Pmu(**sizes._asdict())
        link, token = vector_signature(sizes.width_bits), stream.Signature(1)
        word = self._pmu.config.as_value()
        super().__init__(
            {f"i_stream_{number}": In(link) for number in range(2)}
            | {f"o_stream_{number}": Out(link) for number in range(2)}
            | {f"o_token_{number}": Out(token) for number in range(2)}
            | {"config": In(len(word)), "o_done": Out(4), "o_error": Out(8)}
        )

    def elaborate(self, platform):
        m = Module()
        pmu = self._pmu
        m.submodules.pmu = shared(pmu)
        runs = Signal()
        m.d.sync += runs.eq(1)
        m.d.comb += [
            pmu.config.as_value().eq(self.config),
            pmu.i_clear.eq(~runs),
            pmu.i_run.eq(runs),
            self.o_done.eq(pmu.o_done),
            self.o_error.eq(pmu.o_error),
        ]
        for number in range(2):
            own = {
                name: getattr(self, f"{name}_{number}")
                for name in ("i_stream", "o_stream", "o_token")
            }
            wiring.connect(m, pmu.o_stream[number], wiring.flipped(own["o_stream"]))
            m.d.comb += [
                pmu.i_stream[number].payload.eq(own["i_stream"].payload),
                pmu.i_stream[number].valid.eq(own["i_stream"].valid & runs),
                own["i_stream"].ready.eq(pmu.i_stream[number].ready & runs),
                own["o_token"].valid.eq(pmu.o_token[number].valid),
                pmu.o_token[number].ready.eq(own["o_token"].ready),
            ]
        return m


def check_case(model, name, sizes, case, rng):
    """Run a case on a native model from reset, under random stalls; all that leaves is numpy's."""
    model.reset(int(rng.integers(1 << 30)))
    model.set(f"{name}_config", case.program.pack(**sizes._asdict()))
    inputs = {f"{name}_i_stream_{number}": case.inputs[number].words for number in range(2)}
    counts = {f"{name}_o_stream_{number}": len(case.outputs[number].last) for number in range(2)}
    counts |= {f"{name}_o_token_{number}": case.tokens[number] for number in range(2)}
    stalls = dict(zip((*inputs, *counts), rng.choice([0.0, 0.3, 0.7], 6), strict=True))
    crossed = model.run(inputs, counts, stalls=stalls, quiet_cycles=2_000)
    for number in range(2):
        got = crossed[f"{name}_o_stream_{number}"].words
        assert (got == case.outputs[number].words).all(), case.program
    assert model.get(f"{name}_o_done") == 15
    assert model.get(f"{name}_o_error") == case.error
