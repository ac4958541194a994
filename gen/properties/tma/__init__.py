"""Formal properties of the TMA engine: responses, and addresses inside the described tensor."""

from gen.formal import Property
from gen.properties.tma.load_responses import ReadsLand
from gen.properties.tma.read_boxes import BoxesAreClipped
from gen.properties.tma.rows_inside import RowsStayInside
from gen.properties.tma.strobes import StrobesStayInside
from gen.properties.tma.write_reports import WritesAreReported

__all__ = ["TMA_PROPERTIES"]

#: Fields of two bits: sizes and strides of 0 to 3, coordinates of -4 to 3.
_BOXES = {"rank": 2, "bits": 2}
_READS = {"width_bits": 16, "landing_beats": 16, "outstanding": 2}
_WRITES = {"width_bits": 16, "outstanding": 2, "beats": 1}
_STROBES = {"width_bits": 16, "address_bits": 8, "vectors": 2}

#: Properties of responses and addresses, in the order of proof.
TMA_PROPERTIES = (
    Property(
        "tma",
        "a box is where its descriptor and coordinates say",
        _BOXES,
        lambda: BoxesAreClipped(**_BOXES),
        method="PDR",
        faults=0,
    ),
    Property(
        "tma",
        "no row of a box leaves the tensor",
        _BOXES,
        lambda: RowsStayInside(**_BOXES),
        faults=0,
    ),
    Property(
        "tma",
        "strobes are those of a row's bytes in the tensor",
        _STROBES,
        lambda: StrobesStayInside(**_STROBES),
        method="PDR",
        faults=0,
    ),
    Property(
        "tma",
        "R never waits, and its errors are kept",
        _READS,
        lambda: ReadsLand(**_READS, joined=False),
        method="PDR",
        faults=0,
    ),
    Property(
        "tma",
        "each B is taken, and reported with its box",
        _WRITES,
        lambda: WritesAreReported(**_WRITES),
        method="PDR",
        faults=0,
    ),
)
