"""scikit-learn pipelines of transformers and a tree model, as one model over the raw columns.

Every transformer allowed here works on one column at a time, and is monotone or turns
categories into columns. A cut of the model is pulled back to the raw column by asking
the transformers themselves: by bisection over float64 numbers for numbers, by trying
each value for categories. So what the pulled-back cuts say is what the pipeline says,
rounding included.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _tables
from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.bisection import BoolArray, FloatArray, last_true
from cfmaps.readers.columns import Source, sources_of

# Numbers farther out are not told apart: a scaler overflows there, and models refuse infinity.
_FARTHEST = 1e100


def read(model: Any, ensemble: Ensemble) -> Ensemble:
    """The ensemble of a pipeline over its raw columns, given that of its last step."""
    return _Pulled(ensemble, _Front.of(model, ensemble)).ensemble()


def _of_first_step(model: Any, attribute: str) -> Any:
    """What the first step that does something knows of the raw rows."""
    first = next(step for _, step in model.steps if step is not None and not isinstance(step, str))
    return getattr(first, attribute, None)


@dataclass(frozen=True, slots=True, eq=False)
class RawRows:
    """Rows of numbers and codes as a pipeline takes them: a frame, if it was fitted on one."""

    names: tuple[str, ...] | None
    n_columns: int
    categories: Mapping[int, Any]

    @classmethod
    def of(cls, model: Any, categories: Mapping[int, Any] | None) -> "RawRows":
        names = _of_first_step(model, "feature_names_in_")
        given = None if names is None else tuple(map(str, names))
        return cls(given, int(_of_first_step(model, "n_features_in_")), categories or {})

    def __call__(self, rows: FloatArray) -> Any:
        columns = [self._column(column, rows[:, column]) for column in range(self.n_columns)]
        if self.names is not None:
            return _frame(dict(zip(self.names, columns, strict=True)))
        kind = np.float64 if all(column.dtype == np.float64 for column in columns) else object
        return np.stack([column.astype(kind) for column in columns], axis=1)

    def _column(self, column: int, values: FloatArray) -> npt.NDArray[Any]:
        if column not in self.categories:
            return values
        categories = self.categories[column]
        chosen = [np.nan if code != code else categories[int(code)] for code in values.tolist()]
        if all(isinstance(value, int | float) for value in categories):
            return np.array(chosen, dtype=np.float64)
        array = np.empty(len(chosen), dtype=object)
        array[:] = chosen
        return array


def _frame(columns: dict[str, npt.NDArray[Any]]) -> Any:
    if _tables.installed() != "pandas":
        import polars

        return polars.DataFrame({name: column.tolist() for name, column in columns.items()}, nan_to_null=True)
    import pandas

    return pandas.DataFrame(columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Front:
    """What stands before the model: which raw column each of its columns is made of, and how."""

    transform: Callable[[Any], npt.NDArray[Any]]
    sources: tuple[Source, ...]
    raw: RawRows

    @classmethod
    def of(cls, model: Any, ensemble: Ensemble) -> "_Front":
        front, n_columns = model[:-1], int(_of_first_step(model, "n_features_in_"))
        sources = sources_of(front, [Source(column) for column in range(n_columns)])
        sources = [_in_categories_of(ensemble, column, source) for column, source in enumerate(sources)]
        raw = RawRows.of(model, _categories(sources))
        transform = front.transform if len(model) > 1 else np.asarray
        if _is_of_xgboost(model[-1]) and any(source.column not in raw.categories for source in sources):
            _expect_dense(transform(raw(np.zeros((1, raw.n_columns)))))
        return cls(lambda rows: _dense(transform(rows), model[-1]), tuple(sources), raw)

    def model_rows(self, rows: FloatArray) -> FloatArray:
        """What the model sees of rows of numbers and codes."""
        with np.errstate(all="ignore"):
            return np.asarray(self.transform(self.raw(rows)), dtype=np.float64)


def _expect_dense(rows: Any) -> None:
    from scipy.sparse import issparse

    if issparse(rows):
        raise UnsupportedModel(
            "XGBoost behind a sparse matrix takes a number that is 0 for missing: set sparse_threshold=0 in the "
            "ColumnTransformer or sparse_output=False in the encoder"
        )


def _dense(rows: Any, model: Any) -> npt.NDArray[Any]:
    """Rows as an array. XGBoost takes what a sparse matrix does not store for missing."""
    from scipy.sparse import issparse

    if not issparse(rows):
        return np.asarray(rows)
    dense: npt.NDArray[Any] = rows.toarray()
    return np.where(dense == 0, np.nan, dense) if _is_of_xgboost(model) else dense


def _is_of_xgboost(model: Any) -> bool:
    return any(parent.__module__.startswith("xgboost.") for parent in type(model).__mro__)


def _in_categories_of(ensemble: Ensemble, column: int, source: Source) -> Source:
    """A column that the model tests by sets has the model's categories, if it came through unchanged."""
    if ensemble.category_set is None or column not in (ensemble.categories or {}) or source.categories is not None:
        return source
    if source.is_changed:
        raise UnsupportedModel(f"raw column {source.column} is transformed before the model takes it as a category")
    return replace(source, categories=tuple((ensemble.categories or {})[column]))


