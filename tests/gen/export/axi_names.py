"""Port conventions of AXI4, AXI4-Lite and AXI4-Stream, checked on the text of a Verilog module.

The tables are those of the specifications (ARM IHI 0022 and 0051), not of the exporter.
"""

import re

#: Signals that the manager drives (M) or the subordinate (S) by channel; + may be missing.
AXI4 = {
    "aw": "M valid S ready M id+ M addr M len M size M burst M lock+ M cache+ M prot+ M qos+ "
    "M region+ M user+",
    "w": "M valid S ready M data M strb M last M user+",
    "b": "S valid M ready S id+ S resp S user+",
    "ar": "M valid S ready M id+ M addr M len M size M burst M lock+ M cache+ M prot+ M qos+ "
    "M region+ M user+",
    "r": "S valid M ready S id+ S data S resp S last S user+",
}
LITE = {
    "aw": "M valid S ready M addr M prot",
    "w": "M valid S ready M data M strb",
    "b": "S valid M ready S resp",
    "ar": "M valid S ready M addr M prot",
    "r": "S valid M ready S data S resp",
}
STREAM = {
    "t": "M valid S ready+ M data+ M strb+ M keep+ M last+ M id+ M dest+ M user+ M wakeup+",
}
FIXED = {"size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4, "len": 8, "resp": 2}
PORT = re.compile(r"^  (input|output) +wire (?:\[(\d+):0\] )?(\w+),?$", re.MULTILINE)


def ports_of(verilog):
    """Direction and width of each port of the first module."""
    head = verilog[: verilog.index(");")]
    return {name: (way, int(high) + 1 if high else 1) for way, high, name in PORT.findall(head)}


def table_of(rules):
    """Signal to its driver and whether it may be missing."""
    found = {}
    for channel, text in rules.items():
        words = text.split()
        for driver, name in zip(words[::2], words[1::2]):
            found[channel + name.rstrip("+")] = driver, name.endswith("+")
    return found


def buses_of(ports):
    """Signals of each bus by its prefix; the rest are plain."""
    buses, prefixes = {}, set()
    for name in ports:
        if name.endswith("_tvalid"):
            prefixes.add(name.removesuffix("tvalid"))
        elif name.endswith(("_arvalid", "_awvalid")):
            prefixes.add(name[: -len("arvalid")])
    for prefix in prefixes:
        buses[prefix] = {
            name.removeprefix(prefix): port
            for name, port in ports.items()
            if name.startswith(prefix)
        }
    stray = [
        name
        for name in ports
        if re.match(r"[ms]_axi", name) and not any(name.startswith(each) for each in prefixes)
    ]
    return buses, stray


def broken_names(verilog):
    """Complaints about the buses of a module."""
    ports = ports_of(verilog)
    buses, stray = buses_of(ports)
    found = [f"{name}: of no bus" for name in stray]
    for prefix, signals in buses.items():
        if not re.match(r"[ms]_axis?_", prefix):
            found.append(f"{prefix}*: must begin with m_axi, s_axi, m_axis or s_axis")
            continue
        is_manager = prefix.startswith("m_")
        if prefix[2:].startswith("axis"):
            rules = [table_of(STREAM)]
        else:
            lite = table_of(LITE if not signals.keys() & {"awlen", "arlen"} else AXI4)
            # A port may have the channels of one direction alone.
            sides = [{"aw", "w", "b"}, {"ar", "r"}]
            kept = [side for side in sides if any(f"{c}valid" in signals for c in side)]
            channels = set().union(*kept)
            rules = [
                {
                    name: rule
                    for name, rule in lite.items()
                    if max((c for c in AXI4 if name.startswith(c)), key=len) in channels
                }
            ]
        found += broken_signals(prefix, signals, rules[0], is_manager)
        found += broken_widths(prefix, signals)
    return found


def broken_signals(prefix, signals, rules, is_manager):
    for name in signals.keys() - rules.keys():
        yield f"{prefix}{name}: no signal of this bus"
    for name, (driver, may_miss) in rules.items():
        if name not in signals:
            if not may_miss:
                yield f"{prefix}{name}: missing"
        elif (signals[name][0] == "output") != ((driver == "M") == is_manager):
            yield f"{prefix}{name}: must not be an {signals[name][0]}"


def broken_widths(prefix, signals):
    for name, (_, width) in signals.items():
        bare = re.sub(r"^(aw|ar|w|b|r|t)", "", name)
        if width != FIXED.get(bare, 1 if bare in ("valid", "ready", "last") else width):
            yield f"{prefix}{name}: must not have {width} bits"
    data = next((width for name, (_, width) in signals.items() if name in ("wdata", "rdata")), None)
    for name in ("wdata", "rdata"):
        if name in signals and signals[name][1] != data:
            yield f"{prefix}{name}: must have the width of the other"
    if "wstrb" in signals and signals["wstrb"][1] * 8 != data:
        yield f"{prefix}wstrb: must have a bit per byte"
    if "tdata" in signals and signals["tdata"][1] % 8:
        yield f"{prefix}tdata: must have whole bytes"
