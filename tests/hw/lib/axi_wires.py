"""Wires of an AXI4 port cycle by cycle, played to a checker in Amaranth's simulator."""

from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import broken_rules
from tests.hw.reused_simulator import Simulation

__all__ = ["ar", "aw", "b", "play", "r", "w"]


def _address(channel, ready, **given):
    fields = {"addr": 0, "len": 0, "size": 2, "burst": 1, "cache": 3, "prot": 0, "id": 0}
    fields |= {"valid": 1, "ready": ready} | given
    return {channel + name: value for name, value in fields.items()}


def aw(ready=1, **given):
    return _address("aw", ready, **given)


def ar(ready=1, **given):
    return _address("ar", ready, **given)


def w(ready=1, **given):
    fields = {"data": 0, "strb": 0, "last": 1, "valid": 1, "ready": ready} | given
    return {f"w{name}": value for name, value in fields.items()}


def b(ready=1, **given):
    fields = {"id": 0, "resp": 0, "valid": 1, "ready": ready} | given
    return {f"b{name}": value for name, value in fields.items()}


def r(ready=1, **given):
    fields = {"id": 0, "data": 0, "resp": 0, "last": 1, "valid": 1, "ready": ready} | given
    return {f"r{name}": value for name, value in fields.items()}


def play(cycles, **parameters):
    """Set of the rules that break in each cycle; a wire that a cycle does not name is 0."""
    sizes = {"data_bits": 32, "address_bits": 32, "id_bits": 2} | parameters
    simulator = Simulation(AxiChecker, **sizes)
    checker = simulator.design
    found = []

    async def driver(ctx):
        before = {}
        for wires in cycles:
            for name in before.keys() - wires.keys():
                ctx.set(getattr(checker.monitor, name), 0)
            for name, value in wires.items():
                if before.get(name, 0) != value:
                    ctx.set(getattr(checker.monitor, name), value)
            before = wires
            found.append(set(broken_rules(ctx.get(checker.o_breaks))))
            await ctx.tick()
        assert set(broken_rules(ctx.get(checker.o_broken))) == set().union(*found)

    simulator.add_testbench(driver)
    simulator.run()
    return found