def _categories(sources: Iterable[Source]) -> dict[int, tuple[Any, ...]]:
    found: dict[int, tuple[Any, ...]] = {}
    for source in sources:
        if source.categories is None:
            continue
        known = found.setdefault(source.column, source.categories)
        if known != source.categories:
            raise UnsupportedModel(f"raw column {source.column} is encoded twice, by different categories")
    return found


class _Pulled:
    """The cuts of a model, pulled back through what stands before it."""

    def __init__(self, ensemble: Ensemble, front: _Front) -> None:
        self.model, self.front = ensemble, front
        self.raw_column = np.array([source.column for source in front.sources], dtype=np.int32)
        inner = np.flatnonzero(ensemble.feature >= 0)
        is_category = np.isin(self.raw_column[ensemble.feature[inner]], list(front.raw.categories))
        self.numeric, self.categorical = inner[~is_category], inner[is_category]

    def ensemble(self) -> Ensemble:
        """The same trees with tests of raw columns."""
        model = self.model
        threshold, swapped = self._thresholds()
        missing_left = self._missing_left()
        return replace(
            model,
            feature=np.where(model.feature >= 0, self.raw_column[np.maximum(model.feature, 0)], -1),
            threshold=threshold,
            left=np.where(swapped, model.right, model.left),
            right=np.where(swapped, model.left, model.right),
            missing_left=None if missing_left is None else missing_left ^ swapped,
            **self._category_sets(),
            n_features=self.front.raw.n_columns,
            number=np.float64,
            zero_band=0.0,
            feature_names=self.front.raw.names,
        )

    def _thresholds(self) -> tuple[FloatArray, BoolArray]:
        """Per node the last raw number of the side it begins with, and whether that is the right side."""
        threshold, swapped = np.zeros(self.model.n_nodes), np.zeros(self.model.n_nodes, dtype=bool)
        if not len(self.numeric):
            return threshold, swapped
        keys = np.stack([self.model.feature[self.numeric], self.model.threshold[self.numeric]])
        _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        cuts = _Cuts.of(self, self.numeric[first])
        begins_left = cuts.goes_left(np.full(len(first), -_FARTHEST))
        switches = cuts.goes_left(np.full(len(first), _FARTHEST)) != begins_left
        low = np.where(switches, -_FARTHEST, 0.0)
        high = np.where(switches, _FARTHEST, np.nextafter(0.0, 1.0))
        last = last_true(lambda x: (cuts.goes_left(x) == begins_left) & switches, low, high)
        last = np.where(switches, last, np.where(begins_left, np.inf, -np.inf))
        threshold[self.numeric] = last[which.ravel()]
        swapped[self.numeric] = (switches & ~begins_left)[which.ravel()]
        return threshold, swapped

    def _category_sets(self) -> dict[str, Any]:
        """Per node of a category the values that go left, found by trying each."""
        categories = self.front.raw.categories
        if not categories:
            return {"category_set": None, "category_sets": None, "categories": None}
        widest = max(map(len, categories.values()))
        rows = np.zeros((widest, self.front.raw.n_columns))
        for column, values in categories.items():
            rows[:, column] = np.arange(widest) % len(values)
        seen = self.front.model_rows(rows)
        sets = np.zeros((len(self.categorical), widest), dtype=bool)
        for code in range(widest):
            sets[:, code] = self.goes_left(self.categorical, seen[code, self.model.feature[self.categorical]])
        unique, which = np.unique(sets, axis=0, return_inverse=True)
        category_set = np.full(self.model.n_nodes, -1)
        category_set[self.categorical] = which.ravel()
        return {"category_set": category_set, "category_sets": unique, "categories": categories}

    def _missing_left(self) -> BoolArray | None:
        """Where each node sends a row whose value is missing; None unless every column may be missing."""
        rows = np.zeros((self.front.raw.n_columns, self.front.raw.n_columns))
        np.fill_diagonal(rows, np.nan)
        try:
            seen = self.front.model_rows(rows)
        except ValueError:
            return None
        if np.isnan(seen).any() and self.model.missing_left is None:
            return None
        inner = np.flatnonzero(self.model.feature >= 0)
        column = self.model.feature[inner]
        left = np.zeros(self.model.n_nodes, dtype=bool)
        left[inner] = self.goes_left(inner, seen[self.raw_column[column], column])
        return left

    def goes_left(self, nodes: npt.NDArray[np.intp], values: FloatArray) -> BoolArray:
        """Whether the model sends a value left at a node, element by element."""
        model = self.model
        with np.errstate(all="ignore"):
            x = values.astype(model.number)
        left, follows_missing = x <= model.threshold[nodes], np.isnan(x)
        if model.category_set is not None and model.category_sets is not None:
            chosen, n_codes = model.category_set[nodes], model.category_sets.shape[1]
            known = (x >= 0) & (x < n_codes)
            left = np.where(chosen >= 0, model.category_sets[chosen, np.where(known, x, 0).astype(np.intp)], left)
            follows_missing |= (chosen >= 0) & ~known
        return left if model.missing_left is None else np.where(follows_missing, model.missing_left[nodes], left)


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """Distinct cuts of numbers, each with a row of its own among those of its raw column.

    One row asks about one cut of every raw column: a transformer is called on as many
    rows as the column with most cuts has cuts.
    """

    pulled: _Pulled
    nodes: npt.NDArray[np.intp]
    raw: npt.NDArray[np.int32]
    row: npt.NDArray[np.intp]

    @classmethod
    def of(cls, pulled: _Pulled, nodes: npt.NDArray[np.intp]) -> "_Cuts":
        raw = pulled.raw_column[pulled.model.feature[nodes]]
        order = np.argsort(raw, kind="stable")
        row = np.empty(len(nodes), dtype=np.intp)
        row[order] = np.arange(len(nodes)) - np.searchsorted(raw[order], raw[order])
        return cls(pulled, nodes, raw, row)

    def goes_left(self, x: FloatArray) -> BoolArray:
        """Whether each cut sends the raw number given for it left."""
        rows = np.zeros((int(self.row.max()) + 1, self.pulled.front.raw.n_columns))
        rows[self.row, self.raw] = x
        seen = self.pulled.front.model_rows(rows)
        return self.pulled.goes_left(self.nodes, seen[self.row, self.pulled.model.feature[self.nodes]])
