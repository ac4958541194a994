"""house-c: a toy kind of unit, added by one entry per registry and one component, works throughout.

The unit adds 1 to every int32 element and lies between PCU and result PMU of a product.
"""

import dataclasses

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from docs.tools.contract_tables import units as unit_table
from gen.floorplan import floorplan
from gen.verilog import emit
from hw.arch.agcu import AgcuInput, AgcuOutput
from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig
from hw.arch.counters import (
    ACTIVITIES,
    COUNTER_BITS,
    activity_layout,
    counter_table,
    named_counters,
    unit_kinds,
)
from hw.arch.limits import COUNTER_WORDS
from hw.arch.loops import LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.ports import PortNames, UnitProgram
from hw.arch.unit_kind import UNIT_KINDS, UnitKind
from hw.chip import Chip
from hw.emit.shared import shared
from hw.lib.activity import count_activity
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer, vector_layout, vector_signature
from hw.numeric.formats import int8, int32
from hw.tile import TILE_UNITS, TileUnit
from sim.emulator import emulate
from sim.emulator.fabric import UNIT_STREAMS
from sim.native.chip_model import ChipModel, MemoryConditions
from sim.oracle import product
from sim.run.report import report_counters
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.nets import Input, Output
from sw.fabric.place import place
from sw.fabric.route import route
from sw.netlist import Net, Netlist, Pin
from sw.prove.liveness import prove
from sw.prove.machine import Core
from sw.prove.network import UNIT_ACTORS
from sw.prove.stream_packets import SENT_PACKETS
from tests.units_matmul import UnitsMatmul


class ToyInput(PortNames):
    """Vector inputs of the toy."""

    TERMS = 0


class ToyOutput(PortNames):
    """Vector outputs of the toy."""

    SUMS = 0


def toy_layout():
    return data.StructLayout({"enable": 1})


@dataclasses.dataclass(frozen=True)
class ToyProgram(UnitProgram):
    """Program of the toy, which can only be on."""

    @property
    def inputs(self):
        return (ToyInput.TERMS,)

    @property
    def outputs(self):
        return (ToyOutput.SUMS,)


TOY = UnitKind(
    name="toy",
    letter="t",
    inputs=ToyInput,
    outputs=ToyOutput,
    token_outputs=0,
    program=ToyProgram,
    layout=lambda chip: toy_layout(),
    pack=lambda program, chip: 1,
    unpack=lambda word, chip: ToyProgram(),
    counters={"vectors": (4, "vectors that left the toy")},
)


