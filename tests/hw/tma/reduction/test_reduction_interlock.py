"""The interlock of reducing stores: one holder per page, served in the order of asking."""

import random

import pytest
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.tma.reduction import reduction_interlock
from tests.hw.tma.test_faults import mutant
from tests.slow_cases import quick_first

_PORTS = 4
_CYCLES = 4000


def history(module, seed, pages):
    """For each cycle: pages asked for, None where none is, and the ports that hold theirs."""
    rng = random.Random(seed)
    interlock = module.ReductionInterlock(ports=_PORTS, address_bits=32)
    cycles = []

    def user(port):
        async def use(ctx):
            while True:
                for _ in range(rng.randint(1, 6)):
                    await ctx.tick()
                ctx.set(port.page, rng.choice(pages))
                ctx.set(port.asks, 1)
                while not ctx.get(port.granted):
                    await ctx.tick()
                for _ in range(rng.randint(1, 9)):
                    await ctx.tick()
                ctx.set(port.asks, 0)

        return use

    async def watch(ctx):
        for _ in range(_CYCLES):
            ports = interlock.i_ports
            _, _, *values = await ctx.tick().sample(
                *(each for port in ports for each in (port.asks, port.page, port.granted))
            )
            asked = [
                page if asks else None for asks, page in zip(values[::3], values[1::3], strict=True)
            ]
            holders = {n for n in range(_PORTS) if values[3 * n] and values[3 * n + 2]}
            cycles.append((asked, holders))

    simulator = Simulator(interlock)
    simulator.add_clock(1e-6)
    for port in interlock.i_ports:
        simulator.add_testbench(user(port), background=True)
    simulator.add_testbench(watch)
    simulator.run()
    return cycles


def faults(cycles):
    """What breaks the contract, by name."""
    found = set()
    since = [0] * _PORTS  # cycle of the first ask of each port
    before, holding = [None] * _PORTS, set()
    for now, (asked, holders) in enumerate(cycles):
        pages = [asked[port] for port in holders]
        if len(set(pages)) < len(pages):
            found.add("two holders")
        for port in range(_PORTS):
            if asked[port] is not None and before[port] is None:
                since[port] = now
        for waiter in range(_PORTS):
            if asked[waiter] is None or waiter in holders:
                continue
            rivals = [n for n in range(_PORTS) if asked[n] == asked[waiter] and n != waiter]
            if any(n in holders and (since[n], n) > (since[waiter], waiter) for n in rivals):
                found.add("overtaken")
        if any(asked[port] is not None and port not in holders for port in holding):
            found.add("taken away")
        before, holding = asked, holders
    return found


@pytest.mark.parametrize("pages", quick_first([[5, 6], [5], list(range(100, 108))]))
def test_a_page_has_one_holder_and_is_given_in_order(pages, seed):
    cycles = history(reduction_interlock, seed, pages)
    assert faults(cycles) == set()
    held = [len(holders) for _, holders in cycles]
    assert max(held) == min(len(pages), _PORTS)
    assert sum(held) > _CYCLES * min(len(pages), _PORTS) // 4


def test_a_free_page_is_granted_after_two_cycles():
    interlock = reduction_interlock.ReductionInterlock(ports=2)
    port = interlock.i_ports[1]

    async def ask(ctx):
        ctx.set(port.page, 9)
        ctx.set(port.asks, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(port.granted)
        assert not ctx.get(interlock.i_ports[0].granted)

    simulator = Simulator(interlock)
    simulator.add_clock(1e-6)
    simulator.add_testbench(ask)
    simulator.run()


@pytest.mark.parametrize(
    ("healthy", "faulty", "broken"),
    quick_first(
        [
            ("behind.eq(asks[j] & seen[j])", "behind.eq(0)", "overtaken"),
            ("(port.page == other.page)", "(port.page == other.page) & 0", "two holders"),
            (
                "with m.Elif(asks[j] & ~seen[j])",
                "with m.Elif(asks[j] & ~seen[j] & 0)",
                "taken away",
            ),
        ]
    ),
)
def test_a_broken_interlock_is_found(healthy, faulty, broken, seed):
    copy = mutant(reduction_interlock, healthy, faulty)
    assert broken in faults(history(copy, seed, [5, 6]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ports": 1}, "Ports of an interlock must be"),
        ({"ports": 17}, "Ports of an interlock must be"),
        ({"ports": 2, "address_bits": 12}, "Address bits of an interlock must be"),
        ({"ports": 2, "address_bits": 65}, "Address bits of an interlock must be"),
    ],
)
def test_a_parameter_outside_its_domain_is_refused(parameters, message):
    with pytest.raises(BadInputError, match=message):
        reduction_interlock.ReductionInterlock(**parameters)
