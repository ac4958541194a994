"""Registers of a unit by name, through cocotbext-axi's AXI4-Lite."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from hw.arch.registers.register_fields import Register, RegisterAccess

__all__ = ["LiteRegisters"]


class LiteRegisters:
    """Host of a unit with a register map.

    Parameters
    ----------
    dut
        The device under test.
    port : str
        Name of the AXI4-Lite port.
    register : function
        Register of a name, such as `hw.arch.registers.tma_registers.tma_register`.
    """

    def __init__(self, dut: Any, port: str, register: Callable[[str], Register]) -> None:
        self._register = register
        self._lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"{port}_"), dut.clk, dut.rst)
        for side in (self._lite.write_if, self._lite.read_if):
            side.log.setLevel(logging.WARNING)

    async def is_taken(self, name: str, **fields: int) -> bool:
        """Write the fields of a register, the others as 0; whether the unit takes the write."""
        each = self._register(name)
        answer = await self._lite.write(each.offset, each.word(**fields).to_bytes(4, "little"))
        return bool(answer.resp == AxiResp.OKAY)

    async def write(self, name: str, **fields: int) -> None:
        """Write the fields of a register, the others as 0."""
        assert await self.is_taken(name, **fields), (name, fields)

    async def read(self, name: str) -> dict[str, int]:
        """Fields of a register."""
        each = self._register(name)
        answer = await self._lite.read(each.offset, 4)
        assert answer.resp == AxiResp.OKAY, name
        return each.values(int.from_bytes(answer.data, "little"))

    async def until(self, name: str, field: str) -> dict[str, int]:
        """Fields of a register once a field is set."""
        while not (found := await self.read(name))[field]:
            pass
        return found

    async def require_map(self, registers: Sequence[Register], rng: np.random.Generator) -> None:
        """See that every register answers, and that those of plain fields keep what is written.

        Nothing else is written: the unit stays idle.
        """
        for each in registers:
            await self.read(each.name)
            if all(field.access is RegisterAccess.READ_WRITE for field in each.fields):
                word = int(rng.integers(1 << 32)) & each.mask
                await self.write(each.name, **each.values(word))
                assert await self.read(each.name) == each.values(word), each.name
                await self.write(each.name)
        beyond = registers[-1].offset + 4
        assert (await self._lite.read(beyond, 4)).resp != AxiResp.OKAY
        assert (await self._lite.write(beyond, bytes(4))).resp != AxiResp.OKAY
