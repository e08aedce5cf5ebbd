"""One model, several maps: rows with other missing values, and targets on the output, each have their own."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _core
from cfmaps._set_axes import EITHER, MISSING
from cfmaps.distance import Distance, FloatArray
from cfmaps.ensemble import Ensemble
from cfmaps.features import Categorical, Features, Numeric, OneHot
from cfmaps.lattice import Lattice
from cfmaps.partition import Partition
from cfmaps.recourse import Recourse
from cfmaps.targets import Interval, banded

_MOST_VIEWS = 16
Predict = Callable[[FloatArray], npt.NDArray[Any]]


def features_of(ensemble: Ensemble) -> Features:
    """What the columns are as far as the model knows: its categories, and numbers otherwise."""
    names = ensemble.feature_names or [f"x{column}" for column in range(ensemble.n_features)]
    if ensemble.category_set is None or ensemble.category_sets is None:
        return Features.numeric(ensemble.n_features, names=names)
    n_codes, listed = ensemble.category_sets.shape[1], ensemble.categories or {}
    tested = set(np.unique(ensemble.feature[ensemble.category_set >= 0]).tolist())
    return Features(
        Categorical.listed(name, listed.get(column, range(n_codes)))
        if column in tested | set(listed)
        else Numeric(name)
        for column, name in enumerate(names)
    )


class View:
    """A map, and the words in which its answers are given."""

    __slots__ = ("classes", "explainers", "outputs", "partition", "predict")

    def __init__(
        self, partition: Partition, classes: npt.NDArray[Any], predict: Predict, outputs: Predict | None = None
    ) -> None:
        self.partition, self.classes, self.predict, self.outputs = partition, classes, predict, outputs
        self.explainers: OrderedDict[Any, tuple[Distance, _core.Explainer | Recourse]] = OrderedDict()


class Missingness:
    """Which columns an answer may leave out or fill in, and so what is known of a row's columns."""

    def __init__(self, ensemble: Ensemble, features: Features) -> None:
        self._may_set, self._may_fill = np.zeros((2, features.n_columns), dtype=bool)
        for entry, positions in zip(features, features.positions, strict=True):
            if isinstance(entry, OneHot) or entry.missing == "keep":
                continue
            if not ensemble.takes_missing:
                raise ValueError(
                    f"feature {entry.name!r}: the model takes no missing values, got missing={entry.missing!r}"
                )
            self._may_set[positions] = entry.missing in ("set", "free")
            self._may_fill[positions] = entry.missing in ("fill", "free")

    def of(self, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
        """For rows with these missing values, whether each column is present, missing or either."""
        kept = np.where(self._may_fill, EITHER, MISSING)
        return np.where(missing, kept, np.where(self._may_set, EITHER, 0)).astype(np.int8)


class Views:
    """The maps made so far, the latest few of them; see `View`."""

    def __init__(self, ensemble: Ensemble, features: Features) -> None:
        self.ensemble, self.features = ensemble, features
        self.missingness = Missingness(ensemble, features)
        self._views: OrderedDict[Any, View] = OrderedDict()
        self._lock = Lock()

    def map_of(self, missing: npt.NDArray[np.int8], target: Interval | None) -> Partition:
        """A new map for rows of one pattern, of labels or of an output."""
        ensemble = self.ensemble if target is None else banded(self.ensemble, target)
        return Partition(Lattice.of(ensemble, self.features, missing))

    def get(self, missing: npt.NDArray[np.int8], target: Interval | None, make: Callable[[Partition], View]) -> View:
        """The view for rows of one pattern, made when it is first asked for."""
        key = (missing.tobytes(), target)
        with self._lock:
            found = self._views.get(key)
            if found is None:
                found = self._views[key] = make(self.map_of(missing, target))
            self._views.move_to_end(key)
            while len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        return found
