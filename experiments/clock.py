"""The clock of the study: seconds of processor time.

Every system runs on one thread, so that on an idle machine this is the time one waits; on a shared one it leaves out
the waiting for others. Systems in processes of their own read the same clock there.
"""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

now = time.process_time


def seconds(call: Callable[[], Result]) -> tuple[float, Result]:
    """How long a call keeps the processor busy, and what it returns."""
    start = now()
    result = call()
    return now() - start, result
