"""dice-ml behind a pipe: a JSON line in (``problem``, or ``x``, ``target`` and ``method``), one out.

Started by ``dice.Dice``; runs in an environment of its own and imports nothing of ours. DiCE sees one column per
feature, a one-hot group being one categorical column, so that its answers are admissible.
"""

import contextlib
import io
import json
import pickle
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd


class Columns:
    """From the forest's columns to DiCE's and back."""

    def __init__(self, kinds: list[str], groups: list[list[int]]) -> None:
        grouped = {j for group in groups for j in group}
        self.parts = [[j] for j in range(len(kinds)) if j not in grouped] + [list(group) for group in groups]
        self.names = [f"f{part[0]}" for part in self.parts]
        named = zip(self.names, self.parts, strict=True)
        self.flags = [name for name, part in named if len(part) > 1 or kinds[part[0]] == "binary"]
        self.n_columns = len(kinds)

    def frame(self, rows: np.ndarray) -> pd.DataFrame:
        values = [rows[:, part].argmax(axis=1) if len(part) > 1 else rows[:, part[0]] for part in self.parts]
        table = pd.DataFrame(dict(zip(self.names, values, strict=True)))
        return table.astype(dict.fromkeys(self.flags, int)).astype(dict.fromkeys(self.flags, str))

    def rows(self, frame: pd.DataFrame) -> np.ndarray:
        rows = np.zeros((len(frame), self.n_columns))
        for name, part in zip(self.names, self.parts, strict=True):
            values = frame[name].astype(float).to_numpy()
            rows[:, part] = np.eye(len(part))[values.astype(int)] if len(part) > 1 else values[:, None]
        return rows


class OnFrames:
    """A forest that reads DiCE's columns."""

    def __init__(self, model: Any, columns: Columns) -> None:
        self.model, self.columns = model, columns
        self.classes_ = model.classes_

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self.columns.rows(frame))

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self.columns.rows(frame))


class Explainers:
    """DiCE's three model-agnostic methods for one forest."""

    def __init__(self, path: str) -> None:
        import dice_ml

        self.package = dice_ml
        with open(path, "rb") as file:
            problem = pickle.load(file)
        self.columns = Columns(problem["kinds"], problem["groups"])
        table = self.columns.frame(problem["rows"]).assign(label=problem["labels"])
        continuous = [name for name in self.columns.names if name not in self.columns.flags]
        self.data = dice_ml.Data(dataframe=table, continuous_features=continuous, outcome_name="label")
        self.model = dice_ml.Model(model=OnFrames(problem["model"], self.columns), backend="sklearn")
        self.made: dict[str, Any] = {}

    def explain(self, x: list[float], target: int, method: str) -> dict[str, Any]:
        """One counterfactual with the package's default settings, or the reason why there is none."""
        if method not in self.made:
            self.made[method] = self.package.Dice(self.data, self.model, method=method)
        query = self.columns.frame(np.array([x]))
        start = time.process_time()
        try:
            found = self.made[method].generate_counterfactuals(query, total_CFs=1, desired_class=target)
            frame, error = found.cf_examples_list[0].final_cfs_df, ""
        except Exception as raised:  # whatever the package raises is its answer
            frame, error = None, f"{type(raised).__name__}: {raised}"
        seconds = time.process_time() - start
        row = None if frame is None or frame.empty else self.columns.rows(frame)[0].tolist()
        return {"counterfactual": row, "seconds": seconds, "error": error}


def serve() -> None:
    """Answer until the input ends."""
    explainers = None
    for line in sys.stdin:
        asked = json.loads(line)
        # The package draws progress bars and remarks on its way.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if "problem" in asked:
                start = time.process_time()
                explainers = Explainers(asked["problem"])
                reply = {"prepared": time.process_time() - start}
            else:
                reply = explainers.explain(**asked)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve()
