"""Load streams that a pipeline of rows by number needs: one of numbers, one of rows."""

from __future__ import annotations

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from sw.passes.field_limits import Unfit

__all__ = ["require_load_streams"]


def require_load_streams(what: str, config: ChipConfig) -> None:
    """Refuse a chip whose AGCUs have fewer than two load streams.

    Parameters
    ----------
    what : str
        What needs them, such as ``gather``.
    config : ChipConfig

    Raises
    ------
    Unfit
        The chip has fewer; the message says how many.
    """
    streams = min(AGCU_STREAMS, config.token_tracks)
    if streams < 2:
        raise Unfit(
            f"A {what} needs 2 load streams of an AGCU, and those of the chip have {streams}",
            value=streams,
            rule="2 token tracks",
        )
