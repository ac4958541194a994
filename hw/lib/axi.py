"""AXI4 and AXI4-Lite interfaces, from the manager's point of view."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from hw.arch.errors import BadInputError, shown

__all__ = [
    "BOUNDARY_BYTES",
    "BURST_INCR",
    "CACHE_NORMAL",
    "MAX_BURST_BEATS",
    "RESP_DECERR",
    "RESP_OKAY",
    "RESP_SLVERR",
    "Axi4Interface",
    "Axi4ReadInterface",
    "Axi4ReadSignature",
    "Axi4Signature",
    "Axi4WriteInterface",
    "Axi4WriteSignature",
    "AxiLiteInterface",
    "AxiLiteSignature",
    "full_width_size",
    "read_constants",
    "write_constants",
]

#: ``burst``: incrementing addresses (INCR).
BURST_INCR = 0b01
#: ``cache``: normal memory, non-cacheable, bufferable.
CACHE_NORMAL = 0b0011
RESP_OKAY = 0b00
RESP_SLVERR = 0b10
RESP_DECERR = 0b11
#: No burst may cross a multiple of this address.
BOUNDARY_BYTES = 4096
MAX_BURST_BEATS = 256


if TYPE_CHECKING:
    # Generic in the stubs only.
    _Base = wiring.PureInterface[Any]
else:
    _Base = wiring.PureInterface


class _ReadChannels(_Base):
    arvalid: Signal
    arready: Signal
    araddr: Signal
    arprot: Signal
    rvalid: Signal
    rready: Signal
    rdata: Signal
    rresp: Signal


class _WriteChannels(_Base):
    awvalid: Signal
    awready: Signal
    awaddr: Signal
    awprot: Signal
    wvalid: Signal
    wready: Signal
    wdata: Signal
    wstrb: Signal
    bvalid: Signal
    bready: Signal
    bresp: Signal


class Axi4ReadInterface(_ReadChannels):
    """Read channels of an AXI4 port."""

    arid: Signal
    arlen: Signal
    arsize: Signal
    arburst: Signal
    arcache: Signal
    arqos: Signal  # with ``qos_bits`` alone
    rid: Signal
    rlast: Signal


class Axi4WriteInterface(_WriteChannels):
    """Write channels of an AXI4 port."""

    awid: Signal
    awlen: Signal
    awsize: Signal
    awburst: Signal
    awcache: Signal
    awqos: Signal  # with ``qos_bits`` alone
    wlast: Signal
    bid: Signal


class Axi4Interface(Axi4ReadInterface, Axi4WriteInterface):
    """All channels of an AXI4 port."""


class AxiLiteInterface(_ReadChannels, _WriteChannels):
    """All channels of an AXI4-Lite port."""


def _check(data_bits: object, address_bits: object, data_widths: tuple[int, ...]) -> None:
    if data_bits not in data_widths:
        widths = ", ".join(map(str, data_widths))
        raise BadInputError(f"AXI data bits must be one of {widths}, not {shown(data_bits)}")
    if not isinstance(address_bits, int) or not 1 <= address_bits <= 64:
        raise BadInputError(
            f"AXI address bits must be an integer from 1 to 64, not {shown(address_bits)}"
        )


def _check_id(id_bits: object) -> None:
    if not isinstance(id_bits, int) or not 1 <= id_bits <= 32:
        raise BadInputError(f"AXI id bits must be an integer from 1 to 32, not {shown(id_bits)}")


def _address(channel: str, address_bits: int) -> dict[str, Member]:
    return {
        f"{channel}valid": Out(1),
        f"{channel}ready": In(1),
        f"{channel}addr": Out(address_bits),
        f"{channel}prot": Out(3),
    }


def _burst_address(channel: str, address_bits: int, id_bits: int) -> dict[str, Member]:
    return _address(channel, address_bits) | {
        f"{channel}id": Out(id_bits),
        f"{channel}len": Out(8),
        f"{channel}size": Out(3),
        f"{channel}burst": Out(2),
        f"{channel}cache": Out(4),
    }


def _write(data_bits: int) -> dict[str, Member]:
    return {
        "wvalid": Out(1),
        "wready": In(1),
        "wdata": Out(data_bits),
        "wstrb": Out(data_bits // 8),
        "bvalid": In(1),
        "bready": Out(1),
        "bresp": In(2),
    }


def _read(data_bits: int) -> dict[str, Member]:
    return {"rvalid": In(1), "rready": Out(1), "rdata": In(data_bits), "rresp": In(2)}


def _read_members(data_bits: int, address_bits: int, id_bits: int) -> dict[str, Member]:
    return (
        _burst_address("ar", address_bits, id_bits)
        | _read(data_bits)
        | {"rid": In(id_bits), "rlast": In(1)}
    )


def _write_members(data_bits: int, address_bits: int, id_bits: int) -> dict[str, Member]:
    return (
        _burst_address("aw", address_bits, id_bits)
        | _write(data_bits)
        | {"wlast": Out(1), "bid": In(id_bits)}
    )


_AXI4_DATA_BITS = (8, 16, 32, 64, 128, 256, 512, 1024)
_LITE_DATA_BITS = (32, 64)


class _AxiSignature(wiring.Signature):
    _interface: type[_Base]

    def __init__(
        self, members: dict[str, Member], *, data_bits: int, address_bits: int, id_bits: int = 0
    ) -> None:
        self._parameters = (data_bits, address_bits, id_bits)
        super().__init__(members)

    @property
    def data_bits(self) -> int:
        """Width of the data."""
        return self._parameters[0]

    @property
    def address_bits(self) -> int:
        """Width of a byte address."""
        return self._parameters[1]

    @property
    def id_bits(self) -> int:
        """Width of the ids, 0 for AXI4-Lite."""
        return self._parameters[2]

    def __eq__(self, other: object) -> bool:
        # Two signatures of the same channels and widths are the same port, whoever made them.
        return isinstance(other, wiring.Signature) and self.members == other.members

    def __repr__(self) -> str:
        data_bits, address_bits, id_bits = self._parameters
        name = type(self).__name__
        ids = f", id_bits={id_bits}" if id_bits else ""
        qos = ", qos_bits=4" if self.members.keys() & {"awqos", "arqos"} else ""
        return f"{name}(data_bits={data_bits}, address_bits={address_bits}{ids}{qos})"

    def create(self, *, path: tuple[str | int, ...] | None = None, src_loc_at: int = 0) -> Any:
        """Make an interface of this signature."""
        return self._interface(self, path=path or (), src_loc_at=1 + src_loc_at)


class _Axi4Signature(_AxiSignature):
    _channels: tuple[Callable[[int, int, int], dict[str, Member]], ...]

    def __init__(
        self, *, data_bits: int, address_bits: int, id_bits: int = 1, qos_bits: int = 0
    ) -> None:
        _check(data_bits, address_bits, _AXI4_DATA_BITS)
        _check_id(id_bits)
        if qos_bits not in (0, 4):
            raise BadInputError(f"AXI QoS bits must be 0 or 4, not {shown(qos_bits)}")
        members: dict[str, Member] = {}
        for channels in type(self)._channels:
            members |= channels(data_bits, address_bits, id_bits)
        if qos_bits:
            valid = [name for name in ("awvalid", "arvalid") if name in members]
            members |= {f"{name[:2]}qos": Out(qos_bits) for name in valid}
        super().__init__(members, data_bits=data_bits, address_bits=address_bits, id_bits=id_bits)


class Axi4ReadSignature(_Axi4Signature):
    """Read half of an AXI4 port.

    Parameters
    ----------
    data_bits : int
        Width of the data (8 to 1,024, a power of two).
    address_bits : int
        Width of a byte address (1 to 64).
    id_bits : int
        Width of the ids (1 to 32).
    qos_bits : int
        Width of the QoS signals of the address channels: 4, or 0 for a port without them, as those
        of a chip.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    _interface = Axi4ReadInterface
    _channels = (_read_members,)


