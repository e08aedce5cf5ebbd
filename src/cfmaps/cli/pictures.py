"""The pictures that ``cfmaps plot`` draws."""

from typing import Any

import numpy as np
import numpy.typing as npt

import cfmaps

PLOTS = ("waterfall", "decision", "counterfactual", "distance", "histogram", "features", "changes", "growth")
_SLICES = ("decision", "counterfactual", "distance")


def draw(
    cfmap: cfmaps.CounterfactualMap,
    X: npt.NDArray[np.float64],
    kind: str,
    row: int,
    columns: tuple[str, str] | None,
    question: dict[str, Any],
) -> Any:
    """The axes of a picture of one case, or of all rows."""
    import matplotlib

    matplotlib.use("Agg")
    from cfmaps import plot

    if kind in _SLICES:
        if columns is None:
            raise ValueError(f"--kind {kind} needs --columns NAME NAME")
        asked = {name: value for name, value in question.items() if name not in ("weights", "time_limit")}
        return plot.plane(cfmap, X[row], columns, show=kind, **asked)
    if kind == "waterfall":
        return plot.waterfall(cfmap.explain(X[row], **question))
    if kind == "growth":
        return plot.growth(cfmap, X, **question)
    drawers = {"histogram": plot.distances, "features": plot.changed_features, "changes": plot.costs_by_changes}
    return drawers[kind](cfmap.explain_many(X, **question))
