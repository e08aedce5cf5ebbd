"""The front of the house: a model in, proven smallest changes out."""

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check, _core, store, targets
from cfmaps._codes import Coder, InCategories
from cfmaps._shapes import LikeRow, LikeRows, LikeSome
from cfmaps.advice import Advice
from cfmaps.box_tree import BoxTree
from cfmaps.clauses import parse
from cfmaps.constraints import Constraint, with_margin
from cfmaps.distance import Distance, FloatArray, Norm
from cfmaps.ensemble import Ensemble
from cfmaps.explanation import Explanation, Explanations, Question
from cfmaps.features import Features, OneHot
from cfmaps.joined import Joined
from cfmaps.lattice import Lattice
from cfmaps.partition import Growth, Partition, Progress
from cfmaps.readers import read
from cfmaps.readers.outputs import Outputs, native_outputs, native_predict, native_scores
from cfmaps.recourse import Recourse
from cfmaps.targets import Interval
from cfmaps.verify import is_copy
from cfmaps.verify import verify as check
from cfmaps.views import View, Views, features_of

_MOST_EXPLAINERS = 16


class CounterfactualMap(Advice):
    """Globally optimal counterfactuals of one tree model.

    Returns at once: queries are answered cold, each leaves the map a little larger, and
    `build` completes it. Any number of threads may ask while it grows; answers do not
    depend on what has grown.

    Parameters
    ----------
    model : estimator, Booster, path or Ensemble
        A fitted tree model of scikit-learn (trees, forests, GradientBoosting,
        HistGradientBoosting, AdaBoost, Bagging; classifiers and regressors), XGBoost,
        LightGBM or CatBoost, or a file that one of the last three wrote: see
        `cfmaps.readers.read`.
    features : Features, optional
        What the columns are. Without it every column is a number, free on the whole line.
    votes : {"soft", "hard"}
        How a forest decides: as its ``predict`` does, or by the majority of its trees with
        ties to the smallest class.
    data : rows or frame, optional
        Typical rows, for distances weighted by their spread.
    verify : bool or "auto"
        Whether the model is first asked to predict rows on and beside its cuts, to be refused
        should its trees say otherwise. "auto" does so once for each boosted or bagged model;
        trees and forests of scikit-learn are copied as they are. Whatever this is,
        ``predict`` has the last word on every answer.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, y)
    >>> cfmap = CounterfactualMap(model)
    >>> e = cfmap.explain(X[0], target=1)
    >>> e.status, model.predict([e.counterfactual])[0]
    ('optimal', np.int64(1))
    """

    _model: Any  # alive, to be asked for its outputs

    def __init__(
        self,
        model: Any,
        *,
        features: Features | None = None,
        votes: str = "soft",
        data: Any = None,
        verify: bool | str = "auto",
    ) -> None:
        if verify not in (True, False, "auto"):
            raise ValueError(f"verify must be True, False or 'auto', got {verify!r}")
        ensemble = read(model, votes=votes)
        if not isinstance(features, Features | None):
            raise TypeError(f"features must be a cfmaps.Features, got {type(features).__name__}")
        names = ensemble.feature_names if features is None else features.columns
        features = features or features_of(ensemble)
        self._set_up(
            Partition(Lattice.of(ensemble, features)),
            names,
            data,
            native_predict(model, ensemble, votes),
            _origin(model, votes),
        )
        if verify is True or (verify == "auto" and not is_copy(model)):
            check(model, ensemble, self._predict, native_scores(model, ensemble))
        self._model = _asked_for_outputs(model, votes)

    def _set_up(
        self,
        partition: Partition,
        names: Sequence[str] | None,
        data: Any,
        predict: Outputs,
        origin: dict[str, Any],
    ) -> None:
        self.partition = partition
        self.ensemble: Ensemble = partition.lattice.ensemble
        self.features = partition.lattice.features
        # Columns that nobody named go by x0, x1, ... in answers, but a frame may call them what it likes.
        self._names = names
        self._coder = Coder(self.features)
        self._views = Views(self.ensemble, self.features)
        self._data = None if data is None else self._matrix(data, "data")
        self._predict = predict
        self._model = None
        self._origin = origin
        self._codes = {label: code for code, label in enumerate(self.ensemble.classes.tolist())}
        self._explainers: OrderedDict[Any, tuple[Distance, _core.Explainer | Recourse]] = OrderedDict()
        self._lock = Lock()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a file, as far as it has grown.

        The file appears whole or not at all and is never changed afterwards; `load` opens
        it. It holds the model's trees and the columns' meaning, but neither the model
        object nor the ``data``.
        """
        store.save(path, self.partition, self._origin | {"named": self._names is not None})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, model: Any = None, data: Any = None) -> "CounterfactualMap":
        """Open a map that `save` wrote; it answers at once and goes on growing, in memory alone.

        Parameters
        ----------
        path : path
        model : estimator, optional
            The model that the map was made from: its own ``predict`` then confirms answers.
            Without it the saved trees do, which compute what ``predict`` computes bit for bit.
        data : rows or frame, optional
            As for a new map; a file holds no data.

        Raises
        ------
        CorruptMap
            When the file is cut, changed or no map; for a part that only a later query
            needs, then.
        ValueError
            When the file was made from another model than ``model``.

        Examples
        --------
        >>> import cfmaps, tempfile
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> folder = tempfile.TemporaryDirectory()
        >>> CounterfactualMap(DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])).save(folder.name + "/m.cfmap")
        >>> print(cfmaps.load(folder.name + "/m.cfmap").explain([0.25]))
        no -> yes at distance 0.25 (optimal)
          feature   now     instead
          x0       0.25  0.50000006
        >>> folder.cleanup()
        """
        saved = store.load(path)
        votes = saved.about["votes"]
        if model is not None and store.digest(read(model, votes=votes)) != saved.about["ensemble_sha256"]:
            raise ValueError(
                f"model must be the one that {path} was made from, got a {type(model).__name__} that differs"
            )
        cfmap = cls.__new__(cls)
        names = saved.features.columns if saved.about["named"] else None
        predict = native_predict(saved.ensemble if model is None else model, saved.ensemble, votes)
        cfmap._set_up(saved.partition, names, data, predict, saved.about)
        cfmap._model = _asked_for_outputs(model, votes)
        return cfmap

    @property
    def has_names(self) -> bool:
        """Whether somebody named the columns; otherwise they go by x0, x1, ..."""
        return self._names is not None

    @property
    def origin(self) -> dict[str, Any]:
        """Where the map comes from: model, library and its version, and how votes are counted."""
        return dict(self._origin)

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The model's labels."""
        return self.ensemble.classes

    @property
    def is_complete(self) -> bool:
        """Whether every box of the map has its label, so that queries only walk it."""
        return self.partition.is_complete

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
    ) -> Explanation:
        """The smallest change of one row that the model classifies as ``target``.

        Parameters
        ----------
        x : array, list, series or one-row frame
            The row, in the model's columns.
        target : label or Interval, optional
            The label wanted; None stands for any label but the row's own. An `Interval` is
            about the model's output, a number or a probability. A row that has what is
            wanted already is its own answer, at distance 0.
        distance : {"l1", "l2", "linf"}, number >= 1, or Distance
        weights : array, mapping or {"range", "mad", "std"}, optional
            See `Distance.resolve`; spreads are those of the map's ``data``.
        constraints : sequence of constraints, text or JSON, optional
            What the answer must keep, exactly; see `cfmaps.constraints`. With them a row that
            has the label already is its own answer only if it keeps them, and "infeasible"
            comes with ``conflict``.
        robust : number or mapping of feature to number, optional
            The answer keeps its label wherever each number (or those named) moves by up to
            this much, within the limits of its feature.
        time_limit : float, optional
            Seconds after which the search stops with what it has: status "feasible" or
            "unknown", and a certified ``lower_bound``.

        Raises
        ------
        ValueError, TypeError
            A row, label, distance or weight that makes no sense for this model.
        """
        given, n_columns = x, self.features.n_columns
        if self._coder:
            x = self._coder.encode(x, "x")
        row = _check.row(x, "x", n_columns, columns=self._names, missing=self.ensemble.takes_missing)
        shape: LikeRows = InCategories(LikeRow(x), self._coder, given) if self._coder else LikeRow(x)
        codes = np.array([self._code(target)], dtype=np.int32)
        kept = with_margin(constraints, robust)
        return self._ask_views(row.reshape(1, -1), codes, target, distance, weights, kept, time_limit, 1, shape)[0]

    def explain_many(
        self,
        X: Any,
        *,
        target: Any = None,
        distance: Norm | Distance = "l1",
        weights: Any = None,
        constraints: Any = (),
        robust: Any = None,
        time_limit: float | None = None,
        n_threads: int | None = None,
    ) -> Explanations:
        """The smallest changes of many rows; see `explain`.

        Parameters
        ----------
        X : array or frame (pandas, polars) of shape (n_rows, n_columns)
        target : label, sequence of labels, or Interval, optional
            One for all rows, or a label per row.
        time_limit : float, optional
            Seconds for each row.
        n_threads : int, optional
            All cores by default.
        """
        given = X
        if self._coder:
            X = self._coder.encode(X, "X")
        rows = _check.matrix(X, "X", self.features.n_columns, columns=self._names, missing=self.ensemble.takes_missing)
        threads = min(_check.threads(n_threads, "n_threads"), len(rows))
        shape: LikeRows = InCategories(LikeRows(X), self._coder, given) if self._coder else LikeRows(X)
        codes = self._codes_of(target, len(rows))
        kept = with_margin(constraints, robust)
        return self._ask_views(rows, codes, target, distance, weights, kept, time_limit, threads, shape)

    def build(
        self,
        *,
        max_nodes: int | None = None,
        max_memory: int | None = None,
        time_limit: float | None = None,
        n_threads: int | None = None,
        progress: bool | Progress = False,
        target: Interval | None = None,
    ) -> Growth:
        """Grow the whole map now, so that every query only walks it.

        Parameters
        ----------
        max_nodes, max_memory, time_limit : number, optional
            Budgets of nodes, bytes and seconds. What they leave open still answers, and
            `build` may be called again.
        n_threads : int, optional
            All cores by default.
        progress : bool or callable
            True writes a line to standard error; a callable gets the share done and the
            number of nodes now and then, and may raise to end the build, as Ctrl-C does.
        target : Interval, optional
            A target on the output has a map of its own: grow that one.

        Returns
        -------
        Growth
            Whether the map is complete, and which budget ended the build otherwise.
        """
        partition = self.partition
        if target is not None:
            complete_rows = self._views.missingness.of(np.zeros(self.features.n_columns, dtype=bool))
            partition = self._views.get(complete_rows, target, self._view_of(target)).partition
        return partition.build(
            max_nodes=max_nodes,
            max_memory=max_memory,
            time_limit=time_limit,
            n_threads=n_threads,
            progress=progress,
        )

    def box_tree(self, label: Any, *, leaf_size: int = 64) -> BoxTree:
        """The paper's index: a KD-tree over the boxes of one class of the complete map."""
        if not self.is_complete:
            raise ValueError("the map is not complete: call build() first")
        if label is None:
            raise ValueError(f"label must be one of the model's labels {list(self._codes)}, got None")
        placed = zip(self.features, self.partition.lattice.categorical, strict=True)
        coded = next((entry.name for entry, by_sets in placed if by_sets and not isinstance(entry, OneHot)), None)
        if coded is not None:
            raise ValueError(f"a box tree measures between numbers: feature {coded!r} has categories or missing values")
        return BoxTree.of_class(self.partition, self._code(label, "label"), leaf_size=leaf_size)

    def _matrix(self, X: Any, name: str) -> FloatArray:
        encoded = self._coder.encode(X, name) if self._coder else X
        return _check.matrix(encoded, name, self.features.n_columns, columns=self._names)

    def _ask_views(
        self,
        rows: FloatArray,
        codes: npt.NDArray[np.int32],
        target: Any,
        distance: Norm | Distance,
        weights: Any,
        constraints: Any,
        time_limit: float | None,
        n_threads: int,
        shape: LikeRows,
    ) -> Explanations:
        """Ask this map, or those of the rows' patterns of missing values and of a target on the output."""
        has_missing = self.ensemble.takes_missing and bool(np.isnan(np.vdot(rows, rows)))
        interval = target if isinstance(target, Interval) else None
        if not has_missing and interval is None:
            return self._ask(rows, codes, distance, weights, constraints, time_limit, n_threads, shape, None)
        missing = self._views.missingness.of(np.isnan(rows))
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        parts = []
        for k, pattern in enumerate(patterns):
            chosen = np.flatnonzero(which.ravel() == k)
            view = self._views.get(pattern, interval, self._view_of(interval))
            some = shape if len(chosen) == len(rows) else LikeSome(shape, chosen)
            asked = (rows[chosen], codes[chosen], distance, weights, constraints, time_limit, n_threads, some, view)
            answers = self._ask(*asked)
            parts.append((chosen, answers))
        if len(parts) == 1:
            return parts[0][1]
        first = parts[0][1].question
        whole = replace(first, rows=rows.copy(), grid_rows=self.partition.lattice.round(rows), shape=shape)
        return Joined(whole, parts)

    def _view_of(self, target: Interval | None) -> Callable[[Partition], View]:
        """What a view says of its answers: labels, or where an output lies."""
        if target is None:
            return lambda partition: View(partition, self.classes, self._predict)
        outputs = native_outputs(self._model, self.ensemble, target)

        def places(rows: FloatArray) -> npt.NDArray[Any]:
            return np.where(target.holds(outputs(rows)), "inside", "outside")

        return lambda partition: View(partition, partition.lattice.ensemble.classes, places, outputs)

    def _ask(
        self,
        rows: FloatArray,
        codes: npt.NDArray[np.int32],
        distance: Norm | Distance,
        weights: Any,
        constraints: Any,
        time_limit: float | None,
        n_threads: int,
        shape: LikeRows,
        view: View | None,
    ) -> Explanations:
        seconds = _check.seconds(time_limit, "time_limit")
        measure, explainer = self._explainer(distance, weights, constraints, view)
        self.features.check_rows(rows)
        grid_rows = (self.partition if view is None else view.partition).lattice.round(rows)
        replies = explainer.ask(grid_rows, codes, seconds, n_threads)
        recourse = explainer if isinstance(explainer, Recourse) else None
        return Explanations(self._question(measure, recourse, view, rows, grid_rows, codes, shape), replies)

    def _question(
        self,
        measure: Distance,
        recourse: Recourse | None,
        view: View | None,
        rows: FloatArray,
        grid_rows: FloatArray,
        codes: npt.NDArray[np.int32],
        shape: LikeRows,
    ) -> Question:
        partition = self.partition if view is None else view.partition
        lattice, region = partition.lattice, partition.region
        # What the caller does to its array later must not change what was asked.
        kept = (rows.copy(), grid_rows, shape)
        if view is None:
            return Question(lattice, measure, self.classes, self._predict, region, *kept, None, recourse, codes)
        return Question(lattice, measure, view.classes, view.predict, region, *kept, view.outputs, recourse, codes)

    def _explainer(
        self, distance: Norm | Distance, weights: Any, constraints: Any = (), view: View | None = None
    ) -> tuple[Distance, _core.Explainer | Recourse]:
        """The distance and constraints as the core wants them, kept for the next query that asks for the same."""
        explainers = self._explainers if view is None else view.explainers
        partition = self.partition if view is None else view.partition
        rules = constraints if isinstance(constraints, str | tuple) else tuple(constraints)
        asked = (distance, weights, rules)
        is_key = isinstance(distance, str | float | int) and (weights is None or isinstance(weights, str))
        is_key = is_key and not (rules and any(isinstance(rule, dict | list) for rule in rules))
        with self._lock:
            if is_key and asked in explainers:
                return explainers[asked]
        measure = Distance.resolve(distance, weights, self.features.columns, data=self._data)
        kept = tuple(parse(rules))
        prices = id(measure.prices) if measure.prices else None  # the measure that is kept keeps them alive
        key = (measure.p, None if measure.weights is None else measure.weights.tobytes(), prices, kept)
        with self._lock:
            found = explainers.get(key) or (measure, _made(partition, measure, kept))
            explainers[asked if is_key else key] = explainers[key] = found
            while len(explainers) > _MOST_EXPLAINERS:
                explainers.popitem(last=False)
        return found

    def _codes_of(self, target: Any, n_rows: int) -> npt.NDArray[np.int32]:
        if target is None or isinstance(target, str | bytes) or np.ndim(target) == 0:
            return np.full(n_rows, self._code(target), dtype=np.int32)
        if len(target) != n_rows:
            raise ValueError(f"target must be one label or one per row of X ({n_rows}), got {len(target)}")
        if any(isinstance(label, Interval) for label in target):
            raise ValueError("target must be labels or one Interval for all rows, got a sequence with an Interval")
        return np.array([self._code(label) for label in target], dtype=np.int32)

    def _code(self, label: Any, name: str = "target") -> int:
        if isinstance(label, Interval):
            return targets.INSIDE
        if self.ensemble.rule == "value":
            raise ValueError(f"{name} must be a cfmaps.Interval, as the model predicts a number, got {label!r}")
        if label is None:
            return -1
        if isinstance(label, np.ndarray) and label.ndim == 0:
            label = label.item()
        try:
            return self._codes[label]
        except (KeyError, TypeError):
            raise ValueError(f"{name} must be one of the model's labels {list(self._codes)}, got {label!r}") from None

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "growing"
        return f"CounterfactualMap({self.ensemble.n_trees} trees, {len(self.features)} features, {state})"

    def _repr_html_(self) -> str:
        from cfmaps._tables import html_of_map

        return html_of_map(self)


def _asked_for_outputs(model: Any, votes: str) -> Any:
    """The live model, where there is one that votes this way."""
    return None if votes == "hard" or isinstance(model, Ensemble) else model


def _origin(model: Any, votes: str) -> dict[str, Any]:
    if isinstance(model, str | os.PathLike):
        return {"model": os.path.basename(model), "library": "file", "library_version": None, "votes": votes}
    library = type(model).__module__.split(".")[0]
    version = getattr(sys.modules.get(library), "__version__", None)
    return {"model": type(model).__name__, "library": library, "library_version": version, "votes": votes}


def _made(partition: Partition, measure: Distance, constraints: tuple[Constraint, ...]) -> _core.Explainer | Recourse:
    if constraints or measure.prices:
        return Recourse(partition, measure, constraints)
    return partition.explainer(measure)
