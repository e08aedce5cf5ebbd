"""Exact switching points of monotone conditions on floating-point numbers."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
_SIGN = np.int64(np.iinfo(np.int64).min)


def last_true(holds: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Per element the largest float64 in low..high where ``holds``, which is true up to there and false beyond.

    It must hold at ``low`` and not at ``high``. All elements are bisected together, so
    ``holds`` gets and gives arrays; at most 65 calls reach neighbouring numbers.

    >>> last_true(lambda x: x <= 0.1, np.array([-1.0]), np.array([1.0])).item()
    0.1
    """
    below, above = ranks(low), ranks(high)
    while (below + 1 < above).any():
        # Halves first: a sum of two ranks may overflow.
        middle = (below >> 1) + (above >> 1) + (below & above & 1)
        true = holds(numbers(middle))
        below, above = np.where(true, middle, below), np.where(true, above, middle)
    return numbers(below)


def ranks(x: FloatArray) -> npt.NDArray[np.int64]:
    """Integers in the order of the numbers, neighbours one apart; both zeros are 0.

    >>> ranks(np.array([-0.0, 0.0, 5e-324]))
    array([0, 0, 1])
    """
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, _SIGN - bits, bits)


def numbers(rank: npt.NDArray[np.int64]) -> FloatArray:
    """What `ranks` came from.

    >>> numbers(np.array([-1, 0, 1]))
    array([-5.e-324,  0.e+000,  5.e-324])
    """
    return np.where(rank < 0, _SIGN - rank, rank).astype(np.int64).view(np.float64)
