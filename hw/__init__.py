"""Hardware components in Amaranth, the contract (`hw.arch`) and the golden arithmetic in numpy."""

__all__ = ["__version__"]

__version__ = "0.1.0"
