"""What is opened, used and closed."""

from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing:
    """Something that may hold what must be freed: the end of a ``with`` closes it."""

    def close(self) -> None:
        """Free what is held; here, nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
