"""Model files are read without their libraries, and only whole ones."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import boosters
from cfmaps import CounterfactualMap
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read, ubjson

WRITERS = {
    "xgboost.json": (boosters.xgboost, lambda model, path: model.save_model(path)),
    "xgboost.ubj": (boosters.xgboost, lambda model, path: model.save_model(path)),
    "lightgbm.txt": (boosters.lightgbm, lambda model, path: model.booster_.save_model(path)),
    "catboost.json": (boosters.catboost, lambda model, path: model.save_model(path, format="json")),
}


def written(folder, kind, task=2, **options):
    family, save = WRITERS[kind]
    X, y = boosters.data(np.random.default_rng(0), task)
    model = family(task, n_estimators=12, **options).fit(X, y)
    # Readers go by what a file holds.
    path = folder / "model"
    save(model, str(folder / kind))
    (folder / kind).rename(path)
    return model, path, X


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("task", [0, 2, 3])
def test_a_file_computes_what_the_live_model_computes(tmp_path, kind, task):
    model, path, _ = written(tmp_path, kind, task)
    ensemble = read(path)
    rows = boosters.probes(np.random.default_rng(1), ensemble, 500)
    np.testing.assert_array_equal(ensemble.scores(rows), boosters.native_scores(model, rows))
    if task:
        assert ensemble.labels(rows).tolist() == np.ravel(model.predict(rows)).tolist()


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_is_explained_without_its_library(tmp_path, kind):
    model, path, X = written(tmp_path, kind)
    x = np.nan_to_num(X[0]).tolist()
    program = (
        "import sys; from cfmaps import CounterfactualMap; "
        f"e = CounterfactualMap({str(path)!r}).explain({x}); print(e.distance, e.source, e.target); "
        "print([name for name in ('xgboost', 'lightgbm', 'catboost') if name in sys.modules])"
    )
    lines = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    live = CounterfactualMap(model).explain(x)
    assert lines[0] == f"{live.distance} {live.source} {live.target}"
    assert lines[1] == "[]"


def test_an_estimators_file_stops_at_the_best_round_and_a_boosters_does_not(tmp_path):
    X, y = boosters.data(np.random.default_rng(2), 2)
    model = boosters.xgboost(2, n_estimators=60, early_stopping_rounds=3, learning_rate=1.0)
    model.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], verbose=False)
    model.save_model(tmp_path / "estimator.json")
    model.get_booster().save_model(tmp_path / "booster.ubj")
    assert read(tmp_path / "estimator.json").n_trees == model.best_iteration + 1
    assert read(tmp_path / "booster.ubj").n_trees == model.get_booster().num_boosted_rounds()


def test_categories_survive_the_way_through_files(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"job": pd.Categorical(rng.choice(["clerk", "nurse", "cook"], 200)), "age": rng.normal(size=200)}
    )
    y = (frame.job.cat.codes + (frame.age > 0)) % 2
    xgboost = boosters.xgboost(2, n_estimators=5, enable_categorical=True).fit(frame, y)
    lightgbm = boosters.lightgbm(2, n_estimators=5).fit(frame, y)
    xgboost.save_model(tmp_path / "x.ubj")
    lightgbm.booster_.save_model(tmp_path / "l.txt")
    for model, path in ((xgboost, "x.ubj"), (lightgbm, "l.txt")):
        assert read(tmp_path / path).categories == read(model).categories
    assert read(tmp_path / "l.txt").categories == {0: ("clerk", "cook", "nurse")}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_truncated_file_is_a_clear_error(tmp_path, kind):
    _, path, _ = written(tmp_path, kind)
    data = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(
            data[: int(share * len(data))] if "txt" not in kind else data[: data.index(b"end of trees") // 2]
        )
        with pytest.raises(UnsupportedModel, match=r"model: "):
            read(path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a model file: expected XGBoost JSON or UBJSON, LightGBM text, or CatBoost JSON"),
        (b"hello", "not a model file"),
        (b"[1, 2]", "not a model file"),
        (b"{}", "the document holds"),
        (b'{"tree_info": []}', "LightGBM's JSON dump rounds its numbers"),
        (b"CBM1....", "save_model"),
        (b"\x80\x04", "a pickle is not read"),
        (b"{L\x7f\xff\xff\xff\xff\xff\xff\xffabc", "not UBJSON: the data end at byte"),
        (b'{"learner": {}}', "damaged or of another version"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, data, reason):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(UnsupportedModel, match=reason):
        read(tmp_path / "file")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing.json")


@pytest.mark.parametrize("children", [[1, 0, -1], [1, 99999, -1], [0, -1, -1], [2, 2, -1]])
def test_trees_that_go_round_in_circles_or_nowhere_are_refused(tmp_path, children):
    _, path, _ = written(tmp_path, "xgboost.json")
    document = json.loads(path.read_text())
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["left_children"][:3] = children
    path.write_text(json.dumps(document))
    with pytest.raises(UnsupportedModel):
        read(path)


def test_ubjson_says_what_xgboost_wrote():
    booster = xgb.train({"max_depth": 3}, xgb.DMatrix(np.arange(20).reshape(10, 2), label=np.arange(10)), 3)
    binary, text = ubjson.loads(bytes(booster.save_raw("ubj"))), json.loads(booster.save_raw("json"))
    assert same(binary, text)


def same(binary, text):
    if isinstance(text, dict):
        return binary.keys() == text.keys() and all(same(binary[key], text[key]) for key in text)
    if isinstance(text, list):
        return len(binary) == len(text) and all(same(a, b) for a, b in zip(binary, text, strict=True))
    return np.float32(binary) == np.float32(text) if isinstance(text, float) else binary == text
