"""npz files of a kernel's arrays: keys are array names, bf16 is stored as raw bits."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError, did_you_mean
from hw.numeric.formats import Format
from sim.run.job import MAX_ARRAY_BYTES
from sw.language import Kernel

__all__ = ["MAX_FILE_BYTES", "pack_arrays", "read_inputs"]

Array = npt.NDArray[Any]

#: Most bytes of the arrays of a file, headers included.
MAX_FILE_BYTES = MAX_ARRAY_BYTES + (1 << 16)


def read_inputs(path: Path | str, kernel: Kernel, dtype: Format) -> dict[str, Array]:
    """Read the inputs of a kernel, in the order of its signature.

    Parameters
    ----------
    path : Path or str
    kernel : Kernel
    dtype : Format
        Format of the inputs that declare none. bf16 is read as uint16, the raw bits.

    Raises
    ------
    BadInputError
        If the file is not an npz file, or its arrays do not match the kernel.
    """
    found = _stored(path)
    names = [each.name for each in kernel.signature.inputs]
    for name in found:
        if name not in names:
            raise _bad(f"{path} must have the arrays {', '.join(names)}, not {name!r}", name, names)
    arrays = {}
    for each in kernel.signature.inputs:
        if each.name not in found:
            raise _bad(f"{path} must have the array {each.name}", list(found), names)
        arrays[each.name] = _values(each.name, found[each.name], each.format or dtype)
    return arrays


def _stored(path: Path | str) -> dict[str, Array]:
    """Read all arrays of an untrusted file."""
    try:
        # A device may be endless, without a directory at its end.
        if Path(path).exists() and not Path(path).is_file():
            raise ValueError
        # The size of a compressed member is checked before it is unpacked.
        with zipfile.ZipFile(path) as members:
            size = sum(member.file_size for member in members.infolist())
        if size <= MAX_FILE_BYTES:
            with np.load(path, allow_pickle=False) as stored:
                return {name: np.asarray(stored[name]) for name in stored.files}
    except OSError as error:
        message = f"cannot read {str(path)!r}: {error.strerror or error}"
        raise BadInputError(message, kind="unreadable-file", where="--inputs") from error
    except Exception as error:
        # Broken members raise arbitrary exceptions of their reader.
        raise BadInputError(
            f"{path} must be an npz file of plain arrays", where="--inputs", rule="an npz file"
        ) from error
    raise BadInputError(
        f"{path} must hold at most {MAX_FILE_BYTES} bytes of arrays, not {size}",
        where="--inputs",
        value=size,
        rule=f"at most {MAX_FILE_BYTES} bytes",
    )


def _bad(message: str, value: object, names: list[str]) -> BadInputError:
    near = did_you_mean(value, names) if isinstance(value, str) else ""
    return BadInputError(
        message + near, where="--inputs", value=value, rule=f"arrays {', '.join(names)}"
    )


def _values(name: str, array: Array, fmt: Format) -> Array:
    if array.dtype == fmt.dtype:
        return array
    bits = np.dtype(f"u{fmt.bits // 8}")
    # A bfloat16 array is read back as raw bytes without a type.
    if fmt.is_float and (array.dtype == bits or array.dtype == f"V{fmt.bits // 8}"):
        return np.ascontiguousarray(array).view(fmt.dtype)
    how = "" if fmt.dtype.isbuiltin == 1 else f"; .astype(ml_dtypes.{fmt.dtype.name}) makes it so"
    rule = f"{fmt.name} as {bits.name if fmt.bits < 32 and fmt.is_float else fmt.dtype.name}"
    raise BadInputError(
        f"Array {name} must be {rule}, not {array.dtype}{how}",
        where="--inputs",
        value=str(array.dtype),
        rule=rule,
    )


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Pack arrays as an npz file; types unknown to plain numpy are stored as raw bits."""
    plain = {
        name: array if array.dtype.isbuiltin == 1 else array.view(f"u{array.dtype.itemsize}")
        for name, array in arrays.items()
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **plain)
    return buffer.getvalue()
