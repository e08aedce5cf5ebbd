"""Small random ensembles of every rule and number type, whose sums meet cuts and each other."""

from dataclasses import replace
from itertools import product

import numpy as np

from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.features import Categorical, Features, Integer, Numeric

RULES = ("argmax", "bands", "softmax32", "softmax64")
FLOATS = (np.float32, np.float64)
POOLS = {
    "quarters": lambda rng, n: rng.integers(-3, 4, n) / 4,
    "tenths": lambda rng, n: rng.integers(-3, 4, n) / 10,
    "normal": lambda rng, n: rng.normal(size=n),
    "tiny": lambda rng, n: rng.integers(-2, 3, n) * 2.0**-25,
    "mixed": lambda rng, n: rng.choice([1.0, 2.0**-24, 1e-3, 1e4], n) * rng.choice([1, -1], n),
}


def random_ensemble(rng, *, rule=None, n_features=None, n_trees=None, depth=3, missing=False, categorical=()):
    """An `Ensemble`; what is not given is drawn. ``categorical`` are columns whose tests are sets of four codes."""
    rule = rule or str(rng.choice(RULES))
    n_features = n_features or int(rng.integers(1, 4))
    number, sum_number = (FLOATS[k] for k in rng.integers(2, size=2))
    n_scores = 1 if rule in ("bands", "value") else int(rng.integers(2, 5))
    pool = POOLS[str(rng.choice(list(POOLS)))]
    nodes, roots = [], []
    for _ in range(n_trees or int(rng.integers(1, 8))):
        roots.append(len(nodes))
        _grow(rng, nodes, depth, n_features, categorical, n_scores, pool)
    fields = {name: np.array([node[name] for node in nodes]) for name in nodes[0]}
    if not missing:
        del fields["missing_left"]
    if categorical:
        fields["category_sets"] = rng.random((8, 4)) < 0.5
    else:
        del fields["category_set"]
    fields["value"] = fields["value"].astype(sum_number)
    init = (pool(rng, n_scores) * rng.integers(2)).astype(sum_number)
    ensemble = Ensemble(
        **fields,
        roots=roots,
        init=init,
        classes=None,
        n_features=n_features,
        rule="value",
        number=number,
        sum_number=sum_number,
        **_transform(rng, n_scores, sum_number),
    )
    return _ruled(rng, ensemble, rule)


def _grow(rng, nodes, depth, n_features, categorical, n_scores, pool):
    """Adds a subtree and gives its root."""
    place = len(nodes)
    is_leaf = depth == 0 or rng.random() < 0.15
    feature = -1 if is_leaf else int(rng.integers(n_features))
    nodes.append(
        {
            "feature": feature,
            "threshold": 0.0 if is_leaf else float(rng.choice([-1.5, -0.1, 0.0, 0.1, 0.5, 2.0, np.float32(0.1)])),
            "left": -1,
            "right": -1,
            "value": pool(rng, n_scores) * (rng.random(n_scores) < 0.8),
            "missing_left": bool(rng.integers(2)),
            "category_set": int(rng.integers(8)) if feature in categorical else -1,
        }
    )
    if not is_leaf:
        nodes[place]["left"] = _grow(rng, nodes, depth - 1, n_features, categorical, n_scores, pool)
        nodes[place]["right"] = _grow(rng, nodes, depth - 1, n_features, categorical, n_scores, pool)
    return place


def _transform(rng, n_scores, sum_number):
    """How a library may finish its sums; mostly not at all."""
    if rng.random() < 0.5:
        return {}
    bias = rng.choice([0.0, 0.25, sum_number(0.1), 100.0], size=n_scores)
    return {"divisor": float(rng.choice([1, 3, 7])), "scale": float(rng.choice([1, 0.5, 0.1])), "bias": bias}


