"""tma-e: operand loads of a product are issued by counter chains, and decoding leaves the bus busy.

The RTL of the chip is emitted with a probe: in the memory ports, the counter `commands` counts the
cycles in which the read bus is idle for want of a decoded command.
"""

import pytest
from amaranth.hdl import Cat, Signal

from hw.agcu import unit
from hw.arch.counters import COUNTER_BITS
from sim.backends import emitted

SIDE = 512
MOST_COMMANDS = 64
MOST_IDLE = 0.01
GOAL = f"512³: {MOST_COMMANDS} commands at most, bus idle while one decodes below {MOST_IDLE:.0%}"


def waits_for_decode(agcu, m, begun, ended, issuers):
    """No burst is in flight or offered, no box is on its way out, and a command is being made.

    That is more than the time of decoding: a command may also wait for the room of others.
    """
    axi = agcu.axi
    in_flight, loading = Signal(16), Signal(16)
    opens = axi.arvalid & axi.arready
    closes = axi.rvalid & axi.rready & axi.rlast
    loads = len(agcu.o_load)
    m.d.sync += [
        in_flight.eq(in_flight + opens - closes),
        loading.eq(loading + sum(begun[1:loads], begun[0]) - sum(ended[1:loads], ended[0])),
    ]
    makes = Cat(
        ~issuer.o_waits & ~issuer.o_command.valid & ~issuer.o_done for issuer in issuers[:loads]
    ).any()
    leaves = Cat(port.valid for port in agcu.o_load).any()
    idle = Signal()
    m.d.comb += idle.eq(
        (in_flight == 0) & ~axi.arvalid & ~axi.rvalid & ~leaves & (makes | (loading != 0))
    )
    return idle


@pytest.fixture
def probed(monkeypatch):
    """Memory ports whose counter `commands` counts the cycles of `waits_for_decode`."""
    issuers_of, count, counter_of = unit.Agcu._issuers, unit.Agcu._count, unit.chosen_counter
    kept = {}

    def keep_issuers(self, m, *arguments):
        kept["issuers"] = issuers_of(self, m, *arguments)
        return kept["issuers"]

    def count_and_probe(self, m, lacking, begun, ended):
        cycles = Signal(COUNTER_BITS)
        idle = waits_for_decode(self, m, begun, ended, kept["issuers"])
        with m.If(self.i_run):
            m.d.sync += cycles.eq(cycles + idle)
        kept["cycles"] = cycles
        count(self, m, lacking, begun, ended)

    def replace_commands(m, kind, word, values, output):
        counter_of(m, kind, word, {**values, "commands": kept["cycles"]}, output)

    sources = emitted._sources
    # Verilog is cached by its sources, which the probe is not among.
    monkeypatch.setattr(emitted, "_sources", lambda: f"{sources()} probed")
    monkeypatch.setattr(unit.Agcu, "_issuers", keep_issuers)
    monkeypatch.setattr(unit.Agcu, "_count", count_and_probe)
    monkeypatch.setattr(unit, "chosen_counter", replace_commands)


def load_programs(compiled):
    """Programs of issuers that load, in all images."""
    agcus = [agcu for part in compiled.parts for agcu in part.chip.agcus.values()]
    issuers = [issuer for agcu in agcus for issuer in agcu.loads if issuer is not None]
    return [program for issuer in issuers for program in issuer.programs]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("tma-e", goal=GOAL)
def test_chains_issue_the_loads_of_a_product(product, heavy, probed, figure):
    ran = product("small", SIDE, SIDE, SIDE)
    report = ran.run().report
    assert report["verified"] and report["entries"] == 1
    commands = report["entries"] + len(load_programs(ran.compiled[0]))
    ports = [each for each in report["counters"].values() if each["kind"] == "agcu"]
    boxes = sum(each["boxes"] for each in ports)
    idle = max(each["commands"] for each in ports) / report["cycles"]
    figure(
        f"{commands} commands for {boxes:,} boxes; the read bus waits for a decoded command in "
        f"{idle:.2%} of {report['cycles']:,} cycles"
    )
    assert commands <= MOST_COMMANDS < boxes
    assert 0 < idle < MOST_IDLE
