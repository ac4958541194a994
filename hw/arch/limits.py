"""Limits shared by several kinds of unit, and the domains of elaboration parameters."""

from hw.arch.checks import Domain

__all__ = [
    "COUNTER_NUMBER_BITS",
    "COUNTER_WORDS",
    "UNIT_COUNT",
    "FUNCTION_BITS",
    "FUNCTION_WIDTH",
    "AGCU_COUNT",
    "AXI_ADDRESS_BITS",
    "AXI_FIRST_ID",
    "AXI_PROTECTION",
    "AXI_QOS",
    "BANK_ROWS",
    "BARRIERS",
    "BARRIER_ARRIVALS",
    "BARRIER_PORTS",
    "BARRIER_TX_BYTES",
    "BARRIER_WAITERS",
    "CACHED_DESCRIPTORS",
    "CELL_LATENCY",
    "COMMAND_SLOTS",
    "DESCRIPTOR_COUNT",
    "FABRIC_ROWS",
    "FINGERPRINT",
    "INSTRUCTION_QUEUE",
    "INTERLOCK_PORTS",
    "LANDING_BEATS",
    "LANES",
    "LINK_BITS",
    "MAX_CREDITS",
    "MAX_MODULUS",
    "MESH_SIDE",
    "OUTSTANDING",
    "PACKET_VECTORS",
    "PMU_CAPACITY_BYTES",
    "PMU_SLOTS",
    "READ_IDS",
    "SCRATCHPADS",
    "SCRATCHPAD_BYTES",
    "SEGMENTS",
    "SEGMENT_WORDS",
    "STREAM_COUNT",
    "SWITCH_UNIT_PORTS",
    "TRACKS",
    "TURNS",
]

#: Greatest token count of an AGCU: at a token port, and of stored boxes not yet reported.
MAX_CREDITS = 255
#: Greatest number of consumers that share one stream's packets.
MAX_MODULUS = 16

#: Width of a link and of AXI's data, in bits: one vector.
LINK_BITS = Domain(64, 1024, power=True)
#: Rows, and columns, of a chip's mesh.
MESH_SIDE = Domain(1, 64)
#: Rows of segments that a command processor configures.
FABRIC_ROWS = Domain(1, 255)
#: Segments of a row: one per tile, and one per AGCU at its ends.
SEGMENTS = Domain(1, 255)
#: Words of a segment: those of its program, each as wide as a link.
SEGMENT_WORDS = Domain(1, 255)
#: Fingerprint of a chip's parameters.
FINGERPRINT = Domain(0, (1 << 32) - 1)
#: Parallel links of a switch per direction, of vectors and of tokens.
TRACKS = Domain(1, 8)
#: Inputs, and outputs, of a switch's unit.
SWITCH_UNIT_PORTS = Domain(0, 8)
#: Longest rotation of a switch's output.
TURNS = Domain(1, 8)
#: AGCUs of a chip.
AGCU_COUNT = Domain(1, 16)
#: Width of a byte address of memory.
AXI_ADDRESS_BITS = Domain(32, 64)
#: First ID of a TMA unit at its AXI port.
AXI_FIRST_ID = Domain(0, (1 << 16) - 1)
#: AxPROT: bit 0 privileged, bit 1 non-secure, bit 2 instruction.
AXI_PROTECTION = Domain(0, 7)
#: AxQOS; AXI4 gives no meaning to the values but 0, which says that there is none.
AXI_QOS = Domain(0, 15)
#: Beats of a TMA engine's landing buffer.
LANDING_BEATS = Domain(16, 4096, power=True)
#: Outstanding bursts of a TMA engine.
OUTSTANDING = Domain(1, 256)
#: IDs of the bursts that a TMA engine reads.
READ_IDS = Domain(1, 16, power=True)
#: Descriptors of a TMA engine.
DESCRIPTOR_COUNT = Domain(1, 256)
#: Load streams, and store streams, of a TMA engine.
STREAM_COUNT = Domain(1, 8)
#: Bytes of a PMU's scratchpad on a chip.
PMU_CAPACITY_BYTES = Domain(1024, 4 << 20, power=True)
#: Most slots of a PMU's buffer.
PMU_SLOTS = Domain(2, 64)
#: Rows of one accumulator bank of a PCU.
BANK_ROWS = Domain(16, 8192, power=True)
#: Vectors of a result packet of a PCU; 0: all of a pass.
PACKET_VECTORS = Domain(0, 255)
#: Register stages on the path of a cell's partial sum: cycles of skew between rows.
CELL_LATENCY = Domain(1, 3)
#: Arrivals that a phase of a barrier may expect.
BARRIER_ARRIVALS = Domain(1, (1 << 20) - 1)
#: Largest magnitude of a barrier's transaction count; 0 omits the count.
BARRIER_TX_BYTES = Domain(0, (1 << 20) - 1)
#: Barriers of a bank.
BARRIERS = Domain(1, 256)
#: Operation ports of a bank of barriers.
BARRIER_PORTS = Domain(1, 16)
#: Waiters of a bank of barriers.
BARRIER_WAITERS = Domain(1, 16)
#: TMA units that share an interlock of reducing stores.
INTERLOCK_PORTS = Domain(2, 16)
#: Descriptors that the cache of a stand-alone TMA unit holds.
CACHED_DESCRIPTORS = Domain(2, 64)
#: Commands of a stand-alone TMA unit in flight, or with completions that the host did not read.
COMMAND_SLOTS = Domain(2, 1024, power=True)
#: Instructions of a tensor unit that are submitted and have not begun.
INSTRUCTION_QUEUE = Domain(2, 1024, power=True)
#: Bytes of the scratchpad of a stand-alone TMA unit; a box of it is counted by a barrier.
SCRATCHPAD_BYTES = Domain(1024, 1 << 19, power=True)
#: Scratchpads of a stand-alone TMA unit.
SCRATCHPADS = Domain(1, 16)
#: Counter numbers per unit in the space of COUNTER_SELECT, used or not.
COUNTER_WORDS = 8
#: Width of a counter's number, which counts on through the units.
COUNTER_NUMBER_BITS = 16
#: Units whose counters have a number.
UNIT_COUNT = Domain(0, (1 << COUNTER_NUMBER_BITS) // COUNTER_WORDS - 1)
#: Significand bits that the result of a special function may have; at most those of fp32.
FUNCTION_WIDTH = Domain(4, 24)
#: Significand bits of a result of the functions of a chip: exp2, exp, reciprocal, rsqrt.
FUNCTION_BITS = Domain(12, 24)
#: Lanes t of a PCU's vector side.
LANES = Domain(1, 8, power=True)
