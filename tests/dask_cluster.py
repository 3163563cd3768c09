"""Dask with two workers on this machine, which leaves the environment of the tests as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from distributed import Client


@contextmanager
def dask_client() -> Iterator[Client]:
    """A client of two worker processes, stopped at the end."""
    from distributed import Client, LocalCluster

    quiet: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    # distributed/nanny.py, `WorkerProcess.start`, sets OMP_NUM_THREADS=1 in the process that starts workers, and
    # the number of threads is part of torch's keys.
    with patch.dict(os.environ), LocalCluster(n_workers=2, **quiet) as cluster, Client(cluster) as client:
        yield client
