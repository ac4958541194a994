# amaranth: UnusedElaboratable=no
"""Each rule of the AXI4 checker: a faulty manager or subordinate breaks exactly that rule."""

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.lib.axi import Axi4Signature
from hw.lib.axi_assertions import state_rules, watch
from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import AxiRule, Side
from tests.hw.lib.axi_wires import ar, aw, b, play, r, w

IDLE = {}
#: Kinds of burst.
FIXED, INCR, WRAP = 0, 1, 2
#: Cycles of which the last one, and none before it, breaks the rule. The port has 32 data bits, so
#: bursts of size 2 are of full width; the cycle after reset is idle where it does not matter.
FAULTS = {
    "AW_RESET": [[aw(ready=0)]],
    "AW_HELD": [[IDLE, aw(ready=0), IDLE], [IDLE, aw(ready=0), aw(ready=0), IDLE]],
    "AW_STABLE": [
        [IDLE, aw(ready=0), aw(**{name: value})]
        for name, value in (
            *(("addr", 4), ("len", 1), ("size", 1), ("burst", FIXED)),
            *(("cache", 2), ("prot", 1), ("id", 1)),
        )
    ],
    "AW_SIZE": [[IDLE, aw(size=3)], [IDLE, aw(size=7, ready=0)]],
    "AW_BURST": [[IDLE, aw(burst=3)]],
    "AW_FIXED": [[IDLE, aw(burst=FIXED, len=16)], [IDLE, aw(burst=FIXED, len=255)]],
    "AW_WRAP_LENGTH": [[IDLE, aw(burst=WRAP, len=n)] for n in (0, 2, 4, 14, 16, 31, 255)],
    "AW_WRAP_ALIGNED": [[IDLE, aw(burst=WRAP, len=3, addr=n)] for n in (1, 2, 0x1007)],
    "AW_BOUNDARY": [
        [IDLE, aw(addr=0xFFC, len=1)],
        [IDLE, aw(addr=0xFFE, len=1, size=1)],
        [IDLE, aw(addr=0xC04, len=255)],
        [IDLE, aw(addr=0xFFC, len=255)],
        [IDLE, aw(addr=0x7FFFFFFF, len=1)],
    ],
    "AW_CACHE": [[IDLE, aw(cache=code)] for code in (4, 5, 8, 9, 12, 13)],
    "W_RESET": [[w(ready=0)]],
    "W_HELD": [[IDLE, w(ready=0), IDLE]],
    "W_STABLE": [
        [IDLE, w(ready=0), w(**{name: value})]
        for name, value in (("data", 1), ("strb", 1), ("last", 0))
    ],
    "W_LAST": [
        # Too early and too late, after the address, with it and before it.
        [IDLE, aw(len=1), w(last=1)],
        [IDLE, aw(len=1), w(last=0), w(last=0)],
        [IDLE, aw(len=1) | w(last=1)],
        [IDLE, aw(len=0) | w(last=0)],
        [IDLE, w(last=1), aw(len=1)],
        [IDLE, w(last=0), w(last=0), aw(len=0)],
        [IDLE, w(last=0), w(last=0), aw(len=1), w(last=0)],
        # Data of two bursts take turns: the first beat of the second is taken for the first's.
        [IDLE, aw(len=1), aw(len=0, addr=4), w(last=0), w(last=1), w(last=0)],
        [IDLE, aw(len=2), aw(len=0), w(last=0), w(last=1)],
        # Three beats, then two, with a judgement that is late.
        [IDLE, w(last=0), w(last=0), w(last=1), w(last=1), aw(len=2), IDLE, IDLE, aw(len=1)],
    ],
    "W_STROBES": [
        [IDLE, aw(size=0, addr=1), w(strb=0b0001)],
        [IDLE, aw(size=0, addr=1) | w(strb=0b0100)],
        [IDLE, w(strb=0b1000), aw(size=0, addr=1)],
        [IDLE, aw(size=1, addr=2), w(strb=0b0110)],
        # The first beat of an unaligned burst begins at its address, later ones are aligned.
        [IDLE, aw(size=2, addr=1, len=1), w(strb=0b0001, last=0)],
        [IDLE, aw(size=1, addr=1, len=1), w(strb=0b0010, last=0), w(strb=0b0010)],
        # INCR goes on, FIXED stays, WRAP returns.
        [IDLE, aw(size=0, addr=3, len=1), w(strb=0b1000, last=0), w(strb=0b1000)],
        [IDLE, aw(burst=FIXED, size=0, addr=3, len=1), w(strb=8, last=0), w(strb=0b0001)],
        [IDLE, aw(burst=FIXED, size=1, addr=1, len=1), w(strb=2, last=0), w(strb=0b0001)],
        [IDLE, aw(burst=WRAP, size=0, addr=3, len=1), w(strb=8, last=0), w(strb=0b0001)],
    ],
    "B_RESET": [[b(ready=0)]],
    "B_HELD": [[IDLE, aw() | w(), b(ready=0), IDLE]],
    "B_STABLE": [
        [IDLE, aw() | w(), b(ready=0), b(resp=2)],
        [IDLE, aw(id=0) | w(), aw(id=1) | w(), b(ready=0, id=0), b(id=1)],
    ],
    "B_ID": [
        [IDLE, b()],
        [IDLE, w(), b()],
        [IDLE, aw() | w() | b()],
        [IDLE, aw(id=1) | w(), b(id=2)],
        [IDLE, aw() | w(), b(), b()],
        [IDLE, aw(ready=0) | w(), aw(ready=0) | b()],
    ],
    "B_DATA": [
        [IDLE, aw(), b()],
        [IDLE, aw(len=1), w(last=0), b(ready=0)],
        [IDLE, aw(), w() | b()],
        [IDLE, aw(), w(ready=0), w(ready=0) | b()],
        # The data of the first burst have come, not those of the second, whose id is answered.
        [IDLE, aw(id=0), aw(id=1), w(), b(id=1)],
        [IDLE, aw(id=0) | w(), aw(id=0), b(id=0), b(id=0)],
        [IDLE, w(), aw(id=3), aw(id=3), b(id=3), b(id=3)],
    ],
    "B_EXOKAY": [[IDLE, aw() | w(), b(resp=1)]],
    "R_RESET": [[r(ready=0)]],
    "R_HELD": [[IDLE, ar(), r(ready=0), IDLE]],
    "R_STABLE": [
        *(
            [IDLE, ar(), r(ready=0), r(**{name: value})]
            for name, value in (("data", 1), ("resp", 2), ("resp", 3))
        ),
        [IDLE, ar(id=0), ar(id=1), r(ready=0, id=0), r(id=1)],
    ],
    "R_ID": [
        [IDLE, r()],
        [IDLE, ar() | r()],
        [IDLE, ar(ready=0), ar(ready=0) | r()],
        [IDLE, ar(id=1), r(id=2)],
        [IDLE, ar(), r(), r()],
        [IDLE, ar(len=2), r(last=0), r(last=0), r(), r(last=0, ready=0)],
    ],
    "R_LAST": [
        [IDLE, ar(len=1), r(last=1)],
        [IDLE, ar(len=1), r(last=0), r(last=0)],
        [IDLE, ar(), r(last=0, ready=0)],
        # In order within an id, whatever other ids do between.
        [IDLE, ar(len=1), ar(len=0), r(last=1)],
        [IDLE, ar(len=1, id=1), ar(len=0, id=2), r(last=0, id=1), r(id=2), r(last=0, id=1)],
        [IDLE, ar(len=255), *[r(last=0)] * 256],
    ],
    "R_EXOKAY": [[IDLE, ar(), r(resp=1)]],
    "WRITES_BOUND": [[IDLE, aw(), aw(), aw(), aw(), aw()]],
    "EARLY_BOUND": [[IDLE, *[w(last=0)] * 8, w()], [IDLE, *[w()] * 9]],
    "READS_BOUND": [[IDLE, ar(), ar(), ar(), ar(), ar()]],
}
# AR is AW with other letters.
FAULTS |= {
    name.replace("AW_", "AR_"): [
        [{f"ar{key[2:]}": value for key, value in wires.items()} for wires in cycles]
        for cycles in faults
    ]
    for name, faults in FAULTS.items()
    if name.startswith("AW_")
}
SMALL = {"reads": 4, "writes": 4, "early_beats": 8}

