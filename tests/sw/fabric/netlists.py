"""Netlists of products, and random ones, for the tests of placement and routing."""

import random

from hw.arch.agcu import AGCU_STREAMS, AgcuProgram
from hw.arch.config import ChipConfig
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram
from hw.numeric.formats import bf16, fp32
from sw.netlist import Net, Netlist, Pin

PCU = PcuProgram(fmt=bf16, out=fp32)
PMU = PmuProgram()
AGCU = AgcuProgram()
ACTIVATION, WEIGHT = 0, 1


def net(name, sources, sinks, *, tokens=False):
    """Net of sources ``"unit.port"`` or ``("unit.port", packets)``."""

    def end(text):
        unit, port = text.split(".")
        return Pin(unit, int(port))

    turns = [(each, 1) if isinstance(each, str) else each for each in sources]
    return Net(
        name,
        tuple((end(text), packets) for text, packets in turns),
        tuple(map(end, sinks)),
        tokens,
    )


def netlist(nets, *, agcus):
    """Netlist of nets whose units are named c… (PCU), g… (AGCU) and otherwise PMU."""
    units = {}
    for each in nets:
        for end in (*(end for end, _ in each.sources), *each.sinks):
            kind = {"c": PCU, "g": AGCU}.get(end.unit[0], PMU)
            units[end.unit] = kind
    fixed = {f"g{number}": number for number in range(agcus) if f"g{number}" in units}
    return Netlist(units, tuple(nets), fixed)


def gemm_4x2(packets=2):
    """Four groups of rows times two of columns on `small`: 8 PCUs, 8 PMUs, 2 AGCUs."""
    nets = []
    for g in (0, 1):
        nets += [
            net(f"a{g}", [f"g{g}.0"], [f"A{2 * g}.0", f"A{2 * g + 1}.0"]),
            net(f"b{g}", [f"g{g}.1"], [f"B{g}.0"]),
            net(f"store{g}", [f"C{g}.0"], [f"g{g}.0"]),
            net(f"out{g}", [f"c{4 * g + i}.0" for i in range(4)], [f"C{g}.0"]),
            net(f"ta{g}", [f"A{2 * g}.0", f"A{2 * g + 1}.0"], [f"g{g}.0"], tokens=True),
            net(f"tb{g}", [f"B{g}.0"], [f"g{g}.1"], tokens=True),
        ]
    nets += [
        net(f"rows{a}", [f"A{a}.0"], [f"c{2 * a}.{ACTIVATION}", f"c{2 * a + 1}.{ACTIVATION}"])
        for a in range(4)
    ]
    nets.append(
        net(
            "weights",
            [("B0.0", packets), ("B1.0", packets)],
            [f"c{i}.{WEIGHT}" for i in range(8)],
        )
    )
    return netlist(nets, agcus=2)


def gemm_1x8(packets=2):
    """One stream of rows for eight PCUs on `small`."""
    pcus = range(8)
    nets = [
        net("a0", ["g0.0"], ["A0.0", "A1.0"]),
        net("a1", ["g1.0"], ["A2.0", "A3.0"]),
        net("rows", [(f"A{i}.0", packets) for i in range(4)], [f"c{i}.{ACTIVATION}" for i in pcus]),
        net("weights", [("B0.0", packets), ("B1.0", packets)], [f"c{i}.{WEIGHT}" for i in pcus]),
    ]
    for g in (0, 1):
        nets += [
            net(f"b{g}", [f"g{g}.1"], [f"B{g}.0"]),
            net(f"out{g}", [f"c{4 * g + i}.0" for i in range(4)], [f"C{g}.0"]),
            net(f"store{g}", [f"C{g}.0"], [f"g{g}.0"]),
            net(f"ta{g}", [f"A{2 * g}.0", f"A{2 * g + 1}.0"], [f"g{g}.0"], tokens=True),
            net(f"tb{g}", [f"B{g}.0"], [f"g{g}.1"], tokens=True),
        ]
    return netlist(nets, agcus=2)


def gemm_6x3():
    """Six groups of rows times three of columns on `large`: 18 PCUs, 14 PMUs, 4 AGCUs."""
    nets = []
    loads = {0: (0, 1), 1: (2, 3), 2: (4,), 3: (5,)}
    for g, groups in loads.items():
        nets.append(net(f"a{g}", [f"g{g}.0"], [f"A{a}.0" for a in groups]))
        nets.append(net(f"ta{g}", [f"A{a}.0" for a in groups], [f"g{g}.0"], tokens=True))
        nets.append(net(f"b{g}", [f"g{g}.1"], [f"B{g}.0"]))
        nets.append(net(f"tb{g}", [f"B{g}.0"], [f"g{g}.1"], tokens=True))
        nets.append(net(f"store{g}", [f"C{g}.0"], [f"g{g}.0"]))
    nets += [
        net(f"rows{a}", [f"A{a}.0"], [f"c{3 * a + i}.{ACTIVATION}" for i in range(3)])
        for a in range(6)
    ]
    nets.append(
        net("weights", [f"B{i}.0" for i in range(4)], [f"c{i}.{WEIGHT}" for i in range(18)])
    )
    bounds = [0, 5, 10, 14, 18]
    nets += [
        net(f"out{i}", [f"c{p}.0" for p in range(bounds[i], bounds[i + 1])], [f"C{i}.0"])
        for i in range(4)
    ]
    return netlist(nets, agcus=4)


def random_netlist(rng: random.Random, config: ChipConfig, *, nets: int) -> Netlist:
    """Nets between random ends; each input is in at most one."""
    kinds = {f"c{i}": "pcu" for i in range(config.pcu_count)}
    kinds |= {f"m{i}": "pmu" for i in range(config.pmu_count)}
    kinds |= {f"g{i}": "agcu" for i in range(config.agcu.count)}
    ports = {
        (False, True): {"pcu": 1, "pmu": 2, "agcu": AGCU_STREAMS},
        (False, False): {"pcu": 3, "pmu": 2, "agcu": AGCU_STREAMS},
        (True, True): {"pcu": 0, "pmu": 2, "agcu": config.token_tracks},
        (True, False): {"pcu": 0, "pmu": 0, "agcu": config.token_tracks},
    }

    def ends(*key):
        found = [f"{u}.{p}" for u, kind in kinds.items() for p in range(ports[key][kind])]
        rng.shuffle(found)
        return found

    made = []
    free = {tokens: (ends(tokens, True), ends(tokens, False)) for tokens in (False, True)}
    for number in range(nets):
        tokens = rng.random() < 0.25
        outputs, inputs = free[tokens]
        sinks = [inputs.pop() for _ in range(min(rng.choice([1, 1, 2, 3, 6]), len(inputs)))]
        units = {sink.split(".")[0] for sink in sinks}
        # An AGCU's stream keeps its track, and so may not reach another AGCU's.
        if any(sink.startswith("g") for sink in sinks):
            units |= {unit for unit, kind in kinds.items() if kind == "agcu"}
        # A unit that feeds itself is left out here; one test of its own has it.
        fit = [each for each in outputs if each.split(".")[0] not in units]
        sources = fit[: rng.choice([1, 1, 1, 2, 3, 4])]
        for each in sources:
            outputs.remove(each)
        if sinks and sources:
            turns = [(each, rng.choice([1, 1, 2, 5])) for each in sources]
            made.append(net(f"n{number}", turns, sinks, tokens=tokens))
    return netlist(made, agcus=config.agcu.count)
