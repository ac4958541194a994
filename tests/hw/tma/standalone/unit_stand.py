"""A stand-alone TMA unit as native models need it: streams only, and the checker of AXI4."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.axi import Axi4Signature
from hw.lib.axi_assertions import watch
from hw.lib.axi_checker import AxiChecker
from hw.lib.axi_rules import AxiRule
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.reduction.reduction_interlock import interlock_signature
from hw.tma.scratchpads.local_memory import routed_operation_layout, users_of
from hw.tma.standalone.tma_unit import TmaUnit
from hw.tma.standalone.unit_commands import completion_layout, unit_command_layout
from hw.tma.standalone.vector_scratchpad import scratchpad_write_layout

__all__ = ["ANSWER", "STAND_SIZES", "UnitStand", "operation_of", "user_port"]

_MOST = {"arrivals": limits.BARRIER_ARRIVALS.high, "tx_bytes": limits.BARRIER_TX_BYTES.high}
#: Layout of an answer at the user's port of the barriers.
ANSWER = barrier_answer_layout(**_MOST)
#: Sizes of the units in random tests by their width; a cache that the descriptors of a run fill.
STAND_SIZES = {
    width_bits: TmaSizes(
        width_bits=width_bits,
        landing_beats=64,
        outstanding=16,
        read_ids=read_ids,
        descriptors=4,
        barriers=4,
        scratchpad_bytes=256 * width_bits // 8,
    )
    for width_bits, read_ids in ((64, 4), (256, 1), (512, 2))
}


def operation_of(sizes: TmaSizes) -> data.StructLayout:
    """Layout of an operation at a user's port of the barriers."""
    if sizes.scratchpads > 1:
        return routed_operation_layout()
    return barrier_operation_layout(**_MOST)


def user_port(name: str, pad: int) -> str:
    """Name of a port of the user of a scratchpad."""
    return f"pad{pad}_{name}" if pad else name


class UnitStand(Component):
    """A TMA unit with one port of the user of each scratchpad, all of it streams.

    The ports of scratchpads beyond the first have the names of `user_port`. ``o_data`` and
    ``o_answers`` must always be ready. Bit n of ``o_broken``: the port has broken
    the rule of `AxiRule` with value n since reset; a unit that is not ``checked`` has none. One
    that ``reduces`` has a port to an interlock.
    """

    def __init__(self, sizes: TmaSizes, *, checked: bool = True, reduces: bool = False) -> None:
        self._sizes = sizes
        self._checked = checked
        self._reduces = reduces
        interlock = interlock_signature(sizes.address_bits)
        width = sizes.width_bits
        users = {
            "i_operations": In(stream.Signature(operation_of(sizes))),
            "o_answers": Out(stream.Signature(ANSWER)),
            "i_waits": In(stream.Signature(barrier_wait_layout)),
            "o_waits": Out(stream.Signature(barrier_result_layout)),
            "i_writes": In(stream.Signature(scratchpad_write_layout(width, sizes.vectors))),
            "i_reads": In(stream.Signature(range(sizes.vectors))),
            "o_data": Out(stream.Signature(width)),
        }
        commands = unit_command_layout(sizes.address_bits, sizes.scratchpads)
        super().__init__(
            {
                "i_commands": In(stream.Signature(commands)),
                "o_completions": Out(stream.Signature(completion_layout)),
                **{
                    user_port(name, pad): member
                    for pad in range(sizes.scratchpads)
                    for name, member in users.items()
                },
                "axi": Out(
                    Axi4Signature(
                        data_bits=width,
                        address_bits=sizes.address_bits,
                        id_bits=sizes.id_bits,
                        qos_bits=4,
                    )
                ),
                "o_broken": Out(len(AxiRule)),
                "o_groups": Out(16),
                "o_groups_read": Out(16),
                **({"interlock": Out(interlock)} if reduces else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sizes = self._sizes
        m.submodules.unit = shared(unit := TmaUnit(sizes, reduces=self._reduces))
        for source, target in (
            (wiring.flipped(self.i_commands), unit.i_commands),
            (unit.o_completions, wiring.flipped(self.o_completions)),
            (unit.axi, wiring.flipped(self.axi)),
        ):
            wiring.connect(m, source, target)
        for pad, user in enumerate(users_of(unit)):
            self._connect_user(m, pad, user)
        if self._reduces:
            wiring.connect(m, unit.interlock, wiring.flipped(self.interlock))
        m.d.comb += [
            self.o_groups.eq(unit.o_groups_stored),
            self.o_groups_read.eq(unit.o_groups_read),
        ]
        if self._checked:
            bursts = sizes.outstanding + 1
            checker = AxiChecker(
                data_bits=sizes.width_bits,
                address_bits=sizes.address_bits,
                id_bits=sizes.id_bits,
                reads=bursts,
                writes=bursts,
                qos_bits=4,
            )
            m.submodules.checker = shared(checker)
            watch(m, checker, unit.axi)
            m.d.comb += self.o_broken.eq(checker.o_broken)
        return m

    def _connect_user(self, m, pad, user):
        def outer(name):
            return getattr(self, user_port(name, pad))

        for name, inner in (
            ("i_operations", user.i_operations[0]),
            ("i_waits", user.i_waits[0]),
            ("i_writes", user.i_writes),
            ("i_reads", user.i_reads),
        ):
            wiring.connect(m, wiring.flipped(outer(name)), inner)
        wiring.connect(m, user.o_waits[0], wiring.flipped(outer("o_waits")))
        answer = user.o_answers[0]
        m.d.comb += [
            outer("o_answers").valid.eq(answer.valid),
            outer("o_answers").payload.eq(answer.payload),
            outer("o_data").valid.eq(user.o_data.valid),
            outer("o_data").payload.eq(user.o_data.data),
        ]
