"""Native models of fixtures, built while no other process of the clone does heavy work."""

import contextlib
from collections.abc import Callable, Iterator

from gen.design import Design
from hw.emit.shared import Shareable
from tests.native.stream_model import StreamModel

__all__ = ["heavy_model"]


@contextlib.contextmanager
def heavy_model(
    heavy_lock: Callable[[], contextlib.AbstractContextManager[None]],
    design: Design,
    component: Shareable,
) -> Iterator[StreamModel]:
    """Model of a component, built under the lock of the fixture `heavy_lock`, and freed behind.

    Parameters
    ----------
    heavy_lock : callable
        The value of that fixture.
    design : Design
        Verilog of the component.
    component : Shareable
    """
    with heavy_lock():
        model = StreamModel(design, component)
    with model:
        yield model
