"""Many threads on one map, and long work that has to end."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Timer

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from cfmaps import CounterfactualMap

X, Y = load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(30, max_depth=5, random_state=0).fit(X[:, :6], Y)


@pytest.fixture(scope="module")
def hard_forest():
    """A map that nobody completes, and rows (the second is one) that take long to explain."""
    return RandomForestClassifier(100, max_depth=5, random_state=0).fit(X, Y)


def answer(found):
    return found.status, found.distance, found.lower_bound, found.source, found.target, found.counterfactual.tolist()


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_eight_threads_on_one_growing_map_get_the_answers_of_one(forest, distance):
    rows = X[:200, :6]
    alone = CounterfactualMap(forest)
    expected = [answer(alone.explain(row, distance=distance)) for row in rows]
    shared = CounterfactualMap(forest)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: answer(shared.explain(row, distance=distance)), rows))
    assert found == expected
    assert shared.partition.n_nodes > 1


def test_threads_may_ask_while_the_map_is_built(forest):
    rows = X[:60, :6]
    expected = [answer(found) for found in CounterfactualMap(forest).explain_many(rows)]
    cfmap = CounterfactualMap(forest)
    with ThreadPoolExecutor(4) as pool:
        growths = [pool.submit(cfmap.build, n_threads=2), pool.submit(cfmap.build)]
        found = list(pool.map(lambda row: answer(cfmap.explain(row)), rows))
    assert found == expected
    assert [growth.result().complete for growth in growths] == [True, True]
    assert [answer(found) for found in cfmap.explain_many(rows)] == expected


@pytest.mark.parametrize("n_threads", [2, 5, None])
def test_threads_over_rows_give_the_answers_of_one(forest, n_threads):
    rows = X[:100, :6]
    one = CounterfactualMap(forest).explain_many(rows, n_threads=1)
    many = CounterfactualMap(forest).explain_many(rows, n_threads=n_threads)
    assert many.distances.tolist() == one.distances.tolist()
    assert many.counterfactuals.tolist() == one.counterfactuals.tolist()
    assert many.statuses.tolist() == one.statuses.tolist()


def test_a_map_built_by_several_threads_is_the_map(forest):
    maps = [CounterfactualMap(forest) for _ in range(2)]
    growths = [cfmap.build(n_threads=n_threads) for n_threads, cfmap in enumerate(maps, start=1)]
    assert growths[0].n_boxes == growths[1].n_boxes
    one, two = (cfmap.partition.boxes() for cfmap in maps)
    for name in ("lower", "upper", "label"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


# Long work


@contextmanager
def interrupted_after(seconds):
    """Ctrl-C, from outside."""
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def optimum(forest):
    return CounterfactualMap(forest).explain(X[0])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_a_build_and_leaves_the_map_in_order(hard_forest, n_threads):
    cfmap = CounterfactualMap(hard_forest)
    with interrupted_after(0.2):
        cfmap.build(n_threads=n_threads, time_limit=30)
    assert cfmap.partition.n_nodes > 1
    assert answer(cfmap.explain(X[0])) == answer(optimum(hard_forest))
    assert cfmap.build(max_nodes=cfmap.partition.n_nodes + 100).reason == "nodes"


def test_ctrl_c_ends_a_search(hard_forest):
    cfmap = CounterfactualMap(hard_forest)
    with interrupted_after(0.2):
        cfmap.explain(X[1], time_limit=30)
    assert answer(cfmap.explain(X[0])) == answer(optimum(hard_forest))


def test_ctrl_c_ends_many_searches(hard_forest):
    cfmap = CounterfactualMap(hard_forest)
    with interrupted_after(0.2):
        cfmap.explain_many(np.tile(X[1], (20, 1)), n_threads=2, time_limit=30)
    assert answer(cfmap.explain(X[0])) == answer(optimum(hard_forest))


def test_a_search_without_time_has_an_answer_and_a_bound(hard_forest):
    found = CounterfactualMap(hard_forest).explain(X[0], time_limit=0)
    assert found.status == "feasible"
    assert 0 <= found.lower_bound <= optimum(hard_forest).distance <= found.distance
    assert hard_forest.predict([found.counterfactual]) == [found.target]


def test_a_search_without_time_may_find_nothing():
    # Every third row of every leaf says 2, so that 0 or 1 always has more.
    rows, labels = np.tile(X, (3, 1)), np.concatenate([Y, Y, np.full(len(Y), 2)])
    model = RandomForestClassifier(100, max_depth=5, bootstrap=False, random_state=0).fit(rows, labels)
    found = CounterfactualMap(model).explain(X[1], target=2, time_limit=0)
    assert (found.status, found.distance, found.counterfactual) == ("unknown", np.inf, None)
    assert found.lower_bound >= 0
    assert "stopped before an answer was found" in str(found)


def test_a_search_that_ran_out_of_time_has_a_certified_bound(hard_forest):
    start = time.perf_counter()
    found = CounterfactualMap(hard_forest).explain(X[1], time_limit=0.05)
    assert time.perf_counter() - start < 3.0
    assert found.status == "feasible"
    assert 0 <= found.lower_bound < found.distance
    assert hard_forest.predict([found.counterfactual]) == [found.target]
    later = CounterfactualMap(hard_forest).explain(X[1], time_limit=0.5)
    assert found.lower_bound <= later.distance <= found.distance
    assert "stopped early: none is nearer than" in str(found)


def test_the_time_limit_is_for_each_row(hard_forest):
    start = time.perf_counter()
    many = CounterfactualMap(hard_forest).explain_many(X[[1, 0, 1]], target=[1, 0, 1], time_limit=0.3, n_threads=1)
    assert time.perf_counter() - start >= 0.6
    assert many.statuses.tolist() == ["feasible", "optimal", "feasible"]
    assert (many.lower_bounds <= many.distances).all()
    assert (hard_forest.predict(many.counterfactuals) == many.targets).all()


def test_progress_comes_as_growing_shares(hard_forest):
    told = []
    CounterfactualMap(hard_forest).build(n_threads=2, time_limit=0.3, progress=lambda *share: told.append(share))
    shares, nodes = zip(*told, strict=True)
    assert len(told) > 3
    assert sorted(shares) == list(shares)
    assert sorted(nodes) == list(nodes)
    assert 0 <= shares[0] <= shares[-1] <= 1


def test_progress_ends_at_one(forest, capsys):
    told = []
    CounterfactualMap(forest).build(progress=lambda share, _: told.append(share))
    assert told[-1] == 1.0
    CounterfactualMap(forest).build(progress=True)
    out, line = capsys.readouterr()
    assert out == ""
    assert "map 100 %" in line
    assert line.endswith(" nodes\n")


def test_progress_may_end_the_build(hard_forest):
    cfmap = CounterfactualMap(hard_forest)

    def refuse(share, n_nodes):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cfmap.build(progress=refuse, time_limit=30)
    assert not cfmap.is_complete
    assert answer(cfmap.explain(X[0])) == answer(optimum(hard_forest))
