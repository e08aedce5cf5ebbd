"""The call shape of dice-ml: ``from cfmaps.adapters import dice_ml`` in place of ``import dice_ml``.

What changes with the import: every answer is the global optimum and flips the model; rows are in the model's own
columns; ``method``, ``backend`` and the knobs of random and genetic search mean nothing, and are refused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cfmaps
from cfmaps import _tables
from cfmaps.features import Features


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a model, as in ``dice_ml.Data``.

    Parameters
    ----------
    dataframe : frame
        With the outcome in it.
    continuous_features : sequence of str
        Columns that may take any value.
    outcome_name : str
    features : Features, optional
        Everything cfmaps can know of the columns; without it columns that are not continuous
        keep to the values of the frame.
    """

    dataframe: Any
    continuous_features: Sequence[str]
    outcome_name: str
    features: Features | None = None

    def described(self) -> Features:
        """The features of the model's columns."""
        import narwhals as nw

        if self.features is not None:
            return self.features
        frame = nw.from_native(self.dataframe, eager_only=True).drop(self.outcome_name)
        others = [name for name in frame.columns if name not in self.continuous_features]
        return Features.from_frame(frame.to_native(), ordinal=others)


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted model, as in ``dice_ml.Model``."""

    model: Any
    backend: str = "sklearn"


@dataclass(frozen=True, slots=True)
class CounterfactualExample:
    """The answers to one row: ``test_instance_df`` and ``final_cfs_df`` are frames with the outcome."""

    test_instance_df: Any
    final_cfs_df: Any
    explanations: tuple[cfmaps.Explanation, ...]


@dataclass(frozen=True, slots=True)
class CounterfactualExplanations:
    """What ``generate_counterfactuals`` gives, a `CounterfactualExample` per row."""

    cf_examples_list: tuple[CounterfactualExample, ...]

    def to_json(self) -> str:
        """All answers as JSON."""
        examples = [[one.to_dict() for one in example.explanations] for example in self.cf_examples_list]
        return json.dumps(examples)

    def visualize_as_dataframe(self) -> Any:
        """All answers in one frame, in the order of the rows."""
        import narwhals as nw

        frames = [nw.from_native(one.final_cfs_df, eager_only=True) for one in self.cf_examples_list]
        return nw.concat(frames).to_native()


class Dice:
    """As ``dice_ml.Dice``, with answers that are optimal.

    Parameters
    ----------
    data_interface : Data
    model_interface : Model

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "pay": [1.0, 2.0, 3.0, 4.0], "good": [0, 0, 1, 1]})
    >>> model = DecisionTreeClassifier().fit(frame[["age", "pay"]], frame["good"])
    >>> explainer = Dice(Data(frame, ["age", "pay"], "good"), Model(model))
    >>> found = explainer.generate_counterfactuals(frame[["age", "pay"]][:1], desired_class="opposite")
    >>> int(found.cf_examples_list[0].final_cfs_df["good"].iloc[0])
    1
    """

    def __init__(self, data_interface: Data, model_interface: Model) -> None:
        self.data_interface = data_interface
        self.cfmap = cfmaps.CounterfactualMap(model_interface.model, features=data_interface.described())

    def generate_counterfactuals(
        self,
        query_instances: Any,
        total_CFs: int = 1,
        desired_class: Any = "opposite",
        features_to_vary: Any = "all",
        permitted_range: Mapping[str, Sequence[float]] | None = None,
        **question: Any,
    ) -> CounterfactualExplanations:
        """The smallest changes of some rows.

        Parameters
        ----------
        query_instances : frame
        total_CFs : int
            Answers per row: the smallest change, the next smallest, and so on.
        desired_class : label or "opposite"
            "opposite" is any other label.
        features_to_vary : "all" or sequence of str
            What may change; the rest is frozen.
        permitted_range : mapping of name to (low, high), optional
        **question
            What else `CounterfactualMap.explain` takes: distance, weights, time_limit, constraints.
        """
        import narwhals as nw

        frame = nw.from_native(query_instances, eager_only=True)
        asked = question | {
            "target": None if isinstance(desired_class, str) and desired_class == "opposite" else desired_class
        }
        kept = self._constraints(features_to_vary, permitted_range or {}) + list(asked.pop("constraints", ()))
        if kept:
            asked["constraints"] = kept
        rows = [frame[index : index + 1].to_native() for index in range(len(frame))]
        return CounterfactualExplanations(tuple(self._example(row, total_CFs, asked) for row in rows))

    def _constraints(self, features_to_vary: Any, permitted_range: Mapping[str, Sequence[float]]) -> list[Any]:
        names = self.cfmap.features.names
        varied = (
            set(names) if isinstance(features_to_vary, str) and features_to_vary == "all" else set(features_to_vary)
        )
        for name in sorted({*varied, *permitted_range} - set(names)):
            raise ValueError(f"features_to_vary and permitted_range name {name!r}, expected some of {list(names)}")
        frozen = [name for name in names if name not in varied]
        ranges = [cfmaps.Range(name, low, high) for name, (low, high) in permitted_range.items()]
        return ([cfmaps.Freeze(*frozen)] if frozen else []) + ranges

    def _example(self, row: Any, total: int, question: dict[str, Any]) -> CounterfactualExample:
        answers = tuple(self.cfmap.alternatives(row, k=total, **question))
        found = [one for one in answers if one.counterfactual is not None]
        given = self._with_outcome([np.asarray(row, dtype=np.float64)[0]], [answers[0].source])
        points = [np.asarray(one.counterfactual, dtype=np.float64).reshape(-1) for one in found]
        return CounterfactualExample(given, self._with_outcome(points, [one.target for one in found]), answers)

    def _with_outcome(self, points: Sequence[Any], labels: Sequence[Any]) -> Any:
        columns = self.cfmap.features.columns
        rows = np.reshape(points, (-1, len(columns)))
        outcome = {self.data_interface.outcome_name: np.asarray(labels)}
        return _tables.frame(dict(zip(columns, rows.T, strict=True)) | outcome, self.data_interface.dataframe)
