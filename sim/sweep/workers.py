"""Workers of a sweep: processes of this machine, or a Ray cluster; a dead one loses its point only.

Both are generators of what a function gives for each item, in the order in which they end. An item
whose worker dies is given to another one; after `ATTEMPTS` of them it ends as `Died`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from gen.tools import require_package
from hw.arch.errors import BadInputError

__all__ = ["ATTEMPTS", "Died", "by_cluster", "by_processes"]

Item = TypeVar("Item")

#: Workers that an item may kill before it is given up.
ATTEMPTS = 3


@dataclasses.dataclass(frozen=True)
class Died:
    """End of an item whose workers all died.

    Members
    -------
    workers : int
        How many of them.
    reason : str
    """

    workers: int
    reason: str


def by_processes(
    function: Callable[[Item], Any], items: Sequence[Item], *, workers: int
) -> Iterator[tuple[Item, Any]]:
    """Run a function on each item, in processes of this machine.

    Parameters
    ----------
    function : function
        One that can be imported; its exceptions end the sweep.
    items : sequence
    workers : int
        Processes at work at a time.
    """
    context = multiprocessing.get_context("spawn")
    queue = list(reversed(items))
    killed: Counter[int] = Counter()
    with contextlib.ExitStack() as stack:
        # A pool of one process each, so that the item that killed a process is known.
        free = []
        at_work: dict[Future[Any], tuple[Item, ProcessPoolExecutor]] = {}
        for _ in range(min(workers, len(items))):
            free.append(ProcessPoolExecutor(1, mp_context=context))
            stack.callback(free[-1].shutdown, wait=False, cancel_futures=True)
        while queue or at_work:
            while queue and free:
                pool, item = free.pop(), queue.pop()
                at_work[pool.submit(function, item)] = item, pool
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                item, pool = at_work.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool:
                    pool.shutdown(wait=False)
                    pool = ProcessPoolExecutor(1, mp_context=context)
                    stack.callback(pool.shutdown, wait=False, cancel_futures=True)
                    killed[id(item)] += 1
                    if killed[id(item)] < ATTEMPTS:
                        queue.append(item)
                        free.append(pool)
                        continue
                    result = Died(ATTEMPTS, "its process ended")
                free.append(pool)
                yield item, result


def by_cluster(
    function: Callable[[Item], Any], items: Sequence[Item], *, address: str
) -> Iterator[tuple[Item, Any]]:
    """Run a function on each item, on a Ray cluster, a CPU each.

    Parameters
    ----------
    function : function
        One that can be imported on every node; its exceptions end the sweep.
    items : sequence
    address : str
        Of the cluster, as ``ray.init`` takes it.

    Raises
    ------
    MissingToolError
        If Ray is not installed.
    BadInputError
        If there is no cluster at the address.
    """
    require_package("ray", where="--cluster")
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError) as error:
        raise BadInputError(
            f"--cluster must be the address of a Ray cluster, not {address!r}: {error}",
            where="--cluster",
            value=address,
            rule="the address of a Ray cluster",
        ) from error
    try:
        # Retries are counted here, where the end of an item is known.
        remote = ray.remote(num_cpus=1, max_retries=0)(function)
        killed: Counter[int] = Counter()
        at_work = {remote.remote(item): item for item in items}
        while at_work:
            (reference,), _ = ray.wait(list(at_work), num_returns=1)
            item = at_work.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from error
            except ray.exceptions.RayError as error:
                killed[id(item)] += 1
                if killed[id(item)] < ATTEMPTS:
                    at_work[remote.remote(item)] = item
                    continue
                result = Died(ATTEMPTS, type(error).__name__)
            yield item, result
    finally:
        ray.shutdown()