LEGAL = [
    [IDLE, aw(ready=0), aw(ready=0), aw(), w(ready=0), w(), b(ready=0), b()],
    [IDLE, aw(size=0), aw(size=1), aw(burst=FIXED, len=15), aw(burst=WRAP, len=15, addr=0xFFC)],
    [IDLE, *[aw(burst=WRAP, len=n, addr=4) for n in (1, 3, 7, 15)]],
    [IDLE, aw(addr=0xFFC), aw(addr=0xC00, len=255), aw(addr=0xC03, len=255), aw(addr=0xFFF)],
    [IDLE, *[aw(cache=code) | w() for code in (0, 1, 2, 3)]],
    [IDLE, *[aw(cache=code) | w() for code in (6, 7, 10, 11)]],
    [IDLE, *[aw(cache=code) | w() for code in (14, 15)]],
    [IDLE, w(last=0), w(), aw(len=1), b()],
    [IDLE, w(), w(last=0), aw(id=1) | w(), aw(len=1, id=2) | b(id=1), b(id=2)],
    [IDLE, aw(id=1) | w(), aw(id=2) | w(), b(id=2), b(id=1)],
    [IDLE, aw(size=1, addr=1, len=1), w(strb=0b0010, last=0), w(strb=0b1100)],
    [IDLE, aw(burst=FIXED, size=1, addr=1, len=1), w(strb=2, last=0), w(strb=2)],
    [IDLE, aw(burst=WRAP, size=0, addr=3, len=1), w(strb=8, last=0), w(strb=4)],
    [IDLE, *[aw() | w(), b()] * 6],
    [IDLE, *[ar(), r()] * 6],
    [IDLE, ar(), ar(), ar(), ar(), ar() | r()],
    [IDLE, aw(), aw(), aw(), aw() | w(), aw() | w() | b()],
    [IDLE, ar(len=1, id=1), ar(id=2), ar(id=1), r(last=0, id=1), r(id=2), r(id=1), r(id=1)],
    [IDLE, ar(len=255), *[r(last=0)] * 255, r()],
    [IDLE, ar(), r(resp=2), aw() | w(), b(resp=3)],
]


