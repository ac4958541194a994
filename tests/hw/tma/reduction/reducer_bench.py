"""A burst reducer with its memory, for Amaranth's simulator."""

import random

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4Signature
from hw.lib.stream import ElasticBuffer
from hw.tma.reduction.reduction_fields import reduction_layout
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.memory import AxiMemory

__all__ = ["ReducerBench"]

#: Cycles after which what has not happened is taken for lost.
_PATIENCE = 20_000


class _Stand(wiring.Component):
    """A reducer whose read and write halves are one port, behind buffers as an engine has them."""

    def __init__(self, reducer, data_bits):
        self.reducer = reducer
        address = {"address": 32, "length": 8, "reduction": reduction_layout}
        beat = {"data": data_bits, "strobe": data_bits // 8, "last": 1}
        self.answer = data.StructLayout({"code": 2, "failed_read": 1})
        super().__init__(
            {
                "i_addresses": In(stream.Signature(data.StructLayout(address))),
                "i_beats": In(stream.Signature(data.StructLayout(beat))),
                "o_answers": Out(stream.Signature(self.answer)),
                "axi": Out(Axi4Signature(data_bits=data_bits, address_bits=32)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        reducer = self.reducer
        m.submodules.reducer = reducer
        for half in (reducer.reads, reducer.writes):
            for wire, member in half.signature.members.items():
                inner, outer = getattr(half, wire), getattr(self.axi, wire)
                m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
        m.submodules.addresses = addresses = ElasticBuffer(self.i_addresses.payload.shape())
        m.submodules.beats = beats = ElasticBuffer(self.i_beats.payload.shape())
        m.submodules.answers = answers = ElasticBuffer(self.answer)
        wiring.connect(m, wiring.flipped(self.i_addresses), addresses.i_stream)
        wiring.connect(m, wiring.flipped(self.i_beats), beats.i_stream)
        wiring.connect(m, answers.o_stream, wiring.flipped(self.o_answers))
        port = reducer.i_stores
        address, beat = addresses.o_stream, beats.o_stream
        m.d.comb += [
            port.awvalid.eq(address.valid),
            port.awaddr.eq(address.payload.address),
            port.awlen.eq(address.payload.length),
            reducer.i_reduction.eq(address.payload.reduction),
            address.ready.eq(port.awready),
            port.wvalid.eq(beat.valid),
            port.wdata.eq(beat.payload.data),
            port.wstrb.eq(beat.payload.strobe),
            port.wlast.eq(beat.payload.last),
            beat.ready.eq(port.wready),
            answers.i_stream.valid.eq(port.bvalid),
            answers.i_stream.payload.code.eq(port.bresp),
            answers.i_stream.payload.failed_read.eq(reducer.o_failed_read),
            port.bready.eq(answers.i_stream.ready),
        ]
        return m


def _checked_reducer(make, data_bits):
    reducer = make(data_bits=data_bits, address_bits=32, outstanding=16)
    stand = _Stand(reducer, data_bits)
    return CheckedPort(stand, stand.axi, outstanding=17)


class ReducerBench:
    """A reducer, an engine's port that gives it bursts, an interlock that grants, and a memory.

    A burst is (address, reduction or None, beats), a reduction (operation, format), a beat (data,
    strobe). ``make`` is the reducer's class; ``granted`` tells, by cycle, whether a page asked for
    is granted.
    """

    def __init__(
        self, make, content, *, data_bits=64, seed=0, granted=lambda cycle: True, **memory
    ):
        self.rng = random.Random(seed)
        self.granted = granted
        self.simulator = Simulation(_checked_reducer, make, data_bits)
        self.stand = whole = self.simulator.design.design
        self.reducer = whole.reducer
        everywhere = [(0, len(content))]
        regions = {"readable": everywhere, "writable": everywhere} | memory
        self.memory = AxiMemory(whole.axi, content, self.rng, **regions)
        self.answers = []
        self.asked = []  # each page asked for, once per ask
        self.held = []  # by cycle, whether the page is asked for
        self.stall = memory.get("stall", 0.0)
        self.simulator.add_testbench(self.memory.run, background=True)
        self.simulator.add_testbench(self._answer, background=True)
        self.simulator.add_testbench(self._grant, background=True)

    async def _answer(self, ctx):
        port = self.stand.o_answers
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(port.ready, ready)
            *_, valid, answer = await ctx.tick().sample(port.valid, port.payload)
            if valid and ready:
                self.answers.append((int(answer.code), int(answer.failed_read)))

    async def _grant(self, ctx):
        port = self.reducer.interlock
        cycle, asking = 0, False
        while True:
            asks = ctx.get(port.asks)
            if asks and not asking:
                self.asked.append(ctx.get(port.page))
            self.held.append(asks)
            asking = asks
            ctx.set(port.granted, bool(asks and self.granted(cycle)))
            await ctx.tick()
            cycle += 1

    async def _offer(self, ctx, port, payload):
        ctx.set(port.payload, payload)
        ctx.set(port.valid, 1)
        while not ctx.get(port.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(port.valid, 0)

    def run(self, bursts, *, drain=None):
        """Give bursts, and wait for their answers; with ``drain``, drain from that cycle on."""
        addresses, beats = self.stand.i_addresses, self.stand.i_beats

        async def give(ctx):
            for address, reduction, content in bursts:
                request = {"combines": reduction is not None, "operation": 0}
                format = 0
                if reduction is not None:
                    request["operation"], format = (each.value for each in reduction)
                whole = {"request": request, "format": format}
                fields = {"address": address, "length": len(content) - 1, "reduction": whole}
                await self._offer(ctx, addresses, fields)

        async def give_beats(ctx):
            for _, _, content in bursts:
                for number, (word, strobe) in enumerate(content):
                    last = number == len(content) - 1
                    while self.rng.random() < self.stall:
                        await ctx.tick()
                    await self._offer(ctx, beats, {"data": word, "strobe": strobe, "last": last})

        async def wait(ctx):
            for cycle in range(_PATIENCE):
                if drain is not None:
                    ctx.set(self.reducer.i_drain, cycle >= drain)
                if len(self.answers) == len(bursts):
                    await ctx.tick().repeat(4)
                    return
                await ctx.tick()
            raise AssertionError(f"{len(self.answers)} of {len(bursts)} bursts answered")

        for actor in (give, give_beats, wait):
            self.simulator.add_testbench(actor)
        self.simulator.run()
        assert self.memory.quiet
