import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tests.hw.reused_simulator import Simulation


class _Sums(Elaboratable):
    """Sums by place: a register, a memory that keeps its content in a reset, and its output."""

    def __init__(self, depth, first):
        self.depth = depth
        self.first = first
        self.place = Signal(range(depth))
        self.term = Signal(8)
        self.total = Signal(8, init=3)
        self.found = Signal(8)

    def elaborate(self, platform):
        m = Module()
        init = [self.first + place for place in range(self.depth)]
        m.submodules.memory = memory = Memory(shape=8, depth=self.depth, init=init)
        read, write = memory.read_port(), memory.write_port()
        m.d.sync += self.total.eq(self.total + self.term)
        m.d.comb += [
            read.addr.eq(self.place),
            write.addr.eq(self.place),
            write.data.eq(self.total + self.term),
            write.en.eq(self.term != 0),
            self.found.eq(read.data),
        ]
        return m


def _driver(sums, terms, seen):
    async def drive(ctx):
        for place, term in terms:
            ctx.set(sums.place, place)
            ctx.set(sums.term, term)
            await ctx.tick()
            seen.append((ctx.get(sums.total), ctx.get(sums.found)))

    return drive


_TERMS = [(0, 5), (1, 9), (0, 0), (1, 0), (2, 0)]
#: Totals from 3 on; the content before the write of this cycle, then the content.
_SEEN = [(8, 20), (17, 21), (17, 8), (17, 17), (17, 22)]


def _simulation(seen, terms=_TERMS, depth=3):
    simulation = Simulation(_Sums, depth, first=20)
    simulation.add_testbench(_driver(simulation.design, terms, seen))
    return simulation


def test_each_run_starts_from_the_initial_state():
    """After a run of other terms; of terms that are cut short; and of one that has failed."""

    async def fails(ctx):
        await ctx.tick().repeat(2)
        raise ValueError

    for others in (_TERMS, [(2, 77)] * 9, [(0, 1), (1, 255)]):
        seen = []
        _simulation(seen).run()
        assert seen == _SEEN
        _simulation([], others).run()
    failing = _simulation([], [(2, 77)] * 9)
    failing.add_testbench(fails)
    with pytest.raises(ValueError):
        failing.run()
    seen = []
    _simulation(seen).run()
    assert seen == _SEEN


def test_equal_parameters_share_a_design_and_not_their_testbenches():
    seen, others = [], []
    first, second = _simulation(seen), _simulation(others, [(1, 1)])
    assert first.design is second.design
    other = _simulation([], depth=4)
    assert first.design is not other.design
    other.run()
    second.run()
    first.run()
    assert seen == _SEEN and others == [(4, 21)]


def test_testbenches_act_in_their_order_until_those_in_the_foreground_end():
    simulation = Simulation(_Sums, 3, first=20)
    order = []

    def actor(name, cycles):
        async def act(ctx):
            for _ in range(cycles):
                order.append(name)
                await ctx.tick()

        return act

    simulation.add_testbench(actor("a", 100), background=True)
    simulation.add_testbench(actor("b", 2))
    simulation.add_testbench(actor("c", 100), background=True)
    simulation.add_testbench(actor("d", 3))
    simulation.run()
    assert order[:8] == list("abcdabcd")
    assert order[8:] == list("acdac")
