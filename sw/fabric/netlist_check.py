"""Checks of a netlist against a chip: number of units per kind, pins of every net."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.errors import did_you_mean
from hw.arch.places import agcu_places, token_ports, vector_ports
from hw.arch.ports import Direction, Link, Port, UnitPort
from hw.arch.switch import MAX_PACKETS
from hw.arch.unit_kind import AGCU, UNIT_KINDS, kind_of
from sw.fabric.fit_error import FitError
from sw.fabric.graph import Place
from sw.netlist import Net, Netlist, Pin

__all__ = ["check_netlist", "pin_names", "pin_port", "net_noun"]

#: Most pins that a message names.
_NAMES = 4


def net_noun(net: Net) -> str:
    """Name of a net in messages."""
    return f"{'Token net' if net.tokens else 'Net'} `{net.name}`"


def pin_names(pins: Iterable[Pin]) -> str:
    """Names of pins in messages, the first few of many."""
    names = [f"`{pin.unit}` {pin.port}" for pin in pins]
    return ", ".join(names if len(names) <= _NAMES else [*names[:_NAMES], "…"])


def pin_port(
    netlist: Netlist, config: ChipConfig, tiles: Mapping[str, Place], pin: Pin
) -> tuple[Place, Port]:
    """The switch that a pin is wired to, and the port of that switch."""
    number = netlist.fixed.get(pin.unit)
    if number is None:
        return tiles[pin.unit], UnitPort(pin.port)
    place = agcu_places(config)[number]
    side = Direction[place.side.upper()]
    return (place.row, place.column(config)), Link(side, pin.port)


def check_netlist(netlist: Netlist, config: ChipConfig) -> None:
    """Refuse a netlist that does not fit this chip under any placement.

    Raises
    ------
    FitError
        If there are too few units of a kind or no such AGCU, a net has no pins or names one that
        no unit has, an input is in two nets, or a number of packets is out of range.
    """
    _check_units(netlist, config)
    names = Counter(net.name for net in netlist.nets)
    for name, count in names.items():
        if count > 1:
            raise FitError(f"Name of a net must be its own, not `{name}` of {count} nets")
    fed: dict[tuple[Pin, bool], Net] = {}
    for net in netlist.nets:
        if not net.sources or not net.sinks:
            missing = "sources" if not net.sources else "sinks"
            raise FitError(f"{net_noun(net)} must have {missing}, not none")
        pins = [pin for pin, _ in net.sources]
        for pin in pins:
            if pins.count(pin) > 1:
                raise FitError(
                    f"{net_noun(net)} must name a source once, not {_say(pin)} {pins.count(pin)} "
                    "times"
                )
            _check_pin(netlist, config, net, pin, output=True)
        _check_tracks(netlist, net)
        for pin, packets in net.sources:
            if not 1 <= packets <= MAX_PACKETS:
                raise FitError(
                    f"{net_noun(net)} must take 1 to {MAX_PACKETS} packets of {_say(pin)}, "
                    f"not {packets}"
                )
        for pin in net.sinks:
            _check_pin(netlist, config, net, pin, output=False)
            other = fed.setdefault((pin, net.tokens), net)
            if other is not net or net.sinks.count(pin) > 1:
                raise FitError(
                    f"Input {_say(pin)} must be in one net once, not in `{other.name}` and "
                    f"`{net.name}`"
                )


def _check_tracks(netlist: Netlist, net: Net) -> None:
    """Refuse a net between two AGCU streams of different numbers, whose tracks would differ."""
    for source in (pin for pin, _ in net.sources if pin.unit in netlist.fixed):
        for sink in (pin for pin in net.sinks if pin.unit in netlist.fixed):
            if source.port != sink.port:
                raise FitError(
                    f"{net_noun(net)} must join streams of AGCUs on one track, "
                    f"not {source.port} of `{source.unit}` and {sink.port} of `{sink.unit}`"
                )


def _say(pin: Pin) -> str:
    return f"port {pin.port} of `{pin.unit}`"


def _check_units(netlist: Netlist, config: ChipConfig) -> None:
    kinds = {name: kind_of(program) for name, program in netlist.units.items()}
    needs = Counter(kinds.values())
    has = {kind: config.count(kind) for kind in UNIT_KINDS.values()}
    short = [kind for kind in has if needs[kind] > has[kind]]
    if short:
        needed = " and ".join(f"{needs[kind]} {kind}s" for kind in short)
        there = " and ".join(str(has[kind]) for kind in short)
        raise FitError(
            f"Units of the program must be on the chip, not {needed} where it has {there}",
            value={kind.name: needs[kind] for kind in short},
            rule=f"at most {', '.join(f'{has[kind]} {kind}s' for kind in has)}",
        )
    for name, kind in kinds.items():
        if (kind is AGCU) != (name in netlist.fixed):
            raise FitError(
                f"Number of AGCU `{name}` must be given, not left open"
                if kind is AGCU
                else f"Number must be an AGCU's, not of `{name}`, a {kind}"
            )
    taken: dict[int, str] = {}
    for name, number in netlist.fixed.items():
        if name not in kinds:
            raise FitError(
                f"AGCU must be a unit of the netlist, not `{name}`{did_you_mean(name, kinds)}"
            )
        if not 0 <= number < config.agcu.count:
            raise FitError(
                f"AGCU of `{name}` must be below the chip's {config.agcu.count}, not {number}"
            )
        if taken.setdefault(number, name) != name:
            raise FitError(f"AGCU {number} must be one unit, not `{taken[number]}` and `{name}`")


def _check_pin(netlist: Netlist, config: ChipConfig, net: Net, pin: Pin, *, output: bool) -> None:
    if pin.unit not in netlist.units:
        raise FitError(
            f"{net_noun(net)} must join units of the netlist, not `{pin.unit}`"
            f"{did_you_mean(pin.unit, netlist.units)}"
        )
    kind = kind_of(netlist.units[pin.unit])
    sort = f"{'token' if net.tokens else 'vector'} {'output' if output else 'input'}s"
    if kind is AGCU:
        count = config.token_tracks if net.tokens else AGCU_STREAMS
        # An AGCU's stream enters and leaves on the track of its number.
        if not net.tokens and pin.port < AGCU_STREAMS and pin.port >= config.tracks:
            raise FitError(
                f"{net_noun(net)} must use streams of AGCUs below the {config.tracks} tracks of "
                f"the chip, not {pin.port} of `{pin.unit}`"
            )
    else:
        ports = (token_ports if net.tokens else vector_ports)(config, kind)
        count = ports.unit_outputs if output else ports.unit_inputs
    if not 0 <= pin.port < count:
        raise FitError(
            f"{net_noun(net)} must use one of the {count} {sort} of `{pin.unit}`, not {pin.port}"
        )
