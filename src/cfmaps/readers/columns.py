"""Which raw column each column behind scikit-learn's transformers is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from cfmaps.errors import UnsupportedModel


@dataclass(frozen=True, slots=True)
class Source:
    """The raw column behind a transformed one; its categories, if an encoder took it for a category."""

    column: int
    categories: tuple[Any, ...] | None = None
    is_changed: bool = False


Sources: TypeAlias = list[Source]


def sources_of(transformer: Any, sources: Sequence[Source]) -> Sources:
    """What each output column is made of, given what the input columns are made of.

    Raises
    ------
    UnsupportedModel
        When an output may depend on several columns, or is neither monotone in a
        number nor a function of categories.
    """
    if transformer is None or isinstance(transformer, str):
        return list(sources) if transformer == "passthrough" else []
    for parent in type(transformer).__mro__:
        if parent.__module__.startswith("sklearn.") and parent.__name__ in _BY_NAME:
            return _BY_NAME[parent.__name__](transformer, list(sources))
    raise UnsupportedModel(
        f"a pipeline with {type(transformer).__name__} is not supported: expected steps that take one column at a time "
        f"and are monotone or encode categories, one of {', '.join(sorted(_BY_NAME))}"
    )


def _monotone(transformer: Any, sources: Sources) -> Sources:
    return [replace(source, is_changed=True) for source in sources]


def _imputed(imputer: Any, sources: Sources) -> Sources:
    missing = imputer.missing_values
    if not (missing is None or missing != missing):
        raise UnsupportedModel(
            f"SimpleImputer(missing_values={missing!r}) is not supported: only NaN is a missing value"
        )
    names = list(getattr(imputer, "feature_names_in_", [f"x{place}" for place in range(len(sources))]))
    filled = [sources[names.index(name)] for name in imputer.get_feature_names_out(names) if name in names]
    indicators = [sources[place] for place in imputer.indicator_.features_] if imputer.add_indicator else []
    # What is not missing passes as it is.
    return filled + [replace(source, is_changed=True) for source in indicators]


def _one_hot(encoder: Any, sources: Sources) -> Sources:
    counts = encoder._n_features_outs
    encoded = _encoded(encoder, sources)
    return [source for source, n in zip(encoded, counts, strict=True) for _ in range(n)]


def _encoded(encoder: Any, sources: Sources) -> Sources:
    """One output per column, of the categories that the encoder saw."""
    return [
        replace(source, categories=source.categories or _plain(categories), is_changed=True)
        for source, categories in zip(sources, encoder.categories_, strict=True)
    ]


def _target_encoded(encoder: Any, sources: Sources) -> Sources:
    if encoder.target_type_ == "multiclass":
        raise UnsupportedModel("TargetEncoder for several classes is not supported: its columns come from all classes")
    return _encoded(encoder, sources)


def _plain(categories: Any) -> tuple[Any, ...]:
    """Categories as Python values; NaN is none of them, but a missing value."""
    values = np.asarray(categories).tolist()
    if any(value is None for value in values):
        raise UnsupportedModel("an encoder that learned None as a category is not supported: NaN is the missing value")
    return tuple(value for value in values if value == value)


def _binned(discretizer: Any, sources: Sources) -> Sources:
    if discretizer.encode != "ordinal":
        raise UnsupportedModel(
            f"KBinsDiscretizer(encode={discretizer.encode!r}) is not supported: a bin is between two cuts; "
            "expected encode='ordinal'"
        )
    return _monotone(discretizer, sources)


def _function(transformer: Any, sources: Sources) -> Sources:
    if transformer.func is None:
        return sources
    name = getattr(transformer.func, "__name__", repr(transformer.func))
    if transformer.func is not np.sqrt:
        raise UnsupportedModel(
            f"FunctionTransformer({name}) is not supported: it is not known to be monotone to the last bit"
        )
    return _monotone(transformer, sources)


def _selected(selector: Any, sources: Sources) -> Sources:
    return [source for source, kept in zip(sources, selector.get_support(), strict=True) if kept]


def _piped(pipeline: Any, sources: Sources) -> Sources:
    for _, step in pipeline.steps:
        sources = sources_of(step, sources)
    return sources


def _side_by_side(transformer: Any, sources: Sources) -> Sources:
    """Columns of a ColumnTransformer stand in the order of its parts."""
    names = list(map(str, getattr(transformer, "feature_names_in_", ())))
    parts: list[Sources] = [
        sources_of(part, [sources[place] for place in _places(columns, names, len(sources))])
        for _, part, columns in transformer.transformers_
    ]
    return [source for part in parts for source in part]


def _places(columns: Any, names: Sequence[str], n_columns: int) -> list[int]:
    """The positions that a ColumnTransformer's columns stand for."""
    if isinstance(columns, str):
        return [names.index(columns)]
    if isinstance(columns, slice):
        ends = [names.index(end) if isinstance(end, str) else end for end in (columns.start, columns.stop)]
        # A slice of names holds its end.
        stop = ends[1] + 1 if isinstance(columns.stop, str) else ends[1]
        return list(range(n_columns)[slice(ends[0], stop, columns.step)])
    listed = np.atleast_1d(np.asarray(list(np.atleast_1d(columns))))
    if listed.dtype == bool:
        return np.flatnonzero(listed).tolist()
    return [
        names.index(column) if isinstance(column, str) else range(n_columns)[int(column)] for column in listed.tolist()
    ]


_BY_NAME: dict[str, Callable[[Any, Sources], Sources]] = {
    "StandardScaler": _monotone,
    "MinMaxScaler": _monotone,
    "RobustScaler": _monotone,
    "MaxAbsScaler": _monotone,
    "SimpleImputer": _imputed,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _encoded,
    "TargetEncoder": _target_encoded,
    "KBinsDiscretizer": _binned,
    "FunctionTransformer": _function,
    "SelectorMixin": _selected,
    "Pipeline": _piped,
    "ColumnTransformer": _side_by_side,
}
