"""Units placed by hand: programs on the tiles of a chip, and the routes between their ports.

The level of the language below patterns and rings: what the compiler chooses, a program chooses.
The result is an image as any other, proved live before it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hw.arch.config import ChipConfig, named
from hw.arch.errors import BadInputError, did_you_mean
from hw.arch.ports import PortNames, UnitProgram
from hw.arch.unit_kind import AGCU, PCU, PMU, UnitKind
from sw.actions import registered
from sw.chip_program import ChipProgram
from sw.fabric.assemble import assemble
from sw.fabric.graph import Place
from sw.fabric.place import place
from sw.fabric.route import route
from sw.netlist import Net, Netlist, Pin
from sw.prove import require_live

__all__ = ["PlacedUnit", "UnitPin", "Units", "units"]


class UnitPin:
    """A port of a placed unit, or one of its token ports.

    Parameters
    ----------
    unit : PlacedUnit
    port : PortNames or int
        Port of vectors; number of a port of tokens.
    """

    def __init__(self, unit: PlacedUnit, port: PortNames | int) -> None:
        self.unit = unit
        self.port = port

    @property
    def tokens(self) -> bool:
        """Whether it is a token port."""
        return not isinstance(self.port, PortNames)

    @property
    def pin(self) -> Pin:
        """Its pin in the netlist."""
        return Pin(self.unit.name, int(self.port))

    def __str__(self) -> str:
        port = self.port.name if isinstance(self.port, PortNames) else f"token {self.port}"
        return f"{port} of {self.unit.name}"


class PlacedUnit:
    """A unit at its place on the chip.

    ``unit[port]`` is one of its ports, such as ``PmuInput.W0``; ``unit.token(n)`` a token port.

    Parameters
    ----------
    kind : UnitKind
    at : tuple of int
        Row and column of a tile; number of an AGCU.
    """

    def __init__(self, kind: UnitKind, at: tuple[int, ...]) -> None:
        self.kind = kind
        self.at = at
        self._program: UnitProgram | None = None

    @property
    def name(self) -> str:
        """Its kind and place."""
        return f"{self.kind} {self.at if len(self.at) > 1 else self.at[0]}"

    @property
    def program(self) -> UnitProgram | None:
        """Its program; set once."""
        return self._program

    @program.setter
    def program(self, program: UnitProgram) -> None:
        if not isinstance(program, self.kind.program):
            raise BadInputError(
                f"Program of {self.name} must be a {self.kind.program.__name__}, "
                f"not {type(program).__name__}",
                where=self.name,
            )
        if self._program is not None:
            raise BadInputError(f"{self.name} must have one program, not two", where=self.name)
        self._program = program

    def __getitem__(self, port: PortNames) -> UnitPin:
        if not isinstance(port, self.kind.inputs | self.kind.outputs):
            names = [each.name for ports in (self.kind.inputs, self.kind.outputs) for each in ports]
            raise BadInputError(
                f"Port of {self.name} must be one of {self.kind.inputs.__name__} or "
                f"{self.kind.outputs.__name__} ({', '.join(names)}), not {port!r}",
                where=self.name,
            )
        return UnitPin(self, port)

    def token(self, number: int) -> UnitPin:
        """A token port: an output of a PMU, an input or output of an AGCU."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise BadInputError(f"Token port of {self.name} must be 0 or more, not {number!r}")
        return UnitPin(self, number)


class _Grid:
    """Units of a kind by their places."""

    def __init__(self, config: ChipConfig, kind: UnitKind) -> None:
        self._config = config
        self._kind = kind
        self.taken: dict[tuple[int, ...], PlacedUnit] = {}

    def __getitem__(self, at: int | tuple[int, int]) -> PlacedUnit:
        where = (at,) if isinstance(at, int) else tuple(at)
        self._check(where)
        return self.taken.setdefault(where, PlacedUnit(self._kind, where))

    def _check(self, at: tuple[int, ...]) -> None:
        chip, kind = self._config, self._kind
        if kind is AGCU:
            if len(at) != 1 or not 0 <= at[0] < chip.agcu.count:
                raise BadInputError(
                    f"AGCU must be one of the chip's {chip.agcu.count}, not {_shown(at)}"
                )
            return
        if len(at) != 2 or not (0 <= at[0] < chip.rows and 0 <= at[1] < chip.columns):
            raise BadInputError(
                f"Place of a {kind} must be on the mesh of {chip.rows} × {chip.columns} tiles, "
                f"not {_shown(at)}"
            )
        if chip.unit_at(*at) is not kind:
            raise BadInputError(f"Tile {at} must be a {kind}, not a {chip.unit_at(*at)}")


def _shown(at: tuple[int, ...]) -> str:
    return str(at[0]) if len(at) == 1 else str(at)


