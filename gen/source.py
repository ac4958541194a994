"""Source locations relative to the package, independent of the machine."""

import functools
import re
from pathlib import Path

__all__ = ["portable_marks", "portable_name"]

_MARK = re.compile(r'(?<=attribute \\src ")([^"]*)(?=")')


@functools.cache
def portable_name(file: str) -> str:
    """Name of a source file from its outermost package on; its base name if it is in none."""
    path = Path(file)
    parts = [path.name]
    for folder in path.parents:
        if not (folder / "__init__.py").exists():
            break
        parts.insert(0, folder.name)
    return "/".join(parts)


def portable_marks(rtlil: str) -> str:
    """RTLIL in which every source attribute names its file by `portable_name`."""

    def named(mark: re.Match[str]) -> str:
        places = (place.rpartition(":") for place in mark[1].split("|"))
        return "|".join(f"{portable_name(file)}:{line}" for file, _, line in places)

    return _MARK.sub(named, rtlil)