def test_every_rule_has_a_fault():
    assert list(FAULTS.keys() ^ {rule.name for rule in AxiRule}) == []


@pytest.mark.parametrize("rule", list(AxiRule), ids=lambda rule: rule.name)
def test_a_fault_breaks_its_rule_and_no_other(rule):
    for number, cycles in enumerate(FAULTS[rule.name]):
        *before, last = play(cycles, **SMALL)
        assert not any(before), (number, before)
        assert last == {rule}, number


@pytest.mark.parametrize("number", range(len(LEGAL)))
def test_what_the_rules_allow_breaks_none(number):
    assert not any(play(LEGAL[number], **SMALL))


@pytest.mark.parametrize("cycles", [[IDLE, aw(size=0), w(strb=1), b()], [IDLE, ar(size=0), r()]])
def test_a_port_of_one_byte_has_one_lane(cycles):
    assert not any(play(cycles, data_bits=8, **SMALL))


def test_half_a_port_has_its_own_rules_alone():
    assert play([IDLE, r()], writes=0, reads=1)[-1] == {AxiRule.R_ID}
    assert play([IDLE, b()], writes=1, reads=0)[-1] == {AxiRule.B_ID}
    for parameters, absent in (({"writes": 0}, "awvalid"), ({"reads": 0}, "arvalid")):
        checker = AxiChecker(data_bits=32, address_bits=32, **parameters)
        assert absent not in checker.monitor.signature.members


@pytest.mark.parametrize("channel", ["aw", "ar"])
def test_a_quality_of_service_that_changes_breaks_its_channel(channel):
    waits = {f"{channel}valid": 1, f"{channel}ready": 0, f"{channel}size": 2, f"{channel}burst": 1}
    waits[f"{channel}qos"] = 3
    rule = AxiRule[f"{channel.upper()}_STABLE"]
    assert not any(play([IDLE, waits, waits], qos_bits=4))
    assert play([IDLE, waits, waits | {f"{channel}qos": 2}], qos_bits=4)[-1] == {rule}


def test_the_sides_are_those_that_drive_the_channel():
    sides = {"AW": Side.MANAGER, "W": Side.MANAGER, "AR": Side.MANAGER}
    sides |= {"B": Side.SUBORDINATE, "R": Side.SUBORDINATE}
    for rule in AxiRule:
        assert rule.side is sides.get(rule.name.partition("_")[0], Side.CHECKER)
        assert bool(rule.section) is (rule.side is not Side.CHECKER)


def run(sides, wires):
    """Show wires to a port beside which the rules of some sides are asserted."""
    m = Module()
    port = Axi4Signature(data_bits=32, address_bits=32).create()
    m.submodules.checker = checker = AxiChecker(data_bits=32, address_bits=32)
    watch(m, checker, port)
    state_rules(m, checker, sides)

    async def driver(ctx):
        await ctx.tick()
        for name, value in wires.items():
            ctx.set(getattr(port, name), value)
        await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(driver)
    simulator.run()


@pytest.mark.parametrize(
    ("wires", "side", "rule"),
    [(aw(burst=3), Side.MANAGER, AxiRule.AW_BURST), (r(), Side.SUBORDINATE, AxiRule.R_ID)],
)
def test_an_assertion_ends_the_simulation_with_the_name_of_its_rule(wires, side, rule):
    with pytest.raises(AssertionError, match=f"{rule.name}: {rule.statement}"):
        run([side], wires)
    run([each for each in Side if each is not side], wires)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reads": 1025}, "Outstanding reads must be an integer from 0 to 1024, not 1025"),
        ({"writes": -1}, "Outstanding writes must be an integer from 0 to 1024, not -1"),
        ({"early_beats": 0}, "Early beats must be an integer from 1 to 65536, not 0"),
        ({"reads": 0, "writes": 0}, "Outstanding reads or writes must be above 0, not both 0"),
        ({"data_bits": 48}, "AXI data bits must be one of"),
    ],
)
def test_a_checker_outside_its_domain_is_refused(parameters, message):
    with pytest.raises(BadInputError, match=message):
        AxiChecker(**{"data_bits": 32, "address_bits": 32} | parameters)
