"""Whether rows hold what their columns may hold: all columns of a kind are looked at together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Kinds:
    """The columns that must be whole, on or off, in groups with one column on, or of listed values.

    Parameters
    ----------
    integers, bits : sequence of int
    groups : sequence of (columns, whether none may be on)
    scales : sequence of (column, values)
    """

    def __init__(
        self,
        *,
        integers: Sequence[int],
        bits: Sequence[int],
        groups: Sequence[tuple[Sequence[int], bool]],
        scales: Sequence[tuple[int, Sequence[float]]],
    ) -> None:
        self._is_free = not (integers or bits or groups or scales)
        self._integers, self._bits, self._groups = list(integers), list(bits), list(groups)
        sizes = np.array([len(columns) for columns, _ in groups], dtype=np.intp)
        self._grouped = [column for columns, _ in groups for column in columns]
        self._starts = np.cumsum(sizes) - sizes
        self._may_be_none = np.array([optional for _, optional in groups], dtype=bool)
        self._ordinals = [column for column, _ in scales]
        values = (keyed(place, np.array(scale)) for place, (_, scale) in enumerate(scales))
        self._values = np.concatenate([np.empty(0, complex), *values])

    def admit(self, X: npt.NDArray[np.float64]) -> bool:
        """Whether every row is admissible; False also when an ordinal must be looked at more closely."""
        if self._is_free:
            return True
        if len(X) == 1 and not self._ordinals:
            return self._admits(X[0].tolist())
        whole, bits = X[:, self._integers], X[:, self._bits]
        if (whole != np.floor(whole)).any() or ((bits != 0) & (bits != 1)).any():
            return False
        if self._groups:
            on = np.add.reduceat(X[:, self._grouped], self._starts, axis=1)
            if ((on != 1) & ~(self._may_be_none & (on == 0))).any():
                return False
        if not self._ordinals:
            return True
        keys = keyed(np.arange(len(self._ordinals)), X[:, self._ordinals])
        nearest = np.minimum(np.searchsorted(self._values, keys), len(self._values) - 1)
        return bool((self._values[nearest] == keys).all())

    def _admits(self, row: list[float]) -> bool:
        """The same for one row: its few columns are looked at sooner than numpy is called."""
        for column in self._integers:
            if not row[column].is_integer():
                return False
        for column in self._bits:
            if row[column] != 0.0 and row[column] != 1.0:
                return False
        for columns, optional in self._groups:
            on = sum([row[column] for column in columns])
            if on != 1.0 and not (optional and on == 0.0):
                return False
        return True


def keyed(index: int | npt.NDArray[np.integer[Any]], values: npt.NDArray[np.float64]) -> npt.NDArray[np.complex128]:
    """Pairs (index, value) as complex numbers.

    numpy orders complex numbers by real part, then imaginary part: one binary search
    in sorted pairs ranks the values of all features at once.

    >>> keyed(2, np.array([0.5, np.inf]))
    array([2.+0.5j, 2.+infj])
    """
    keys = np.empty(values.shape, dtype=np.complex128)
    keys.real = index
    keys.imag = values
    return keys