class Toy(Component):
    """The component: adds a constant to every element of 32 bits, one vector per cycle."""

    def __init__(self, *, width_bits, addend):
        self._width_bits, self._addend = width_bits, addend
        link = vector_signature(width_bits)
        super().__init__(
            {
                "i_terms": In(link),
                "o_sums": Out(link),
                "config": In(toy_layout()),
                "i_clear": In(1),
                "i_run": In(1),
                "o_counters": Out(activity_layout()),
                "o_vectors": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        buffer = ElasticBuffer(vector_layout(self._width_bits))
        m.submodules.buffer = shared(buffer)
        connect(m, flipped(self.i_terms), buffer.i_stream)
        terms, sums = buffer.o_stream, self.o_sums
        moves = Signal()
        m.d.comb += [
            buffer.i_clear.eq(self.i_clear),
            sums.valid.eq(terms.valid & self.config.enable),
            terms.ready.eq(sums.ready & self.config.enable),
            sums.payload.eq(terms.payload),
            moves.eq(sums.valid & sums.ready),
        ]
        for lane in range(self._width_bits // 32):
            term = terms.payload.data.word_select(lane, 32)
            m.d.comb += sums.payload.data.word_select(lane, 32).eq(term + self._addend)
        with m.If(self.i_run):
            count_activity(
                m,
                self.o_counters,
                busy=moves,
                idle=~terms.valid,
                wait_room=terms.valid & ~sums.ready,
            )
            m.d.sync += self.o_vectors.eq(self.o_vectors + moves)
        return m


def toy_hardware(addend):
    def instance(chip, vectors, tokens):
        unit = Toy(width_bits=chip.width_bits, addend=addend)
        counters = {name: unit.o_counters[name] for name in ACTIVITIES}
        links = (
            (vectors.o_unit[ToyInput.TERMS], unit.i_terms),
            (unit.o_sums, vectors.i_unit[ToyOutput.SUMS]),
        )
        return TileUnit(unit, links, counters=counters | {"vectors": unit.o_vectors})

    return instance


class ToyActor(Core):
    """The toy in the liveness proof: what it takes, it sends."""

    def __init__(self, network, at, program):
        terms, sums = Input(TOY, at, ToyInput.TERMS), Output(TOY, at, ToyOutput.SUMS)
        super().__init__(network.machine, f"TOY {at}")
        self.port = network.port(terms, self, 2, FilterProgram())
        self.channel = network.channel(sums, self)
        self.left = network.packets.arriving(terms).vectors
        network.actors.append(self)

    def want(self, port):
        return self.channel.room()

    def accept(self, port, count):
        self.left -= count
        self.channel.push(count)

    def advance(self):
        self.port.advance()

    def state(self):
        return (-self.left,)

    def skip(self, count):
        self.left -= count

    def reasons(self):
        if not self.left:
            return []
        if self.port.left():
            return [(f"room in {self.channel.name}", self.channel.fullest().holder())]
        return [(f"a vector from {self.port.tap.channel.name}", self.port.source())]


def toy_packets(streams, root, program):
    return streams.arriving(Input(TOY, root.at, ToyInput.TERMS))


def toy_stream(addend):
    def stream(fabric, root, program):
        terms = fabric.arriving(Input(TOY, root.at, ToyInput.TERMS))
        sums = np.ascontiguousarray(terms).view(np.int32) + np.int32(addend)
        return sums.view(np.uint8)

    return stream


@pytest.fixture
def toy(monkeypatch):
    """The toy's entries, one per registry; the function plants another addend in a layer."""
    monkeypatch.setitem(UNIT_KINDS, TOY.name, TOY)
    monkeypatch.setitem(UNIT_ACTORS, TOY, ToyActor)
    monkeypatch.setitem(SENT_PACKETS, TOY, toy_packets)

    def add(hardware=1, emulator=1):
        monkeypatch.setitem(TILE_UNITS, TOY, toy_hardware(hardware))
        monkeypatch.setitem(UNIT_STREAMS, TOY, toy_stream(emulator))

    add()
    return add


def chip():
    """Chip of 2 × 2 tiles, one of them a toy."""
    pmu, agcu = PmuConfig(capacity_bytes=4096), AgcuConfig(count=1)
    return ChipConfig(rows=2, columns=2, width_bits=64, pattern="cm/mt", pmu=pmu, agcu=agcu)


class ToyProduct(UnitsMatmul):
    """C = A · B + 1 by a netlist: PCU, toy and PMUs are placed, routed and assembled."""

    def netlist(self):
        def net(name, source, sink, **kinds):
            return Net(name, ((Pin(*source), 1),), (Pin(*sink),), **kinds)

        return Netlist(
            {
                "pcu": PcuProgram(fmt=self.fmt, out=self.out),
                "toy": ToyProgram(),
                "operands": self._operands(),
                "results": self._results(),
                "agcu": self._agcu(),
            },
            (
                net("a", ("agcu", AgcuOutput.LOAD_0), ("operands", PmuInput.W0)),
                net("b", ("agcu", AgcuOutput.LOAD_1), ("operands", PmuInput.W1)),
                net("rows", ("operands", PmuOutput.R0), ("pcu", PcuInput.ACTIVATION)),
                net("columns", ("operands", PmuOutput.R1), ("pcu", PcuInput.WEIGHT)),
                net("sums", ("pcu", PcuOutput.RESULT), ("toy", ToyInput.TERMS)),
                net("more", ("toy", ToyOutput.SUMS), ("results", PmuInput.W0)),
                net("c", ("results", PmuOutput.R0), ("agcu", AgcuInput.STORE_0)),
                net("a_free", ("operands", 0), ("agcu", 0), tokens=True),
                net("b_free", ("operands", 1), ("agcu", 1), tokens=True),
            ),
            {"agcu": 0},
        )

    def image(self):
        netlist = self.netlist()
        placement = place(netlist, self.config, seed=1)
        routes = route(netlist, placement, self.config, seed=1)
        return assemble(netlist, placement, routes, self.config).pack()

    def vectors(self):
        """Vectors of results, padding included."""
        rows, columns, _ = self.blocks
        return rows * columns * self.block_rows * self.lanes // self.config.grid_columns


class ToyLoop(ToyProduct):
    """A PMU whose reader waits for what its writer gets from the toy, which the reader feeds."""

    def netlist(self):
        engine = EngineProgram(
            ring=SlotRing(buffer=0, base=0, stride=4, count=2),
            loops=(LoopProgram(2, stride=2),),
            element_bytes=4,
            windows=LoopProgram(8),
        )
        units = {
            "toy": ToyProgram(),
            "pmu": PmuProgram(writers=(engine, None), readers=(engine, None)),
        }
        out = ((Pin("pmu", PmuOutput.R0), 1),), (Pin("toy", ToyInput.TERMS),)
        back = ((Pin("toy", ToyOutput.SUMS), 1),), (Pin("pmu", PmuInput.W0),)
        return Netlist(units, (Net("out", *out), Net("back", *back)), {})


def job(kind=ToyProduct):
    return kind(chip(), 37, 13, 50, int8, int32, 16, 16, 4)


class Case:
    """Memory of a launch before and after, and what must be in it."""

    def __init__(self, job, seed):
        rng = np.random.default_rng(seed)
        a, b = job.operands(rng)
        self.layout = job.launch_memory(int(rng.integers(1 << 40)))
        self.memory = self.layout.bytes_before({"A": a, "B": b})
        self.golden = product(a, b, np.int32) + np.int32(1)

    def emulated(self):
        run = emulate(chip(), self.memory, list_address=self.layout.list_address)
        assert run.status == "done"
        return run, self.layout.read(self.memory, "C")

    def simulated(self, model, **conditions):
        return model.run(
            self.memory,
            list_address=self.layout.list_address,
            conditions=MemoryConditions(**conditions),
            max_cycles=200_000,
        ), self.layout.read(self.memory, "C")


@pytest.mark.must("house-c", goal="one entry per registry: image, proof, emulator, tables know it")
def test_software_knows_a_unit_added_by_one_entry_per_registry(toy, seed, figure):
    image = job().image()
    program = ChipProgram.unpack(chip(), image)
    assert program.pack() == image
    assert program.units_used() == {"pcu": 1, "pmu": 2, "agcu": 1, "toy": 1}
    assert program.unit((1, 1)) == ToyProgram()
    assert prove(program).live
    run, c = Case(job(), seed).emulated()
    assert run.units_used["toy"] == 1
    case = Case(job(), seed)
    assert (c == case.golden).all()
    toy(emulator=2)
    assert (case.emulated()[1] == case.golden + np.int32(1)).all()
    assert ">TOY 1,1<" in floorplan(chip(), {(1, 1): "toy"}, {})
    assert "| TOY | `t` | terms | sums |" in unit_table()
    assert "| TOY | 4 | `vectors` | vectors that left the toy |" in counter_table()
    figure("5 entries, 1 component")


@pytest.mark.must("house-c", goal="a deadlock through the unit is found and named")
def test_the_proof_names_a_deadlock_through_the_unit(toy, figure):
    found = prove(ChipProgram.unpack(chip(), job(ToyLoop).image()))
    assert not found.live and not found.faults
    assert found.waits == (
        "PMU (0, 1) W0 waits for a vector from TOY (1, 1) sums",
        "TOY (1, 1) waits for a vector from PMU (0, 1) R0",
        "PMU (0, 1) R0 waits for a full slot from PMU (0, 1) W0",
    )
    figure(" → ".join(wait.split(" waits")[0] for wait in found.waits))


@pytest.mark.slow
@pytest.mark.must("house-c", goal="golden = emulator = RTL; counters count; what is refused hangs")
def test_rtl_agrees_and_its_counters_count(toy, seed, heavy, figure):
    config, case = chip(), Case(job(), seed)
    with ChipModel(emit(Chip(config)), config, seed=seed % 1000) as model:
        run, c = case.simulated(model, latency=20, stall=0.3, seed=seed)
        hung, _ = Case(job(ToyLoop), seed).simulated(model)
    assert run.status == "done" and hung.status == "hang"
    assert (c == case.golden).all() and (c == Case(job(), seed).emulated()[1]).all()
    index = list(unit_kinds(config)).index("toy_1_1")
    words = run.counters[COUNTER_WORDS * index : COUNTER_WORDS * (index + 1)]
    counted = named_counters(TOY, words)
    assert counted["vectors"] == counted["busy"] == job().vectors()
    assert sum(counted[name] for name in ACTIVITIES) == run.cycles - run.launch_cycles
    report = report_counters(config, int8, run.counters, run.launch_cycles)
    assert report["toy_1_1"]["kind"] == "toy" and report["toy_1_1"]["busy"] == counted["busy"]
    assert report["toy_1_1"]["macs"] is None and report["pcu_0_0"]["macs"] > 0
    toy(hardware=2)
    with ChipModel(emit(Chip(config)), config) as model:
        _, wrong = Case(job(), seed).simulated(model)
    assert (wrong == case.golden + np.int32(1)).all()
    figure(f"{c.size} elements, {counted['vectors']} vectors; a toy that adds 2 differs in each")


def test_without_the_entry_the_letter_is_refused():
    with pytest.raises(ValueError, match="Pattern must be 'checkerboard' or 2 groups of 2 letters"):
        chip()