class Units:
    """The units of a chip, to be given programs and routes by hand.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    pcu, pmu, agcu : units by (row, column), or by the number of an AGCU
    """

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        self.pcu, self.pmu, self.agcu = (_Grid(config, kind) for kind in (PCU, PMU, AGCU))
        self._nets: list[Net] = []
        self._via: dict[str, tuple[Place, ...]] = {}

    def route(
        self,
        source: UnitPin | Sequence[UnitPin],
        sink: UnitPin | Sequence[UnitPin],
        *,
        via: Sequence[Place] | None = None,
        packets: int | Sequence[int] = 1,
    ) -> None:
        """Join ports: each sink gets the packets of all sources, merged in a fixed rotation.

        Parameters
        ----------
        source, sink : UnitPin, or several
            Outputs, and inputs; all of vectors or all of tokens.
        via : sequence of (row, column), optional
            Switches between that of the source and that of the sink, if there is one of each. The
            router finds the way otherwise, and the tracks always.
        packets : int, or one for each source
            Packets of a source in each turn of the rotation.

        Raises
        ------
        BadInputError
            If ports of vectors and tokens are mixed, a source is an input or a sink an output, or
            there are not as many numbers of packets as sources.
        """
        sources, sinks = _several(source), _several(sink)
        every = (*sources, *sinks)
        if len({each.tokens for each in every}) != 1:
            raise BadInputError(
                "Route must join ports of vectors or ports of tokens, not "
                + " and ".join(map(str, every))
            )
        for pins, noun in ((sources, "outputs"), (sinks, "inputs")):
            for each in pins:
                wanted: Any = getattr(each.unit.kind, noun)
                if not each.tokens and not isinstance(each.port, wanted):
                    end = "start at" if noun == "outputs" else "end at"
                    raise BadInputError(f"Route must {end} an {noun[:-1]}, not at {each}")
        counts = [packets] * len(sources) if isinstance(packets, int) else list(packets)
        if len(counts) != len(sources):
            raise BadInputError(
                f"Packets must be a number for each of {len(sources)} sources, not {len(counts)}"
            )
        name = " and ".join(map(str, sources)) + " to " + " and ".join(map(str, sinks))
        turns = tuple((each.pin, count) for each, count in zip(sources, counts, strict=True))
        self._nets.append(Net(name, turns, tuple(each.pin for each in sinks), every[0].tokens))
        if via is not None:
            self._via[name] = tuple((int(row), int(column)) for row, column in via)

    @property
    def netlist(self) -> Netlist:
        """Units with a program, and the nets between them."""
        placed = [
            each
            for grid in (self.pcu, self.pmu, self.agcu)
            for each in grid.taken.values()
            if each.program is not None
        ]
        programs = {each.name: each.program for each in placed if each.program is not None}
        fixed = {each.name: each.at[0] for each in placed if each.kind is AGCU}
        return Netlist(programs, tuple(self._nets), fixed)

    def program(self) -> ChipProgram:
        """The program of the chip: routed, checked and proved live.

        Raises
        ------
        FitError
            If a route uses a port that its unit lacks, an input is fed twice, or links do not
            suffice.
        LivenessError
            If the program stops, or leaves something behind.
        """
        netlist = self.netlist
        if not netlist.units:
            raise BadInputError(
                "Units must have programs, not none: set `pmu[row, column].program`"
            )
        tiles = {
            each.name: (each.at[0], each.at[1])
            for grid in (self.pcu, self.pmu)
            for each in grid.taken.values()
            if each.name in netlist.units
        }
        placement = place(netlist, self.config, seed=1, pins=tiles)
        routes = route(netlist, placement, self.config, seed=1, via=self._via)
        found = assemble(netlist, placement, routes, self.config)
        require_live(found)
        return found

    def image(self) -> bytes:
        """The image that the chip loads; errors as of `program`."""
        return self.program().pack()

    def run(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, tuple[tuple[int, ...], Any]],
        *,
        backend: str = "rtl",
        **options: Any,
    ) -> Any:
        """Run the image once: descriptors name the arrays by their numbers, inputs first.

        Parameters
        ----------
        inputs : mapping of str to array
        outputs : mapping of str to (shape, format)
        backend : str
            ``rtl``, ``cocotb`` or ``emulator``.
        options
            Keywords of `sim.image_run.run_image`: seed, latency, jitter, stall, max_cycles.

        Returns
        -------
        ImageRun
            Outputs by name, cycles, and bytes moved.

        Raises
        ------
        DeviceError, HangError
            If the launch ends with an error, or does not end.
        """
        launch = registered("launch")
        if launch is None:
            raise BadInputError("Units cannot run before `import tilewright`")
        return launch(self.program(), inputs, outputs, backend=backend, **options)


def _several(pins: UnitPin | Sequence[UnitPin]) -> tuple[UnitPin, ...]:
    found = tuple(pins) if isinstance(pins, list | tuple) else (pins,)
    for each in found:
        if not isinstance(each, UnitPin):
            raise BadInputError(
                "Route must join ports such as `pmu[row, column][PmuInput.W0]`, "
                f"not {type(each).__name__}"
            )
    if not found:
        raise BadInputError("Route must have a source and a sink, not none")
    return found


def units(config: str | ChipConfig) -> Units:
    """The units of a chip, to be placed and routed by hand.

    Parameters
    ----------
    config : str or ChipConfig
        A named chip, or one of the caller's.

    Raises
    ------
    BadInputError
        If there is no such chip.
    """
    if isinstance(config, ChipConfig):
        return Units(config)
    if config not in named:
        raise BadInputError(
            f"Chip must be one of {', '.join(named)} or a ChipConfig, not {config!r}"
            f"{did_you_mean(str(config), named)}"
        )
    return Units(named[config])
