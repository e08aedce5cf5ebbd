"""What holds for the readers of all boosting libraries alike."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boosters
from boosters import assert_computes_the_same
from cfmaps import CounterfactualMap
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read

FAMILIES = [boosters.xgboost, boosters.lightgbm, boosters.catboost]
EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)


@EVERY_FAMILY
@pytest.mark.parametrize("task", [0, 2, 3, 5])
@pytest.mark.parametrize("n_trees", [1, 40])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_scores_and_labels_are_the_models_own_bit_for_bit(family, task, n_trees, missing):
    rng = np.random.default_rng([task, n_trees])
    X, y = boosters.data(rng, task, missing=missing)
    weights = rng.random(len(X)) if missing else None
    model = family(task, n_estimators=n_trees).fit(X, y, sample_weight=weights)
    assert_computes_the_same(model, boosters.probes(rng, read(model), 400))


@EVERY_FAMILY
def test_float32_rows_and_float64_rows_are_compared_as_the_library_compares_them(family):
    rng = np.random.default_rng(3)
    X, y = boosters.data(rng, 2, missing=0, dtype=np.float32)
    model = family(2, n_estimators=20).fit(X, y)
    rows = boosters.probes(rng, read(model), 300, missing=False)
    assert_computes_the_same(model, rows * (1 + rng.choice([-6e-8, -3e-8, 0, 3e-8, 6e-8], size=rows.shape)))


@EVERY_FAMILY
@pytest.mark.parametrize("task", [2, 3])
def test_labels_keep_their_own_values(family, task):
    rng = np.random.default_rng(4)
    X, y = boosters.data(rng, task)
    labels = y if family is boosters.xgboost else np.array(["ash", "birch", "cedar"])[y]
    model = family(task, n_estimators=5).fit(X, labels)
    assert_computes_the_same(model, X)
    assert read(model).classes.tolist() == list(np.unique(labels))


@EVERY_FAMILY
def test_a_column_that_nothing_tests_and_a_target_that_is_constant_in_it(family):
    rng = np.random.default_rng(5)
    X, y = boosters.data(rng, 2, missing=0)
    X[:, 3] = 1.0
    assert_computes_the_same(family(2, n_estimators=5).fit(X, y), X)


@EVERY_FAMILY
@pytest.mark.parametrize("task", [2, 3])
@given(seed=st.integers(0, 2**32 - 1), norm=st.sampled_from(["l1", "l2", "linf"]))
@settings(max_examples=6, deadline=None)
def test_counterfactuals_of_small_models_are_those_of_enumeration(family, task, seed, norm):
    rng = np.random.default_rng(seed)
    X, y = boosters.data(rng, task, n_rows=60, n_features=2, missing=0)
    options = {"depth": 2} if family is boosters.catboost else {"max_depth": 2}
    model = family(task, n_estimators=int(rng.integers(1, 5)), **options).fit(X, y)
    ensemble = read(model)
    queries = ensemble.round(np.concatenate([X[:4], boosters.probes(rng, ensemble, 4, missing=False)])).astype(float)
    found = CounterfactualMap(model).explain_many(queries, distance=norm, n_threads=1)
    labels = np.ravel(model.predict(queries))
    for query, label, distance in zip(queries, labels, found.distances, strict=True):
        candidates = nearest_candidates(ensemble, query)
        other = np.ravel(model.predict(candidates)) != label
        gaps = np.linalg.norm(candidates[other] - query, ord={"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=1)
        assert distance == pytest.approx(gaps.min(initial=np.inf), rel=1e-12)


def nearest_candidates(ensemble, query):
    """A nearest row keeps each value, or stops at the first number behind some cut."""
    choices = []
    for column, own in enumerate(query):
        cuts = ensemble.threshold[ensemble.feature == column]
        cuts = cuts[np.isfinite(cuts)].astype(ensemble.number)
        behind = np.nextafter(cuts, ensemble.number(np.inf))
        choices.append([own, *cuts.tolist(), *behind[np.isfinite(behind)].tolist()])
    return np.array(list(product(*choices)), dtype=np.float64)


@EVERY_FAMILY
@pytest.mark.parametrize("task", [2, 4])
def test_answers_flip_the_models_own_predict(family, task):
    rng = np.random.default_rng(6)
    X, y = boosters.data(rng, task, missing=0)
    model = family(task, n_estimators=30).fit(X, y)
    found = CounterfactualMap(model).explain_many(X[:100])
    assert set(found.statuses) == {"optimal"}
    assert (np.ravel(model.predict(np.asarray(found.counterfactuals))) != np.ravel(model.predict(X[:100]))).all()


@EVERY_FAMILY
def test_an_unfitted_model_is_refused(family):
    with pytest.raises(ValueError, match="must be fitted"):
        read(family(2))


@EVERY_FAMILY
def test_trees_that_do_not_vote_have_no_hard_votes(family):
    with pytest.raises(ValueError, match="votes='hard' is for forests of scikit-learn"):
        read(family(2), votes="hard")


@EVERY_FAMILY
def test_a_subclass_is_read_as_what_it_is(family):
    X, y = boosters.data(np.random.default_rng(7), 2, missing=0)
    model = type("Own", (type(family(2)),), {})(n_estimators=3, **boosters.QUIET if family is boosters.catboost else {})
    model.fit(X, y)
    assert CounterfactualMap(model).explain(X[0]).status == "optimal"


def test_reading_one_library_imports_no_other():
    program = (
        "import sys; from cfmaps.readers import read; from xgboost import XGBClassifier; "
        "read(XGBClassifier(n_estimators=2).fit([[0], [1]], [0, 1])); "
        "print([name for name in ('lightgbm', 'catboost') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_stranger_is_refused():
    with pytest.raises(UnsupportedModel, match="expected an Ensemble, the path of a model file"):
        read(3)
