"""The trees inside scikit-learn's models, as flat arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.errors import UnsupportedModel

_TREES = {"DecisionTreeClassifier", "ExtraTreeClassifier", "DecisionTreeRegressor", "ExtraTreeRegressor"}


def families(model: Any) -> set[str]:
    """The names of a model's classes that scikit-learn defines."""
    return {parent.__name__ for parent in type(model).__mro__ if parent.__module__.startswith("sklearn.")}


def fitted(model: Any, attribute: str) -> Any:
    """An attribute that fitting makes."""
    if not hasattr(model, attribute):
        raise ValueError(f"model must be fitted, got a {type(model).__name__} that is not: call fit first")
    return getattr(model, attribute)


def names_of(model: Any) -> tuple[str, ...] | None:
    """The columns' names, where the model was fitted on a frame."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def expect_trees(estimators: list[Any], owner: Any) -> None:
    """Refuses a model whose parts are no single trees: its sum is none of leaves."""
    for estimator in estimators:
        if not families(estimator) & _TREES:
            raise UnsupportedModel(
                f"{type(owner).__name__} of {type(estimator).__name__} is not supported: expected single trees in it"
            )


def flat(trees: list[Any]) -> tuple[dict[str, Any], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The nodes of all trees as an `Ensemble` wants them, what each adds, and how many each tree has.

    A tree's state is its memory as it is; joining bytes is ten times faster than joining records.
    """
    states = [tree.__getstate__() for tree in trees]
    parts = [state["nodes"] for state in states]
    value = np.concatenate([state["values"] for state in states])[:, 0, :]
    nodes = np.frombuffer(b"".join(parts), dtype=parts[0].dtype)
    counts = np.array([len(own) for own in parts])
    roots = np.cumsum(counts) - counts
    left, right = nodes["left_child"], nodes["right_child"]
    leaf = left < 0
    shift = np.repeat(roots, counts)
    fields = {
        "feature": np.where(leaf, -1, nodes["feature"]),
        "threshold": np.where(leaf, 0.0, nodes["threshold"]),
        "left": np.where(leaf, -1, left + shift),
        "right": np.where(leaf, -1, right + shift),
        "roots": roots,
        "missing_left": nodes["missing_go_to_left"],
    }
    return fields, value, counts


def takes_missing(estimator: Any) -> bool:
    """Whether a tree routes NaN: which trees do depends on the version, the splitter and the criterion."""
    supports = getattr(estimator, "_support_missing_values", None)
    return supports is not None and bool(supports(np.empty((1, 1))))
