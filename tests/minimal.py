"""The least that every wheel must do, without pytest: ask, build, save, load. Prints one line.

python tests/minimal.py
"""

import sys
import tempfile
import time

OPTIONAL = {
    "sklearn",
    "scipy",
    "pandas",
    "polars",
    "matplotlib",
    "click",
    "rich",
    "skops",
    "xgboost",
    "lightgbm",
    "catboost",
}


def main() -> None:
    start = time.perf_counter()
    import cfmaps

    seconds = time.perf_counter() - start
    assert not OPTIONAL & set(sys.modules), OPTIONAL & set(sys.modules)

    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    cfmap = cfmaps.CounterfactualMap(model)
    answers = cfmap.explain_many(X, target=2, distance="l2")
    assert (model.predict(answers.counterfactuals) == 2).all()
    assert cfmap.build().complete
    with tempfile.TemporaryDirectory() as folder:
        cfmap.save(f"{folder}/m.cfmap")
        loaded = cfmaps.load(f"{folder}/m.cfmap", model=model)
    assert (loaded.explain_many(X, target=2, distance="l2").points == answers.points).all()
    version = sys.version.split()[0]
    print(f"cfmaps {cfmaps.__version__} on Python {version}: imported in {seconds:.2f} s, answers agree")  # noqa: T201


if __name__ == "__main__":
    main()
