"""Random ensembles of every rule, with missing values, categories and intervals, against plain enumeration.

Run as a script it prints what it compared and ends with the number of differences.
"""

import argparse
import math
import sys
from dataclasses import replace

import numpy as np

from cfmaps import Categorical, CounterfactualMap, Distance, Features, Interval
from ensembles import nearest_by_hand, random_ensemble, random_rows, some_features

WORDS = ["a", "b", "c"]
NEAR = 1e-12


def labels_of_random_rows(rng, allowed):
    """Whole and cold maps of one ensemble, every label, rows with missing values: what differs."""
    ensemble = random_ensemble(rng, n_features=3, n_trees=4, missing=True, categorical=(1,))
    features = some_features(rng, ensemble, missing=allowed)
    rows = random_rows(rng, ensemble, features, 5, missing=0.3)
    built = CounterfactualMap(ensemble, features=features)
    built.build(n_threads=1)
    for cfmap in (CounterfactualMap(ensemble, features=features), built):
        for code, label in enumerate(ensemble.classes):
            wanted = lambda X, code=code: ensemble.labels(X) == code  # noqa: E731
            yield from wrong_answers(cfmap, ensemble, features, rows, label, wanted)


def intervals_of_outputs(rng, rule):
    """One interval of one ensemble's output, its ends on outputs that occur: what differs."""
    ensemble = random_ensemble(rng, rule=rule, n_features=2, missing=bool(rng.integers(2)))
    ensemble = replace(ensemble, link="logistic64" if rule == "bands" else "identity")
    if rule == "bands" and len(ensemble.classes) != 2:
        return
    features = Features.numeric(2)
    label = None if rule == "value" else str(rng.choice(ensemble.classes))
    output = _output_of(ensemble, 0 if label is None else ensemble.classes.tolist().index(label))
    rows = random_rows(rng, ensemble, features, 4, missing=0.2 * ensemble.takes_missing)
    low, high = np.sort(rng.choice(output(random_rows(rng, ensemble, features, 50)), 2))
    target = Interval(float(low), float(high) if rng.random() < 0.5 else None, label=label)
    cfmap = CounterfactualMap(ensemble)
    yield from wrong_answers(cfmap, ensemble, features, rows, target, lambda X: target.holds(output(X)))


def _output_of(ensemble, code):
    if ensemble.rule != "bands":
        return lambda X: ensemble.scores(X)[:, code]
    link = np.vectorize(lambda x: 1 / (1 + math.exp(min(-x, 709.0))))
    return lambda X: link(ensemble.scores(X)[:, 0]) if code == 1 else 1 - link(ensemble.scores(X)[:, 0])


KINDS = {
    "missing values kept": lambda rng: labels_of_random_rows(rng, ("keep",)),
    "missing values set and filled": lambda rng: labels_of_random_rows(rng, ("keep", "set", "fill", "free")),
    "intervals of numbers": lambda rng: intervals_of_outputs(rng, "value"),
    "intervals of a sigmoid": lambda rng: intervals_of_outputs(rng, "bands"),
    "intervals of a share": lambda rng: intervals_of_outputs(rng, "argmax"),
}


def differences(kind, seed):
    """How many answers of one random ensemble were compared, and what was wrong with them."""
    verdicts = list(kind(np.random.default_rng(seed)))
    return len(verdicts), [verdict for verdict in verdicts if verdict]


def wrong_answers(cfmap, ensemble, features, rows, target, wanted):
    """Per row "", or what differs from the nearest row of all; ``wanted`` tells which rows are as asked for."""
    many = cfmap.explain_many(_in_words(features, rows), target=target, n_threads=1)
    answers = _in_codes(features, many.counterfactuals)
    for place, x in enumerate(rows):
        points, gaps = nearest_by_hand(ensemble, features, x)
        expected = 0.0 if wanted(x[np.newaxis])[0] else gaps[wanted(points)].min(initial=np.inf)
        yield _what_differs(many[place], many.distances[place], x, answers[place], features, expected, wanted)


def _what_differs(explanation, distance, x, answer, features, expected, wanted):
    shown = f"{x.tolist()} -> {answer.tolist()}: "
    if explanation.distance != distance or not _same(distance, expected):
        return f"{shown}distance {distance}, expected {expected}"
    if explanation.status != ("optimal" if np.isfinite(expected) else "infeasible"):
        return f"{shown}status {explanation.status}"
    if not np.isfinite(expected):
        return ""
    away = float(Distance("l1").between(x, answer, features=features))
    if not wanted(answer[np.newaxis])[0] or not _same(away, expected):
        return f"{shown}not wanted, or {away} away instead of {expected}"
    return "" if bool(explanation.changes()) == (away > 0) else f"{shown}changes {explanation.changes()}"


def _same(left, right):
    return left == right or abs(left - right) <= NEAR * min(abs(left), abs(right))


def _in_words(features, rows):
    """Rows as a caller writes them."""
    words = rows.astype(object)
    for column, entry in enumerate(features):
        if isinstance(entry, Categorical):
            words[:, column] = [None if np.isnan(code) else WORDS[int(code)] for code in rows[:, column]]
    return words


def _in_codes(features, rows):
    codes = np.array(rows, dtype=object)
    for column, entry in enumerate(features):
        if isinstance(entry, Categorical):
            codes[:, column] = [np.nan if word is None else WORDS.index(word) for word in codes[:, column]]
    return codes.astype(float)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="of each kind")
    options = parser.parse_args()
    total = 0
    for name, kind in KINDS.items():
        compared, wrong = 0, []
        for seed in range(options.models):
            n, differing = differences(kind, seed)
            compared += n
            wrong += [f"model {seed}: {difference}" for difference in differing]
        total += len(wrong)
        print(f"{name:<32}{options.models:>8} models{compared:>9} answers{len(wrong):>6} differences", flush=True)
        print("\n".join(wrong[:10]), end="\n" if wrong else "")
    print(f"{total} differences")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
