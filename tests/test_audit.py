"""An audit says of a population what asking row by row says."""

import json
import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps.audit import audit

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.normal(size=150), RNG.normal(size=150), RNG.integers(0, 3, 150)])
Y = np.where(X[:, 0] + X[:, 1] > 0.3 * X[:, 2], "grant", "deny")
GROUPS = {"sex": np.where(RNG.random(150) < 0.4, "f", "m"), "region": X[:, 2].astype(int)}
FEATURES = cfmaps.Features([cfmaps.Numeric("income", high=1.2), cfmaps.Numeric("debt"), cfmaps.Integer("region")])


@pytest.fixture(scope="module")
def cfmap():
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, Y)
    return cfmaps.CounterfactualMap(model, features=FEATURES)


@pytest.fixture(scope="module")
def found(cfmap):
    return audit(cfmap, X, target="grant", groups=GROUPS, n_bootstrap=200)


def test_only_rows_without_the_target_are_in_need(cfmap, found):
    labels = cfmap.classes[cfmap.ensemble.labels(X)]
    assert found.rows.tolist() == np.flatnonzero(labels != "grant").tolist()
    assert (found.n_rows, found.n_in_need) == (150, (labels != "grant").sum())


def test_costs_are_those_of_single_questions(cfmap, found):
    alone = [cfmap.explain(row, target="grant") for row in X[found.rows]]
    summary = found.summary()
    assert summary["mean_cost"] == pytest.approx(np.mean([one.distance for one in alone]))
    assert summary["highest_cost"] == max(one.distance for one in alone)
    assert summary["mean_changes"] == pytest.approx(np.mean([len(one.changes()) for one in alone]))
    assert summary["proven"] == len(alone)
    assert found.to_frame()["distance"].tolist() == [one.distance for one in alone]


def test_groups_are_compared_with_the_largest(found):
    sex, costs = GROUPS["sex"][found.rows], found.explanations.distances
    by_sex = {one["group"]: one for one in found.by_group("sex")}
    assert {name: one["rows"] for name, one in by_sex.items()} == {name: (sex == name).sum() for name in "fm"}
    largest = max("fm", key=lambda name: by_sex[name]["rows"])
    other = by_sex["m" if largest == "f" else "f"]
    means = {name: costs[sex == name].mean() for name in "fm"}
    assert by_sex[largest]["ratio"] is None
    assert other["ratio"] == pytest.approx(means[other["group"]] / means[largest])
    assert other["gap"] == pytest.approx(means[other["group"]] - means[largest])
    assert other["gap_low"] <= other["gap"] <= other["gap_high"]
    assert other["mean_low"] < other["mean_cost"] < other["mean_high"]
    assert {one["ratio"] is None for one in found.by_group("sex", reference=other["group"])} == {True, False}


def test_rows_without_recourse_are_counted(cfmap):
    model = cfmaps.Ensemble(
        feature=[-1],
        threshold=[0],
        left=[-1],
        right=[-1],
        roots=[0],
        value=[[1, 0]],
        init=[0, 0],
        classes=["a", "b"],
        n_features=1,
    )
    found = audit(cfmaps.CounterfactualMap(model), [[0.0], [1.0]], target="b", groups={"g": ["x", "y"]})
    assert found.summary()["share_without_recourse"] == 1.0
    assert found.summary()["mean_cost"] is None
    assert [one["share_without_recourse"] for one in found.by_group("g")] == [1.0, 1.0]
    assert "2 without recourse" in repr(found)
    assert found.changes() == []
    assert json.loads(json.dumps(found.to_dict()))["summary"]["without_recourse"] == 2


def test_the_most_flippable_are_nearest_to_any_other_decision(cfmap, found):
    distances = cfmap.explain_many(X).distances
    order = np.argsort(distances, kind="stable")[:5]
    assert [one["row"] for one in found.most_flippable(5)] == order.tolist()


def test_changes_are_counted_by_feature(found):
    counts = {one["feature"]: (one["rows"], one["up"], one["down"]) for one in found.changes()}
    changes = [change for one in found.explanations for change in one.changes()]
    for name, (rows, up, down) in counts.items():
        own = [change for change in changes if change.feature == name]
        assert (rows, up + down) == (len(own), len(own))
        assert up == sum(change.after > change.before for change in own)


def test_frames_and_groups_from_frames(cfmap):
    import pandas as pd
    import polars as pl

    for library in (pd, pl):
        frame = library.DataFrame({name: X[:, place] for place, name in enumerate(FEATURES.columns)})
        found = audit(cfmap, frame, target="grant", groups={"region": frame["region"]}, n_bootstrap=10)
        assert {one["group"] for one in found.by_group("region")} <= {"0", "1", "2"}


def test_the_page_needs_nothing_else(found, tmp_path):
    found.report(tmp_path / "report.html", title="Credit & <co>")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>Credit &amp; &lt;co&gt;</h1>" in page
    assert "<script" not in page
    assert not re.search(r'(?:src|href|srcset)="(?!data:image/png;base64,)', page)
    assert "prefers-color-scheme: dark" in page
    assert page.count("<figure>") == 5
    assert found._repr_html_().count("<table") == 4


def test_groups_of_another_length_are_refused(cfmap):
    with pytest.raises(ValueError, match=r"groups\['sex'\] must have a value for each of the 150 rows, got 3"):
        audit(cfmap, X, groups={"sex": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"name must be one of \['sex', 'region'\], got 'age'"):
        audit(cfmap, X[:5], groups={name: values[:5] for name, values in GROUPS.items()}).by_group("age")
