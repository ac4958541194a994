"""Base classes of what every kind of unit declares: its vector ports, and its program."""

import abc
import enum

__all__ = ["UnitPorts", "UnitProgram"]


class UnitPorts(enum.IntEnum):
    """Base of the vector inputs, and of the vector outputs, of a kind of unit: name, position."""

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class UnitProgram(abc.ABC):
    """Run-time program of a unit, as nets and proofs see it: the ports that it uses."""

    @property
    @abc.abstractmethod
    def inputs(self) -> tuple[int, ...]:
        """Vector inputs that take packets."""

    @property
    @abc.abstractmethod
    def outputs(self) -> tuple[int, ...]:
        """Vector outputs that send packets."""

    @property
    def token_outputs(self) -> tuple[int, ...]:
        """Token outputs that send tokens."""
        return ()
