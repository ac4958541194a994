"""Foreign-function interface of a chip's harness."""

import ctypes
from pathlib import Path

__all__ = ["load"]


def load(path: Path) -> ctypes.CDLL:
    """Load the library, and declare the types of its functions."""
    library = ctypes.CDLL(str(path))
    pointer, i64, u32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32
    types: dict[str, tuple[object, list[object]]] = {
        "chip_new": (pointer, [ctypes.c_uint64]),
        "chip_delete": (None, [pointer]),
        "chip_trace": (ctypes.c_int, [pointer, ctypes.c_char_p]),
        "chip_reset": (None, [pointer]),
        "chip_begin": (None, [pointer, pointer]),
        "chip_cycle": (i64, [pointer]),
        "chip_errors_met": (ctypes.c_int, [pointer]),
        "chip_fault": (ctypes.c_char_p, [pointer]),
        "chip_port": (None, [pointer, ctypes.c_int, pointer]),
        "chip_sample": (None, [pointer, i64]),
        "chip_samples": (ctypes.POINTER(i64), [pointer, pointer]),
        "chip_write": (ctypes.c_int, [pointer, u32, u32, pointer]),
        "chip_read": (ctypes.c_int, [pointer, u32, pointer]),
        "chip_run": (ctypes.c_int, [pointer, i64, i64, ctypes.c_double]),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
