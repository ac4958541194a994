"""Kernels written in the tile language, a module each."""

from pkgutil import walk_packages

__all__ = ["modules"]


def modules() -> dict[str, str]:
    """Module of each kernel, by the kernel's name; only packages are imported."""
    found = (each.name for each in walk_packages(__path__, f"{__name__}.") if not each.ispkg)
    return dict(sorted((name.rpartition(".")[2], name) for name in found))
