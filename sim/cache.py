"""Build cache: one builder per key at a time, and removal of what killed builders left behind."""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hw.arch.errors import BadInputError
from sim.progress import Progress

__all__ = ["KINDS", "cache_bytes", "cache_directory", "cached", "free_cache", "key_of"]

#: Folders of the cache: area of units, testbenches for Icarus, models, text of chips.
KINDS = ("area", "cocotb", "verilator", "verilog")
#: Names that belong to a key: finished build, lock, builds under way. Nothing else is removed,
#: because ``$TILEWRIGHT_CACHE`` may be a folder with other files of the user.
_ENTRY = re.compile(r"\.?([0-9a-f]{32})(\..+)?")

#: File on which every builder holds a shared lock: the cache cannot be emptied meanwhile.
_BUILDERS = "builders.lock"
#: Seconds after which a partly written file counts as abandoned.
_STALE_SECONDS = 3600
#: Attempts to remove the folder of a killed builder, whose children may still write to it.
_REMOVALS, _PAUSE_SECONDS = 50, 0.1


def cache_directory() -> Path:
    """The cache folder: ``$TILEWRIGHT_CACHE``, otherwise ``tilewright`` in the user's cache."""
    chosen = os.environ.get("TILEWRIGHT_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "tilewright"


def _lock(path: Path, mode: int) -> int | None:
    """Acquire a file lock; returns its descriptor, or None if ``LOCK_NB`` is set and it is held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, mode)
            # Whoever frees the cache may have removed the file while we waited for it.
            if os.path.exists(path) and os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextlib.contextmanager
def _held(path: Path, mode: int) -> Iterator[bool]:
    """Context manager that holds a file lock; yields whether it was acquired (``LOCK_NB``)."""
    handle = _lock(path, mode)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def _sole_builder(lock: Path, name: str, progress: Progress) -> Iterator[None]:
    handle = _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if handle is None:
        with progress.step(f"waiting: another process builds {name}"):
            handle = _lock(lock, fcntl.LOCK_EX)
    assert handle is not None
    try:
        yield
    finally:
        os.close(handle)


def _entries(root: Path) -> Iterator[tuple[Path, str]]:
    """Files and folders in the cache, each with its key."""
    for folder in (root / kind for kind in KINDS):
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            match = _ENTRY.fullmatch(path.name)
            if match:
                yield path, match[1]


def _remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_PAUSE_SECONDS)


def _sweep(root: Path) -> None:
    """Remove the remains of killed builders; a live builder holds the lock of its key."""
    for path, key in _entries(root):
        # Remains of another user cannot be removed; they do no harm.
        with contextlib.suppress(OSError):
            if path.suffix == ".partial":
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()
            elif path.name != key and path.is_dir():
                with _held(path.with_name(f"{key}.lock"), fcntl.LOCK_EX | fcntl.LOCK_NB) as dead:
                    if dead:
                        _remove(path)


def key_of(content: Sequence[str]) -> str:
    """Cache key: name of the folder for a build of this content."""
    return hashlib.sha256("\0".join(content).encode()).hexdigest()[:32]


def cached(
    kind: str,
    content: Sequence[str],
    result: str,
    make: Callable[[Path], None],
    *,
    name: str,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[Path, bool]:
    """Return the folder with the build of this content, and whether it was a cache hit.

    One process builds; others that need the same content wait for it. A finished folder appears
    atomically and can be read without a lock.

    Parameters
    ----------
    kind : str
        Subfolder of the cache.
    content : sequence of str
        Everything that determines the build.
    result : str
        A file in the folder that marks the build as finished.
    make : function
        Function that builds in a folder and leaves only the files to keep.
    name : str
        Name of the build, for the display of progress.
    use_cache : bool
        Whether a finished build may be used.
    progress : Progress, optional
        Display of a wait for another process.
    """
    key = key_of(content)
    root = cache_directory()
    directory = root / kind / key
    if use_cache and (directory / result).exists():
        return directory, True
    with (
        _held(root / _BUILDERS, fcntl.LOCK_SH),
        _sole_builder(directory.with_suffix(".lock"), name, progress or Progress()),
    ):
        if use_cache and (directory / result).exists():
            return directory, True
        _sweep(root)
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=directory.parent))
        try:
            make(work)
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(work, directory)
        except OSError as error:
            # The error of a full disk names no file.
            error.filename = error.filename or str(work)
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return directory, False


def cache_bytes() -> int:
    """Size of all files in the cache."""
    size = 0
    for entry, _ in _entries(cache_directory()):
        # A build may end meanwhile: entries may have vanished.
        below = [Path(at, name) for at, _, names in os.walk(entry) for name in names]
        for path in below or [entry]:
            with contextlib.suppress(FileNotFoundError):
                size += 0 if path.is_dir() else path.lstat().st_size
    return size


def free_cache() -> int:
    """Empty the cache; returns the bytes freed.

    Raises
    ------
    BadInputError
        If a build is running.
    """
    root = cache_directory()
    before = cache_bytes()
    if not root.exists():
        return 0
    with _held(root / _BUILDERS, fcntl.LOCK_EX | fcntl.LOCK_NB) as ours:
        if not ours:
            raise BadInputError(
                f"Cache must not be freed while a build is running in {root}",
                kind="cache-in-use",
                where="--clean",
                value=str(root),
                rule="no build running",
            )
        for path, _ in list(_entries(root)):
            _remove(path)
        (root / _BUILDERS).unlink()
    return before - cache_bytes()
