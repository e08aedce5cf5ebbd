"""What every system is asked: a forest of the study, and a thousand rows with the class each should get."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import ours
from datasets import DataSet, load, queries
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from cfmaps import CounterfactualMap, Distance


@dataclass(frozen=True, slots=True)
class Setting:
    """One forest of the study."""

    data: str
    trees: int = 100
    depth: int = 5
    seed: int = 0
    votes: str = "soft"

    @property
    def key(self) -> str:
        return f"{self.data}-t{self.trees}-d{self.depth}-s{self.seed}-{self.votes}"


class Problem:
    """The forest of a setting, fitted on 80 % of the rows, and the questions about it.

    ``rows`` are test rows, then uniform samples where the test set is too small; ``targets`` the label after the one
    the forest gives them (with two classes, the other one).
    """

    def __init__(self, setting: Setting, n_queries: int) -> None:
        self.setting = setting
        self.data = load(setting.data)
        split = train_test_split(self.data.rows, self.data.labels, test_size=0.2, random_state=setting.seed)
        self.train, test, self.train_labels, _ = split
        model = RandomForestClassifier(setting.trees, max_depth=setting.depth, random_state=setting.seed)
        self.model = model.fit(self.train, self.train_labels)
        if setting.votes == "hard":
            harden(self.model)
        self.rows = queries(self.data, test, n_queries, seed=setting.seed)
        codes = np.searchsorted(model.classes_, model.predict(self.rows))
        self.targets = model.classes_[(codes + 1) % len(model.classes_)]

    @cached_property
    def features(self):
        """What cfmaps is told about the columns."""
        return ours.columns(self.data)

    def optimum(self, norm: str, gap: float | None = None) -> np.ndarray:
        """The smallest distance of every row to its target; inf where the forest never answers so."""
        asked = CounterfactualMap(self.model, features=ours.columns(self.data, gap=gap))
        found = asked.explain_many(self.rows, target=self.targets, distance=norm, n_threads=1)
        assert set(found.statuses) <= {"optimal", "infeasible"}
        return np.where(found.statuses == "optimal", found.distances, np.inf)

    def judge(self, found: np.ndarray, norm: str, gap: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distances of the first answers (NaN rows are failures), and which of them hold: predicted and admissible."""
        n = len(found)
        missing = np.isnan(found).any(axis=1)
        rows = np.where(missing[:, None], self.rows[:n], found)
        distances = Distance(norm).between(self.rows[:n], rows, features=ours.columns(self.data, gap=gap))
        predicted = self.model.predict(rows) == self.targets[:n]
        return distances, ~missing & predicted & admissible(self.data, rows)


def admissible(data: DataSet, rows: np.ndarray) -> np.ndarray:
    """Whether flags are 0 or 1 and every one-hot group has exactly one column on."""
    flags = [j for j, kind in enumerate(data.kinds) if kind in ("binary", "one-hot")]
    is_flag = np.isin(rows[:, flags], [0, 1]).all(axis=1)
    return is_flag & np.all([rows[:, group].sum(axis=1) == 1 for group in map(list, data.groups.values())], axis=0)


def harden(model: RandomForestClassifier) -> None:
    """One vote per tree, as in the paper's extraction: leaves say 1 for their class, so that every reader agrees.

    Sums of whole votes are exact, and predict sends ties to the first class.
    """
    for tree in model.estimators_:
        value = tree.tree_.value
        value[:] = np.eye(value.shape[2])[value.argmax(axis=2)]
