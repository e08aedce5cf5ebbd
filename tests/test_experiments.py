"""The baselines of the study on cases small enough to check by hand, and the way from a plan to a report."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from born_again import fast_partition, label_grid, minimal_leaves
from cells import beside, number
from cfmaps_systems import CfMaps, Cold, Growing, Warm, WarmInOneCall
from datasets import DataSet
from dice_worker import Columns
from fetch import SHA256, ensure_data
from leaves import Boxes, leaves_of
from lire import Lire
from peers import Answer
from plan import Plan, full, quick
from problem import Problem, Setting, admissible, harden
from qualitative import all_optima
from report import write
from run import run
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from study import Store, measure
from tweaking import FeatureTweaking

from cfmaps import CounterfactualMap, Features, Integer

JUST_ABOVE_2 = float(np.nextafter(np.float32(2), np.float32(9)))


def data_of(rows, labels, kinds=("numeric", "numeric"), groups=None):
    names = tuple(f"x{j}" for j in range(len(kinds)))
    return DataSet("by hand", np.asarray(rows, float), np.asarray(labels), names, tuple(kinds), groups or {})


class ByHand:
    """Two stumps, one per column, each cutting at 2 and saying 1 above; a tie is class 0. Two training rows."""

    def __init__(self):
        self.train, self.train_labels = np.array([[0.0, 0.0], [4.0, 4.0]]), np.array([0, 1])
        self.data = data_of(self.train, self.train_labels)
        forest = RandomForestClassifier(2).fit(self.train, self.train_labels)
        stumps = [DecisionTreeClassifier().fit(self.train * side, self.train_labels) for side in ([1, 0], [0, 1])]
        forest.estimators_ = stumps
        self.model = forest


def test_leaves_are_the_boxes_that_apply_sees():
    rows = np.random.default_rng(0).integers(0, 5, (200, 3)).astype(float)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, rows.sum(axis=1) > 6)
    leaves = leaves_of(tree.tree_, 3)
    inside = ((leaves.above < rows[:, None]) & (rows[:, None] <= leaves.upto)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(leaves.node[inside.argmax(axis=1)], tree.apply(rows))


def test_the_nearest_row_of_a_box_keeps_flags_and_groups_admissible():
    data = data_of(np.eye(4), range(4), ("binary", "one-hot", "one-hot", "one-hot"), {"g": (1, 2, 3)})
    # The flag must be on; category 2 must be off. Second box: category 3 must be on.
    above = np.array([[0.5, -np.inf, -np.inf, -np.inf], [-np.inf, -np.inf, -np.inf, 0.5]])
    upto = np.array([[np.inf, np.inf, 0.5, np.inf], [np.inf] * 4])
    boxes = Boxes(above, upto, data)
    assert boxes.nearest(np.array([0.0, 0, 1, 0])).tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]
    assert boxes.nearest(np.array([1.0, 1, 0, 0])).tolist() == [[1, 1, 0, 0], [1, 0, 0, 1]]


def test_a_box_without_admissible_rows_is_left_out():
    data = data_of(np.eye(2), range(2), ("one-hot", "one-hot"), {"g": (0, 1)})
    both_off, both_on = [[-np.inf] * 2, [0.5] * 2], [[0.5] * 2, [np.inf] * 2]
    boxes = Boxes(np.array([both_off[0], both_on[0]]), np.array([both_off[1], both_on[1]]), data)
    assert len(boxes.kept) == 0


@pytest.mark.parametrize(
    ("query", "answer", "distance"),
    [([0, 0], [JUST_ABOVE_2, JUST_ABOVE_2], 4), ([3, 0], [3, JUST_ABOVE_2], 2), ([3, 1], [3, JUST_ABOVE_2], 1)],
)
def test_lire_goes_to_the_live_region(query, answer, distance):
    lire = Lire()
    lire.prepare(ByHand())
    found = lire.explain(np.array(query, float), 1, "l1")
    assert found.counterfactual.tolist() == answer
    assert found.distance == pytest.approx(distance, abs=1e-6)
    assert lire.facts == {"regions": 2}


def test_lire_misses_a_region_without_training_rows():
    forest = ByHand()
    lire = Lire()
    lire.prepare(forest)
    # One column below 2 is enough for class 0, but no training row is there: LIRE pulls both back.
    assert lire.explain(np.array([4.0, 4.0]), 0, "l1").counterfactual.tolist() == [2, 2]
    assert CounterfactualMap(forest.model).explain([4.0, 4.0], target=0).distance == 2


def test_feature_tweaking_needs_a_tree_that_turns_the_forest():
    checked, hopeful = FeatureTweaking(forest_check=True), FeatureTweaking(forest_check=False)
    for system in (checked, hopeful):
        system.prepare(ByHand())
    # From (0, 0) either stump alone can be turned, and the forest stays at its tie: class 0.
    assert checked.explain(np.zeros(2), 1, "l1").counterfactual is None
    assert hopeful.explain(np.zeros(2), 1, "l1").counterfactual.tolist() in ([2.1, 0], [0, 2.1])
    # At (3, 0) the first stump says 1 already; the second one agrees with the forest and can be turned.
    for system in (checked, hopeful):
        assert system.explain(np.array([3.0, 0.0]), 1, "l1").counterfactual.tolist() == [3, 2.1]


def test_feature_tweaking_takes_the_nearest_candidate_that_the_forest_accepts():
    problem = Problem(Setting("SE", trees=10, depth=3), 20)
    system = FeatureTweaking(forest_check=True)
    system.prepare(problem)
    for x, target in zip(problem.rows, problem.targets, strict=True):
        rows = system.candidates(x, target)
        accepted = problem.model.predict(rows) == target if len(rows) else np.zeros(0, bool)
        found = system.explain(x, target, "l1")
        if accepted.any():
            assert found.distance == np.abs(rows[accepted] - x).sum(axis=1).min()
        else:
            assert found.counterfactual is None


def exhaustive(grid):
    """Leaves of the smallest tree, by trying every tree."""
    if (grid == grid.flat[0]).all():
        return 1
    cuts = [(axis, cut) for axis, size in enumerate(grid.shape) for cut in range(1, size)]
    parts = [np.split(grid, [cut], axis=axis) for axis, cut in cuts]
    return min(exhaustive(left) + exhaustive(right) for left, right in parts)


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (3, 3), (2, 2, 2), (1, 4, 2)])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_dynamic_program_finds_the_smallest_tree(shape, n_labels):
    rng = np.random.default_rng(len(shape) + n_labels)
    for _ in range(10):
        grid = rng.integers(0, n_labels, shape).astype(np.uint8)
        assert minimal_leaves(grid) == exhaustive(grid)


def test_the_grid_of_a_forest_says_what_the_forest_says():
    problem = Problem(Setting("PD", trees=3, depth=2), 300)
    grid = label_grid(problem.model)
    thresholds = [
        np.unique(np.concatenate([t.tree_.threshold[t.tree_.feature == j] for t in problem.model.estimators_]))
        for j in range(problem.rows.shape[1])
    ]
    cells = tuple(np.searchsorted(t, x) for t, x in zip(thresholds, problem.rows.T, strict=True))
    np.testing.assert_array_equal(problem.model.classes_[grid[cells]], problem.model.predict(problem.rows))
    assert minimal_leaves(grid) <= fast_partition(problem.model)


def test_hardened_forests_vote_by_majority():
    problem = Problem(Setting("BC", trees=7, depth=3), 200)
    votes = np.stack([tree.predict(problem.rows) for tree in problem.model.estimators_])
    harden(problem.model)
    np.testing.assert_array_equal(problem.model.predict(problem.rows), (votes.mean(axis=0) > 0.5).astype(int))


def test_admissible_rows_have_flags_and_one_category():
    data = data_of(np.eye(3), range(3), ("binary", "one-hot", "one-hot"), {"g": (1, 2)})
    rows = np.array([[1, 0, 1], [0.5, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]])
    assert admissible(data, rows).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("name", ["CP", "SE"])
@pytest.mark.parametrize("system", [CfMaps, Cold, Growing, Warm, WarmInOneCall])
def test_exact_systems_have_no_failures_and_the_optimum(name, system):
    problem = Problem(Setting(name, trees=10, depth=3), 30)
    measured = measure(system(), problem, 60.0)
    for norm, run_of in measured["norms"].items():
        assert all(run_of["valid"])
        np.testing.assert_allclose(run_of["distance"], problem.optimum(norm), rtol=1e-12)


def test_a_system_that_fails_is_a_result():
    class Fails:
        norms = ("l1",)

        def prepare(self, problem):
            raise RuntimeError("no licence")

    assert measure(Fails(), Problem(Setting("SE", 5, 2), 5), 1.0) == {"refused": "RuntimeError: no licence"}


def test_answers_that_are_missing_or_wrong_are_failures():
    problem = Problem(Setting("SE", 5, 2), 3)

    class Stays:
        norms = ("l1",)
        facts: dict = {}  # noqa: RUF012

        def prepare(self, problem):
            self.asked = 0

        def explain(self, x, target, norm):
            self.asked += 1
            return Answer(None if self.asked == 1 else x, 0.0, 0.5)

    found = measure(Stays(), problem, 60.0)["norms"]["l1"]
    assert found["valid"] == [False] * 3
    assert found["seconds"] == [0.5] * 3


def test_every_optimum_on_the_integers_is_listed():
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 6, (120, 3)).astype(float)
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(rows, rows.sum(axis=1) > 9)
    cfmap = CounterfactualMap(model, features=Features(Integer(f"x{j}", low=1, high=5) for j in range(3)))
    cfmap.build()
    grid = np.array(list(product(range(1, 6), repeat=3)), float)
    for x in grid[::7]:
        target = ~model.predict(x[None])[0]
        wanted = grid[model.predict(grid) == target]
        distances = np.abs(wanted - x).sum(axis=1)
        expected = np.unique(wanted[distances == distances.min()], axis=0)
        np.testing.assert_array_equal(all_optima(cfmap, x, int(target)), expected)


def test_dice_sees_a_group_as_one_column():
    columns = Columns(["integer", "one-hot", "one-hot", "binary"], [[1, 2]])
    rows = np.array([[3.0, 0, 1, 1], [5.0, 1, 0, 0]])
    frame = columns.frame(rows)
    assert frame.columns.tolist() == ["f0", "f3", "f1"]
    assert frame["f1"].tolist() == ["1", "0"]
    np.testing.assert_array_equal(columns.rows(frame), rows)


@cache
def small_plan():
    plan = Plan(10)
    plan.add(Setting("SE", trees=5, depth=2), {"cf-maps": 5.0, "growing": 5.0, "lire": 5.0, "partition": 5.0})
    return plan


def test_a_run_goes_on_where_it_was(tmp_path, capsys):
    store = Store(tmp_path)
    run(small_plan(), store, 0.0)
    run(small_plan(), store, 600.0)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    run(small_plan(), store, 600.0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written
    assert "4 of 4 cells are there already" in capsys.readouterr().err


def test_a_report_is_written_from_whatever_is_there(tmp_path):
    store = Store(tmp_path / "cells")
    run(small_plan(), store, 600.0)
    report = write(small_plan(), store, tmp_path / "results", pixels=60).read_text()
    assert "4 of 4 measurements" in report
    pictures = ("latency", "cumulative", "trees", "depth", "maps")
    assert all((tmp_path / "results" / f"{name}.png").exists() and f"({name}.png)" in report for name in pictures)
    assert len((tmp_path / "results" / "measurements.csv").read_text().splitlines()) == 1 + 3 + 1 + 1


def test_the_plans_name_systems_that_exist():
    from systems import all_systems

    known = {*all_systems(), *Plan(1).extras}
    assert {system for plan in (full("soft"), quick("hard")) for _, system, _ in plan.cells} == known


@pytest.mark.parametrize(
    ("ours", "theirs", "shown"),
    [
        (2.0, 556.7, "**2** (557; x278)"),
        (1.0, 1.0, "**1** (1; x1)"),
        (0.5, None, "**0.5** (-)"),
        (0.0, 2.2, "**0** (2.2; x inf)"),
    ],
)
def test_a_cell_holds_ours_the_papers_and_the_ratio(ours, theirs, shown):
    assert beside(ours, theirs) == shown


def test_numbers_have_three_digits():
    shown = [number(value) for value in (1234567.0, 42983.2, 0.00123, 0.0, 3.14159, 27.0, np.nan)]
    assert shown == ["1,234,567", "42,983", "0.00123", "0", "3.14", "27", "-"]


def test_data_that_cannot_be_fetched_is_said_to_be_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CFMAPS_DATA", str(tmp_path / "nowhere"))
    ensure_data(tmp_path / "own", (tmp_path / "{file}").as_uri().replace("%7B", "{").replace("%7D", "}"))
    assert "cannot be fetched" in capsys.readouterr().err


def test_data_with_a_wrong_checksum_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CFMAPS_DATA", str(tmp_path / "nowhere"))
    for file in SHA256:
        (tmp_path / file).write_text("1,2\n")
    ensure_data(tmp_path / "own", (tmp_path / "{file}").as_uri().replace("%7B", "{").replace("%7D", "}"))
    assert "has the checksum" in capsys.readouterr().err
    assert not list((tmp_path / "own").iterdir())