def _ruled(rng, ensemble, rule):
    if rule == "value":
        return ensemble
    if rule != "bands":
        return replace(ensemble, rule=rule, classes=[f"c{k}" for k in range(ensemble.n_scores)])
    probes = rng.choice([-2.0, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0], size=(100, ensemble.n_features))
    # Cuts on scores that occur, and beside them.
    scores = rng.choice(ensemble.scores(np.abs(probes) // 1 if ensemble.category_set is not None else probes)[:, 0], 3)
    cuts = np.unique(np.nextafter(scores, rng.choice([-np.inf, np.inf, 0.0], 3), dtype=ensemble.sum_number))
    cuts = cuts[: int(rng.integers(1, 4))]
    return replace(ensemble, rule=rule, cuts=cuts, classes=[f"c{k}" for k in range(len(cuts) + 1)])


def all_points(lattice, x):
    """The point of every cell nearest to ``x``."""
    cells = np.stack(np.meshgrid(*[np.arange(n) for n in lattice.n_cells], indexing="ij"), axis=-1)
    return lattice.nearest(x, cells.reshape(-1, lattice.n_axes).astype(np.int32))


def some_features(rng, ensemble, *, missing=("keep",)):
    """A feature of a random kind for every column of a random ensemble."""
    categorical = set()
    if ensemble.category_set is not None:
        categorical = set(ensemble.feature[ensemble.category_set >= 0].tolist())
    entries = []
    for column in range(ensemble.n_features):
        options = {"missing": str(rng.choice(missing)), "missing_gap": float(rng.choice([0.25, 1.0, 3.0]))}
        if column in categorical:
            entries.append(Categorical(f"x{column}", categories=["a", "b", "c"], gap=0.5, **options))
        elif rng.random() < 0.3:
            entries.append(Integer(f"x{column}", low=-2, high=2, **options))
        else:
            entries.append(Numeric(f"x{column}", **options))
    return Features(entries)


def nearest_by_hand(ensemble, features, x):
    """Rows among which is the nearest of every class, and how far each is in L1."""
    choices = [_choices(ensemble, entry, column, x[column]) for column, entry in enumerate(features)]
    rows, gaps = [], []
    for chosen in product(*choices):
        rows.append([value for value, _ in chosen])
        gaps.append(sum(gap for _, gap in chosen))
    return np.array(rows, dtype=float), np.array(gaps)


def _choices(ensemble, entry, column, own):
    """What one column may hold, and the gap of each value."""
    known = _known_values(ensemble, entry, column, own)
    if np.isnan(own):
        filled = [(value, entry.missing_gap) for value in known] if entry.missing in ("fill", "free") else []
        return [(own, 0.0), *filled]
    gap_of = {True: lambda value: entry.gap * (value != own), False: lambda value: abs(value - own)}
    choices = [(value, gap_of[isinstance(entry, Categorical)](value)) for value in known]
    return [*choices, (np.nan, entry.missing_gap)] if entry.missing in ("set", "free") else choices


def _known_values(ensemble, entry, column, own):
    if isinstance(entry, Categorical):
        return list(entry.codes)
    if isinstance(entry, Integer):
        return [-2.0, -1.0, 0.0, 1.0, 2.0]
    thresholds = ensemble.threshold[ensemble.feature == column]
    sides = np.concatenate(closed_sides(thresholds, ensemble.number))
    return np.unique(np.concatenate([sides, [0.0] if np.isnan(own) else [own]])).tolist()


def random_rows(rng, ensemble, features, n_rows, *, missing=0.0):
    """Admissible rows on the model's grid, with thresholds hit exactly; some values are missing."""
    rows = rng.choice([-2.0, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0], size=(n_rows, ensemble.n_features))
    for column, entry in enumerate(features):
        if isinstance(entry, Categorical):
            rows[:, column] = rng.choice(entry.codes, n_rows)
        elif isinstance(entry, Integer):
            rows[:, column] = np.round(rows[:, column])
    rows = rows.astype(ensemble.number).astype(np.float64)
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def stump(value, **fields):
    """One test, at 0.5, of one column."""
    value = np.atleast_2d(value)
    return Ensemble(
        **{"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "roots": [0]},
        value=np.concatenate([np.zeros_like(value[:1]), value]),
        **{"init": np.zeros(value.shape[1]), "n_features": 1} | fields,
    )
