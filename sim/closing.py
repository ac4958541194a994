"""Base class of context managers with a `close` method."""

from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing:
    """Context manager that calls `close` at the end of a ``with`` block."""

    def close(self) -> None:
        """Release all resources; the default has none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
