"""Explanations come back from files as they went in."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier
from tests.models import random_model

import cfmaps
from cfmaps.records import KINDS

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def explanations():
    """Answers with groups, and one row without an answer."""
    case = random_model(RNG, kinds=["one_hot", "integer", "uniform"], n_features=4, n_classes=3, n_queries=12)
    return cfmaps.CounterfactualMap(case.model, features=case.features).explain_many(case.queries)


@pytest.fixture(scope="module")
def unanswered():
    model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["no", "yes", "no"])
    features = cfmaps.Features([cfmaps.Numeric("x", low=3)])
    return cfmaps.CounterfactualMap(model, features=features).explain_many([[3.0], [4.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_comes_back(explanations, unanswered, tmp_path, kind):
    for number, many in enumerate((explanations, unanswered)):
        many.save(tmp_path / f"{number}{kind}")
        assert cfmaps.load_explanations(tmp_path / f"{number}{kind}") == [one.to_dict() for one in many]
    assert set(unanswered.statuses) == {"infeasible"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_explanations_are_a_file_too(tmp_path, kind):
    cfmaps.save_explanations(tmp_path / f"none{kind}", [])
    assert cfmaps.load_explanations(tmp_path / f"none{kind}") == []


LABELS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
@given(source=LABELS, target=LABELS)
def test_labels_keep_their_type_in_tables(tmp_path_factory, kind, source, target):
    path = tmp_path_factory.getbasetemp() / f"labels{kind}"
    records = [
        {"status": "optimal", "source": source, "target": target},
        {"status": "unknown", "source": "0", "target": "no"},
    ]
    cfmaps.save_explanations(path, records)
    assert cfmaps.load_explanations(path) == records


def test_numbers_keep_every_digit(tmp_path):
    values = [0.1, 1 / 3, math.nextafter(1.0, 2.0), 5e-324, 1.7976931348623157e308, -0.0]
    records = [{"status": "optimal", "distance": value, "query": {"x": value}} for value in values]
    for kind in KINDS:
        cfmaps.save_explanations(tmp_path / f"n{kind}", records)
        assert cfmaps.load_explanations(tmp_path / f"n{kind}") == records


def test_a_missing_number_is_null(tmp_path):
    cfmaps.save_explanations(tmp_path / "m.json", [{"query": {"x": math.nan, "y": 1.0}}])
    assert json.loads((tmp_path / "m.json").read_text()) == [{"query": {"x": None, "y": 1.0}}]


def test_an_unknown_ending_is_refused(tmp_path, explanations):
    with pytest.raises(ValueError, match=r"path must end in one of \.json, \.jsonl, \.csv, \.parquet, got '.*\.xlsx'"):
        explanations.save(tmp_path / "a.xlsx")


@pytest.mark.parametrize("kind", [".csv", ".json", ".jsonl"])
def test_a_stream_is_written_as_it_comes(tmp_path, kind):
    path = tmp_path / f"stream{kind}"

    def stream():
        for number in range(20_000):
            yield {"row": number, "status": "optimal"}
        assert path.stat().st_size > 10_000

    cfmaps.save_explanations(path, stream())
    assert len(cfmaps.load_explanations(path)) == 20_000
