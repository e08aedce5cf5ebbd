from functools import cache

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cfmaps import CounterfactualMap, Interval
from fidelity import compare, of_sklearn

TASKS = {f"{task.library}, {task.name}": task for task in of_sklearn()}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


@cache
def model_of(name):
    return TASKS[name].fit()


@pytest.mark.parametrize("name", TASKS)
def test_labels_and_scores_are_the_librarys_own(name):
    _, labels, scores = compare(TASKS[name], 1000, model=model_of(name))
    assert (labels or 0, scores or 0) == (0, 0)


@pytest.mark.parametrize("name", [name for name in TASKS if name.endswith((", 2 classes", ", 3 classes"))])
def test_counterfactuals_flip_the_librarys_own_predict(name):
    task = TASKS[name]
    model = model_of(name)
    cfmap = CounterfactualMap(model)
    rows = np.random.default_rng(0).normal(size=(10, cfmap.ensemble.n_features)).round(1)
    many = cfmap.explain_many(rows, time_limit=5.0, n_threads=1)
    found = many.distances < np.inf
    assert found.any()
    answers = many.points[found]
    assert (task.predict(model, cfmap.ensemble, answers) == many.targets[found]).all()
    assert (task.predict(model, cfmap.ensemble, rows[found]) != many.targets[found]).all()


@pytest.mark.parametrize("name", [name for name in TASKS if "regression" in name and "RandomForest" not in name])
def test_regressors_reach_an_interval_of_numbers(name):
    task = TASKS[name]
    model = model_of(name)
    cfmap = CounterfactualMap(model)
    rows = np.random.default_rng(0).normal(size=(5, cfmap.ensemble.n_features)).round(1)
    predicted = task.predict(model, cfmap.ensemble, rows)
    low = float(np.quantile(predicted, 0.8))
    many = cfmap.explain_many(rows, target=Interval(low), time_limit=5.0, n_threads=1)
    assert (task.predict(model, cfmap.ensemble, many.points[many.distances < np.inf]) >= low).all()
    assert (many.distances == 0).tolist() == (predicted >= low).tolist()
