"""Amaranth components of the machine; nothing here imports the other packages."""

__all__ = ["__version__"]

__version__ = "0.1.0"
