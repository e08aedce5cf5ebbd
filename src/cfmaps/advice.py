"""What to do about an answer: alternatives, levers, coalitions and ladders, all proven."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check, _core, alternatives, levers
from cfmaps._codes import Coder
from cfmaps._shapes import LikeOneRow, LikeRows
from cfmaps.alternatives import Alternatives
from cfmaps.constraints import with_margin
from cfmaps.distance import Distance, FloatArray, Norm
from cfmaps.explanation import Explanation, Explanations, Question
from cfmaps.features import Features
from cfmaps.levers import Lever, Levers
from cfmaps.partition import Partition
from cfmaps.recourse import Recourse
from cfmaps.targets import Interval
from cfmaps.views import View, Views


class Advice(ABC):
    """The questions to a map that have more than one answer."""

    features: Features
    partition: Partition
    _names: Sequence[str] | None
    _coder: Coder
    _views: Views

    @abstractmethod
    def _explainer(
        self, distance: Norm | Distance, weights: Any, constraints: Any = (), view: View | None = None
    ) -> tuple[Distance, _core.Explainer | Recourse]: ...

    @abstractmethod
    def _question(
        self,
        measure: Distance,
        recourse: Recourse | None,
        view: View | None,
        rows: FloatArray,
        grid_rows: FloatArray,
        codes: npt.NDArray[np.int32],
        shape: LikeRows,
    ) -> Question: ...

    @abstractmethod
    def _view_of(self, target: Interval | None) -> Callable[[Partition], View]: ...

    @abstractmethod
    def _code(self, label: Any, name: str = "target") -> int: ...

    def alternatives(
        self,
        x: Any,
        *,
        target: Any = None,
        k: int | None = 5,
        tolerance: float | None = None,
        diverse_by: str | None = None,
        separation: float | None = None,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
    ) -> Alternatives:
        """The best answers of one row, in order, each proven to be the next.

        An answer counts if no part of its change can be taken back: no other answer lies
        between it and the row in every feature. ``k=None, tolerance=0`` lists all optima.

        Parameters
        ----------
        x, target, distance, weights, constraints, robust, time_limit
            See `explain`; the time is for each step of the search.
        k : int, optional
            At most so many; None for all within the tolerance.
        tolerance : float, optional
            No answer is farther than ``1 + tolerance`` times the optimum.
        diverse_by : {"features", "region", "distance"}, optional
            Leaves out what is like a better answer: it changes the same features, lies in
            the same region of the model, or is nearer to it than ``separation``.
        separation : float, optional
            For ``diverse_by="distance"``; the distance of the optimum when not given.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from cfmaps import CounterfactualMap
        >>> model = DecisionTreeClassifier().fit([[0, 0], [1, 0], [0, 1], [1, 1]], [0, 1, 1, 1])
        >>> found = CounterfactualMap(model).alternatives([0.25, 0.0], k=None, tolerance=1)
        >>> [answer.counterfactual.tolist() for answer in found]
        [[0.5000000596046448, 0.0], [0.25, 0.5000000596046448]]
        """
        asked = self._single(x, target, distance, weights, constraints, robust)
        recourse, grid, code = asked.recourse, asked.grid, asked.code
        return alternatives.find(
            recourse,
            lambda n: self._repeated(asked, n),
            grid,
            code,
            k=k,
            tolerance=tolerance,
            diverse_by=diverse_by,
            separation=separation,
            seconds=_check.seconds(time_limit, "time_limit"),
        )

    def levers(
        self,
        x: Any,
        *,
        target: Any = None,
        max_features: int = 3,
        among: Sequence[str] | None = None,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
        n_threads: int | None = None,
    ) -> Levers:
        """Every minimal set of features that suffices to change the label, with its cheapest change.

        Parameters
        ----------
        x, target, distance, weights, constraints, robust
            See `explain`.
        max_features : int
            The size of the largest sets.
        among : sequence of str, optional
            The features that may change; all by default.
        time_limit : float, optional
            Seconds for each set.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from cfmaps import CounterfactualMap
        >>> model = DecisionTreeClassifier().fit([[0, 0], [1, 0], [0, 1], [1, 1]], [0, 0, 0, 1])
        >>> print(CounterfactualMap(model).levers([0.25, 0.0]))
        x0, x1: 0.75
        2 sets proven not to suffice
        """
        asked = self._single(x, target, distance, weights, constraints, robust)
        recourse, grid, code = asked.recourse, asked.grid, asked.code
        axes = range(len(self.features)) if among is None else self._axes_of(among, "among")
        most = min(_check.whole(max_features, "max_features", 1), len(axes))
        seconds, threads = _check.seconds(time_limit, "time_limit"), _check.threads(n_threads, "n_threads")
        found = levers.minimal_sets(recourse, grid, code, axes, most, seconds, threads)
        explanations = Explanations(self._repeated(asked, len(found.sets)), found.replies)
        names = [tuple(self.features.names[axis] for axis in one) for one in found.sets]
        pairs = list(zip(names, explanations, strict=True))
        sufficient = [Lever(one, e) for one, e in pairs if e.status in ("optimal", "feasible")]
        sufficient.sort(key=lambda lever: (len(lever.features), lever.explanation.distance))
        return Levers(
            tuple(sufficient),
            tuple(one for one, e in pairs if e.status == "infeasible"),
            tuple(one for one, e in pairs if e.status == "unknown"),
        )

    def coalitions(
        self,
        x: Any,
        coalitions: Mapping[str, Sequence[str]],
        *,
        target: Any = None,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
        n_threads: int | None = None,
    ) -> dict[str, Explanation]:
        """The best change within each named set of features, all others frozen; proven infeasible where none is.

        Parameters
        ----------
        coalitions : mapping of name to features
        x, target, distance, weights, constraints, robust, time_limit
            See `explain`; the time is for each coalition.
        """
        asked = self._single(x, target, distance, weights, constraints, robust)
        recourse, grid, code = asked.recourse, asked.grid, asked.code
        if not isinstance(coalitions, Mapping) or not coalitions:
            raise TypeError(f"coalitions must be a mapping of names to features, got {coalitions!r}")
        sets = [tuple(self._axes_of(names, f"coalitions[{name!r}]")) for name, names in coalitions.items()]
        seconds, threads = _check.seconds(time_limit, "time_limit"), _check.threads(n_threads, "n_threads")
        found = levers.within_sets(recourse, grid, code, sets, seconds, threads)
        explanations = Explanations(self._repeated(asked, len(sets)), found.replies)
        return dict(zip(coalitions, explanations, strict=True))

    def _axes_of(self, names: Sequence[str], what: str) -> list[int]:
        known = self.features.names
        names = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise ValueError(f"{what} must be features among {list(known)}, got {names}")
        return sorted({known.index(name) for name in names})

    def ladder(
        self,
        x: Any,
        targets: Sequence[Any],
        *,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
    ) -> list[Explanation]:
        """The smallest change to each of several targets: rating grades, or bands of a probability.

        Parameters
        ----------
        x, distance, weights, constraints, robust, time_limit
            See `explain`; the time is for each target.
        targets : sequence of labels, Interval, Probability
        """
        options = {"distance": distance, "weights": weights, "constraints": constraints, "robust": robust}
        return [self.explain(x, target=target, **options, time_limit=time_limit) for target in targets]

    @abstractmethod
    def explain(
        self,
        x: Any,
        *,
        target: Any = None,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
    ) -> Explanation: ...

    def _repeated(self, asked: "_Asked", n: int) -> Question:
        """The question that several answers to one row belong to."""
        repeated, on_grid = (np.repeat(one[np.newaxis], n, axis=0) for one in (asked.row, asked.grid))
        codes = np.full(n, asked.code, dtype=np.int32)
        shape = LikeOneRow(asked.x)
        return self._question(asked.recourse.distance, asked.recourse, asked.view, repeated, on_grid, codes, shape)

    def _single(
        self, x: Any, target: Any, distance: Norm | Distance, weights: Any, constraints: Any, robust: Any
    ) -> "_Asked":
        if self._coder:
            raise ValueError("this is not answered yet where features have categories of their own")
        row = _check.row(x, "x", self.features.n_columns, columns=self._names)
        self.features.check_rows(row[np.newaxis])
        interval = target if isinstance(target, Interval) else None
        view, partition = None, self.partition
        if interval is not None:
            pattern = self._views.missingness.of(np.isnan(row))
            view = self._views.get(pattern, interval, self._view_of(interval))
            partition = view.partition
        measure, found = self._explainer(distance, weights, with_margin(constraints, robust), view)
        recourse = found if isinstance(found, Recourse) else Recourse(partition, measure, ())
        return _Asked(recourse, view, x, row, partition.lattice.round(row[np.newaxis])[0], self._code(target))


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A question about one row under rules: who answers it, the row as it came and on the grid, and its target."""

    recourse: Recourse
    view: View | None
    x: Any
    row: FloatArray
    grid: FloatArray
    code: int