class Axi4WriteSignature(_Axi4Signature):
    """Write half of an AXI4 port; parameters as :class:`Axi4ReadSignature`."""

    _interface = Axi4WriteInterface
    _channels = (_write_members,)


class Axi4Signature(_Axi4Signature):
    """Whole AXI4 port; parameters as :class:`Axi4ReadSignature`."""

    _interface = Axi4Interface
    _channels = (_write_members, _read_members)


class AxiLiteSignature(_AxiSignature):
    """AXI4-Lite port.

    Parameters
    ----------
    data_bits : int
        Width of the data, 32 or 64.
    address_bits : int
        Width of a byte address (1 to 64).

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    _interface = AxiLiteInterface

    def __init__(self, *, data_bits: int = 32, address_bits: int) -> None:
        _check(data_bits, address_bits, _LITE_DATA_BITS)
        super().__init__(
            _address("aw", address_bits)
            | _write(data_bits)
            | _address("ar", address_bits)
            | _read(data_bits),
            data_bits=data_bits,
            address_bits=address_bits,
        )


def full_width_size(data_bits: int) -> int:
    """Value of ``size`` for beats of the port's full width."""
    return (data_bits // 8).bit_length() - 1


def failed_bits(response: Value) -> Value:
    """Bit 0: the response is SLVERR; bit 1: it is DECERR."""
    return Cat(response == RESP_SLVERR, response == RESP_DECERR)


def read_constants(
    port: Axi4ReadInterface | Axi4Interface, id: Value | None = None
) -> list[object]:
    """Assignments of the constant AR signals: full width, INCR, normal memory; id 0 without one."""
    return [
        port.arid.eq(Const(0) if id is None else id),
        port.arsize.eq(full_width_size(len(port.rdata))),
        port.arburst.eq(BURST_INCR),
        port.arcache.eq(CACHE_NORMAL),
        port.arprot.eq(Const(0)),
    ]


def write_constants(port: Axi4WriteInterface | Axi4Interface) -> list[object]:
    """Assignments of the constant AW signals: one id, full width, INCR, normal memory."""
    return [
        port.awid.eq(Const(0)),
        port.awsize.eq(full_width_size(len(port.wdata))),
        port.awburst.eq(BURST_INCR),
        port.awcache.eq(CACHE_NORMAL),
        port.awprot.eq(Const(0)),
    ]
