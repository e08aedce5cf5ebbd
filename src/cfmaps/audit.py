"""Recourse of a whole population, with proof: what a change costs, who has none, and whether groups differ."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _check, _report, _tables
from cfmaps._tables import shown
from cfmaps.explanation import Change, Explanations

FloatArray: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.str_]

_LEVEL = 95.0


def audit(
    cfmap: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[str, Any] | None = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
    **question: Any,
) -> "Audit":
    """Ask for the smallest change of every row that needs one, and compare groups of rows.

    Parameters
    ----------
    cfmap : CounterfactualMap
    X : rows or frame
    target : label, optional
        What everybody should get: rows that have it already need nothing. None asks every
        row for the nearest other label.
    groups : mapping of name to sequence, optional
        A value per row of ``X``: sex, age group and the like.
    n_bootstrap : int
        Samples behind each 95 % interval.
    seed : int
        Of the bootstrap.
    **question
        What else `CounterfactualMap.explain_many` takes: distance, weights, constraints, time_limit.

    Examples
    --------
    >>> import cfmaps
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cfmap = cfmaps.CounterfactualMap(DecisionTreeClassifier(max_depth=3).fit(X, y))
    >>> found = audit(cfmap, X, target=0, groups={"kind": y})
    >>> found.n_rows, found.n_in_need, found.summary()["without_recourse"]
    (150, 100, 0)
    """
    n_bootstrap = _check.whole(n_bootstrap, "n_bootstrap", 1)
    free = {name: value for name, value in question.items() if name != "constraints"}
    boundary = cfmap.explain_many(X, **free)
    needs = np.ones(len(boundary), dtype=bool) if target is None else boundary.sources != target
    same = target is None and free == question
    asked = boundary if same else cfmap.explain_many(_rows(X, needs), target=target, **question)
    members = {name: _members(name, values, len(boundary))[needs] for name, values in (groups or {}).items()}
    return Audit(cfmap, target, question, asked, np.flatnonzero(needs), boundary, members, n_bootstrap, seed)


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """What `audit` found.

    Attributes
    ----------
    cfmap, target, question
        What was asked, for what, and how.
    explanations : Explanations
        Of the rows that need a change.
    rows : int array
        Where these rows stand in what was passed.
    boundary : Explanations
        The nearest other label of every row, whatever the constraints: how far the decision boundary is.
    groups : dict of str arrays
        The group of each row that needs a change.
    """

    cfmap: Any
    target: Any
    question: dict[str, Any]
    explanations: Explanations
    rows: npt.NDArray[np.intp]
    boundary: Explanations
    groups: dict[str, Labels]
    n_bootstrap: int
    seed: int

    @property
    def n_rows(self) -> int:
        """Rows that were passed."""
        return len(self.boundary)

    @property
    def n_in_need(self) -> int:
        """Rows that do not have the target yet."""
        return len(self.rows)

    def summary(self) -> dict[str, Any]:
        """Counts and costs over all rows, as plain values."""
        statuses = Counter(self.explanations.statuses.tolist())
        costs = _finite(self.explanations.distances)
        numbers = [len(one.changes()) for one in self.explanations if np.isfinite(one.distance)]
        without = statuses["infeasible"]
        return {
            "rows": self.n_rows,
            "in_need": self.n_in_need,
            "proven": statuses["optimal"] + without,
            "stopped_early": statuses["feasible"] + statuses["unknown"],
            "without_recourse": without,
            "share_without_recourse": without / self.n_in_need if self.n_in_need else None,
            "mean_cost": _mean(costs),
            "median_cost": _quantile(costs, 0.5),
            "highest_cost": _quantile(costs, 1.0),
            "mean_changes": _mean(np.array(numbers, dtype=float)),
            "median_distance_to_boundary": _quantile(_finite(self.boundary.distances), 0.5),
        }

    def by_group(self, name: str, *, reference: str | None = None) -> list[dict[str, Any]]:
        """Per group: how many have no recourse, what it costs the others, and how that compares.

        ``ratio`` and ``gap`` hold the group's mean cost against that of ``reference`` (by
        default the largest group), each with the ends of a 95 % bootstrap interval.
        """
        if name not in self.groups:
            raise ValueError(f"name must be one of {list(self.groups)}, got {name!r}")
        members, distances = self.groups[name], self.explanations.distances
        sizes = Counter(members.tolist())
        reference = reference or max(sorted(sizes), key=lambda group: sizes[group], default="")
        if sizes and reference not in sizes:
            raise ValueError(f"reference must be one of {sorted(sizes)}, got {reference!r}")
        costs = {group: _finite(distances[members == group]) for group in sorted(sizes)}
        means = {group: self._resampled(costs[group], place) for place, group in enumerate(costs)}
        return [
            self._counted(group, members == group)
            | {"mean_cost": _mean(costs[group]), "median_cost": _quantile(costs[group], 0.5)}
            | _interval("mean", means[group])
            | _compared(costs[group], costs[reference], means[group], means[reference], group == reference)
            for group in costs
        ]

    def changes(self) -> list[dict[str, Any]]:
        """The features that change, most frequent first: in how many answers, which way, and by how much."""
        found: dict[str, list[Change]] = {}
        for one in self.explanations:
            for change in one.changes():
                found.setdefault(change.feature, []).append(change)
        ordered = sorted(found.items(), key=lambda item: -len(item[1]))
        return [_frequency(feature, changes, self.n_in_need) for feature, changes in ordered]

    def most_flippable(self, k: int = 10) -> list[dict[str, Any]]:
        """The rows nearest to another decision, nearest first."""
        order = np.argsort(self.boundary.distances, kind="stable")[: _check.whole(k, "k", 0)]
        cases = ((int(index), self.boundary[int(index)]) for index in order)
        return [
            {
                "row": row,
                "from": one.source,
                "to": one.target,
                "distance": one.distance,
                "changes": _in_words(one.changes()),
            }
            for row, one in cases
            if np.isfinite(one.distance)
        ]

    def to_frame(self) -> Any:
        """One row per row in need: its place, status, labels, cost, number of changes and groups."""
        many = self.explanations
        columns = {
            "row": self.rows,
            "status": many.statuses,
            "source": many.sources,
            "target": many.targets,
            "distance": many.distances,
            "lower_bound": many.lower_bounds,
            "n_changes": np.array([len(one.changes()) for one in many], dtype=np.int64),
        }
        return _tables.frame(columns | self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return {
            "target": _plain(self.target),
            "summary": self.summary(),
            "groups": {name: self.by_group(name) for name in self.groups},
            "changes": self.changes(),
            "most_flippable": [{name: _plain(value) for name, value in case.items()} for case in self.most_flippable()],
        }

    def report(self, path: str | os.PathLike[str], *, title: str = "Recourse audit") -> None:
        """Write one HTML page with all of it and its pictures (matplotlib): no script, nothing to fetch."""
        page = _report.page(self, title)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    def _resampled(self, costs: FloatArray, place: int) -> FloatArray:
        """Mean costs of bootstrap samples; none without costs."""
        if not len(costs):
            return np.empty(0)
        rng = np.random.default_rng([self.seed, place])
        return np.array([costs[rng.integers(len(costs), size=len(costs))].mean() for _ in range(self.n_bootstrap)])

    def _counted(self, group: str, inside: npt.NDArray[np.bool_]) -> dict[str, Any]:
        statuses = Counter(self.explanations.statuses[inside].tolist())
        rows, without = int(inside.sum()), statuses["infeasible"]
        stopped = statuses["feasible"] + statuses["unknown"]
        counts = {"group": group, "rows": rows, "stopped_early": stopped, "without_recourse": without}
        return counts | {"share_without_recourse": without / rows}

    def __repr__(self) -> str:
        found = self.summary()
        return (
            f"Audit({found['rows']} rows, {found['in_need']} in need, {found['without_recourse']} without recourse, "
            f"mean cost {shown(found['mean_cost'])})"
        )

    def _repr_html_(self) -> str:
        return _report.tables(self)


def _rows(X: Any, which: npt.NDArray[np.bool_]) -> Any:
    import narwhals as nw

    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True)[np.flatnonzero(which).tolist()].to_native()
    return np.asarray(X)[which]


def _members(name: str, values: Any, n_rows: int) -> Labels:
    labels = np.asarray([shown(value) for value in np.asarray(values).tolist()])
    if len(labels) != n_rows:
        raise ValueError(f"groups[{name!r}] must have a value for each of the {n_rows} rows, got {len(labels)}")
    return labels


def _frequency(feature: str, changes: list[Change], n_rows: int) -> dict[str, Any]:
    moves = [
        c.after - c.before for c in changes if isinstance(c.before, int | float) and isinstance(c.after, int | float)
    ]
    usual = Counter((shown(change.before), shown(change.after)) for change in changes).most_common(1)[0]
    return {
        "feature": feature,
        "rows": len(changes),
        "share": len(changes) / n_rows,
        "up": sum(move > 0 for move in moves),
        "down": sum(move < 0 for move in moves),
        "median_move": _quantile(np.array(moves, dtype=float), 0.5) if moves else None,
        "most_often": f"{usual[0][0]} -> {usual[0][1]} ({usual[1]})" if usual[1] > 1 else None,
    }


def _in_words(changes: list[Change]) -> str:
    return "; ".join(f"{change.feature} {shown(change.before)} -> {shown(change.after)}" for change in changes)


def _finite(values: FloatArray) -> FloatArray:
    return values[np.isfinite(values)]


def _compared(
    costs: FloatArray, others: FloatArray, means: FloatArray, other_means: FloatArray, same: bool
) -> dict[str, Any]:
    """Ratio and gap of the means of two groups; None where there is nothing to compare."""
    nothing = dict.fromkeys(("ratio", "ratio_low", "ratio_high", "gap", "gap_low", "gap_high"))
    if same or not len(costs) or not len(others) or not others.mean() > 0:
        return nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = _interval("ratio", means / other_means)
    mean, other = float(costs.mean()), float(others.mean())
    return {"ratio": mean / other} | ratios | {"gap": mean - other} | _interval("gap", means - other_means)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: FloatArray, share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None


def _interval(name: str, samples: FloatArray) -> dict[str, float | None]:
    samples = _finite(samples)
    if not len(samples):
        return {f"{name}_low": None, f"{name}_high": None}
    low, high = np.percentile(samples, [(100 - _LEVEL) / 2, (100 + _LEVEL) / 2])
    return {f"{name}_low": float(low), f"{name}_high": float(high)}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
