"""Answers under constraints: the small part of tests/agreement_constraints.py, and what is said besides."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import cfmaps
from agreement_constraints import run
from cfmaps import (
    Condition,
    CounterfactualMap,
    Distance,
    Features,
    Freeze,
    Integer,
    Linear,
    MaxChanges,
    Numeric,
    OneHot,
    Ordinal,
    Price,
    Range,
    Step,
)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_constrained_answers_are_those_of_enumeration(first):
    counts, differences = run(7, first, first + 40)
    assert not differences
    assert counts["infeasible"] + counts["linear"] + counts["separable"] > 20


@pytest.fixture(scope="module")
def credit():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "income": rng.uniform(10, 90, n).round(1),
            "debt": rng.uniform(0, 40, n).round(1),
            "age": rng.integers(18, 80, n),
            "grade": rng.integers(1, 4, n),
            "job=clerk": 0,
            "job=nurse": 0,
            "job=cook": 0,
        }
    )
    jobs = rng.integers(3, size=n)
    for place, column in enumerate(["job=clerk", "job=nurse", "job=cook"]):
        frame[column] = (jobs == place).astype(int)
    granted = frame["income"] - 1.5 * frame["debt"] + 3 * frame["grade"] + 5 * (jobs == 1) > 30
    model = RandomForestClassifier(30, max_depth=4, random_state=0).fit(frame, granted)
    features = Features(
        [
            Numeric("income", low=0),
            Numeric("debt", low=0),
            Integer("age", low=18, high=100),
            Ordinal("grade", values=[1, 2, 3]),
            OneHot("job", columns=["job=clerk", "job=nurse", "job=cook"]),
        ]
    )
    return CounterfactualMap(model, features=features), frame, frame[~model.predict(frame)]


def test_no_constraint_gives_the_plain_answer(credit):
    cfmap, _, refused = credit
    plain = cfmap.explain_many(refused, target=True)
    kept = cfmap.explain_many(refused, target=True, constraints=[MaxChanges(5)])
    assert (plain.distances == kept.distances).all()
    assert plain.counterfactuals.equals(kept.counterfactuals)


def test_text_and_objects_say_the_same(credit):
    cfmap, _, refused = credit
    text = "freeze age, job; debt <= 0.3 * income; income step 0.5"
    objects = [Freeze("age", "job"), Linear({"debt": 1, "income": -0.3}, "<=", 0), Step("income", 0.5)]
    first = cfmap.explain_many(refused[:20], target=True, constraints=text)
    second = cfmap.explain_many(refused[:20], target=True, constraints=objects)
    assert first.counterfactuals.equals(second.counterfactuals)
    assert (first.counterfactuals["job=nurse"].to_numpy() == refused["job=nurse"][:20].to_numpy()).all()


def test_a_query_that_breaks_a_constraint_says_so_and_moves(credit):
    cfmap, _, refused = credit
    young = refused[refused["age"] < 30].iloc[[0]]
    e = cfmap.explain(young, target=False, constraints=["age >= 30"])
    assert e.violated == (Range("age", low=30),)
    assert e.counterfactual["age"].item() == 30
    assert cfmap.explain(young, target=False, constraints=["age <= 30"]).distance == 0


def test_an_infeasible_question_names_what_conflicts(credit):
    cfmap, _, refused = credit
    constraints = ["freeze income", "freeze grade, job", "debt <= 60", "debt >= current", "age <= 90"]
    e = cfmap.explain(refused.iloc[0], target=True, constraints=constraints)
    assert e.status == "infeasible"
    conflict = e.conflict
    assert set(map(str, conflict)) <= set(constraints)
    assert cfmap.explain(refused.iloc[0], target=True, constraints=conflict).status == "infeasible"
    for left_out in conflict:
        fewer = [one for one in conflict if one != left_out]
        assert cfmap.explain(refused.iloc[0], target=True, constraints=fewer).status == "optimal"
    assert cfmap.explain(refused.iloc[0], target=True).conflict == ()


def test_a_class_the_model_never_gives_conflicts_with_nothing():
    cfmap = CounterfactualMap(
        DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]), features=Features([Numeric("a", high=0.2)])
    )
    e = cfmap.explain([0.1], target=1, constraints=["a >= 0"])
    assert (e.status, e.conflict) == ("infeasible", ())


@pytest.mark.parametrize(
    ("constraints", "problem"),
    [
        ("freeze rent", "constraint 'freeze rent': expected a feature among .*'income'.*, got 'rent'"),
        (["age >= 40", "age <= 30"], "'age >= 40' and 'age <= 30' contradict each other"),
        ("job >= 2", "expected a number, 'job' is a category"),
        ("job == pilot", "expected a category of 'job' among .*, got 'pilot'"),
        ("age == old", "'age' is a number, got 'old'"),
        ("freeze job=nurse", "nothing more"),
        ("freeze `job=nurse`", "'job=nurse' is a column of 'job'"),
        ("income - debt == 0", "'income' is a real number"),
        ("age step 0.5", "'age' is whole"),
        ("grade step 2", "'grade' has listed values"),
        (["income step 2", "income step 3"], "gives 'income' a grid already"),
        ([7], "constraints must be"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(credit, constraints, problem):
    cfmap, _, refused = credit
    with pytest.raises((ValueError, TypeError), match=problem):
        cfmap.explain(refused.iloc[0], constraints=constraints)


def test_prices_decide_which_way_to_go(credit):
    cfmap, _, refused = credit
    usual = cfmap.explain_many(refused, target=True)
    prices = {"income": Price(up=50, fixed=1), "job": Price(between={("cook", "nurse"): 0.01})}
    dear = cfmap.explain_many(refused, target=True, distance=Distance("l1", prices=prices))
    rose = dear.counterfactuals["income"].to_numpy() > refused["income"].to_numpy()
    assert rose.sum() < (usual.counterfactuals["income"].to_numpy() > refused["income"].to_numpy()).sum()
    assert (dear.counterfactuals["job=nurse"].to_numpy() > refused["job=nurse"].to_numpy()).any()
    grid = cfmap.partition.lattice.round(refused.to_numpy(float))
    points = cfmap.partition.lattice.round(dear.points)
    measured = Distance("l1", prices=prices).between(grid, points, features=cfmap.features)
    assert measured == pytest.approx(dear.distances, rel=1e-12)


@pytest.mark.parametrize(
    ("prices", "problem"),
    [
        ({"rent": Price()}, "prices name the feature 'rent'"),
        ({"job": Price(up=2)}, "a category has prices fixed and between"),
        ({"job": Price(between={("cook", "pilot"): 1})}, "expected a category among"),
        ({"age": Price(between={(1, 2): 1})}, "between is for categories"),
        ({"age": Price(cost=lambda value, new: -np.abs(new - value))}, "at least 0"),
        ({"age": Price(cost=lambda value, new: 1 / (1 + np.abs(new - value)))}, "must not fall"),
    ],
)
def test_prices_that_make_no_sense_are_refused(credit, prices, problem):
    cfmap, _, refused = credit
    with pytest.raises(ValueError, match=problem):
        cfmap.explain(refused.iloc[0], distance=Distance("l1", prices=prices))


def test_relations_refuse_prices_they_cannot_weigh(credit):
    cfmap, _, refused = credit
    table = Distance("l1", prices={"debt": Price(cost=lambda value, new: np.abs(new - value))})
    with pytest.raises(ValueError, match="the price of 'debt' is a function"):
        cfmap.explain(refused.iloc[0], distance=table, constraints="debt <= income")
    with pytest.raises(ValueError, match="'l1' only"):
        cfmap.explain(
            refused.iloc[0], distance=Distance("l2", prices={"debt": Price(fixed=1)}), constraints="debt <= income"
        )


def test_a_relation_is_kept_on_the_grid_and_bounded_by_the_real_optimum(credit):
    cfmap, _, refused = credit
    for norm in ("l1", "l2", "linf"):
        for e in cfmap.explain_many(refused[:30], target=True, distance=norm, constraints="3 debt <= income"):
            point = np.asarray(e.counterfactual, dtype=float)[0]
            assert 3 * point[1] <= point[0]
            assert e.status == "optimal"
            assert e.distance - 1e-5 <= e.lower_bound <= e.distance  # a step of the grid is 4e-6 there


def test_a_short_time_limit_gives_a_certified_bound(credit):
    cfmap, _, refused = credit
    fresh = CounterfactualMap(cfmap.ensemble, features=cfmap.features)
    done = fresh.explain(refused.iloc[0], target=True, constraints="debt <= income")
    hurried = fresh.explain(refused.iloc[0], target=True, constraints="debt <= income", time_limit=0)
    assert hurried.status in ("optimal", "feasible", "unknown")
    assert hurried.lower_bound <= done.distance


def test_a_stopped_question_about_a_relation_claims_no_more_than_it_proved(credit):
    cfmap, _, refused = credit
    fresh = CounterfactualMap(cfmap.ensemble, features=cfmap.features)
    asked = {"target": True, "constraints": "debt <= 0.3 * income; income + 2 * debt <= 140"}
    best = fresh.explain_many(refused[:20], **asked)
    for seconds in (0.0, 1e-5, 1e-4, 3e-4, 1e-3):
        stopped = fresh.explain_many(refused[:20], **asked, time_limit=seconds)
        assert (stopped.lower_bounds <= best.distances).all()
        assert (best.distances <= stopped.distances).all()


def test_many_threads_give_the_answers_of_one(credit):
    cfmap, _, refused = credit
    constraints = "changes <= 2; if age >= 40 then debt <= 10; debt <= 0.5 * income"
    one = cfmap.explain_many(refused, target=True, constraints=constraints, n_threads=1)
    two = cfmap.explain_many(refused, target=True, constraints=constraints, n_threads=2)
    assert (one.distances == two.distances).all()
    assert one.counterfactuals.equals(two.counterfactuals)


def test_a_condition_may_name_a_one_hot_column(credit):
    cfmap, _, refused = credit
    by_column = cfmap.explain_many(refused[:20], target=True, constraints=[Condition("job=nurse", "==", 0)])
    by_group = cfmap.explain_many(refused[:20], target=True, constraints=[Condition("job", "!=", "nurse")])
    assert (by_column.distances == by_group.distances).all()
    assert not by_column.counterfactuals["job=nurse"].any()


def test_the_package_offers_every_constraint():
    assert {"Freeze", "Range", "Step", "Linear", "Implies", "MaxChanges", "Price"} <= set(cfmaps.__all__)


def test_targets_on_a_probability_keep_constraints_too(credit):
    cfmap, _, refused = credit
    target = cfmaps.Probability(True, at_least=0.7)
    for place in range(5):
        row = refused.iloc[[place]]
        free = cfmap.explain(row, target=target)
        kept = cfmap.explain(row, target=target, constraints="freeze income; changes <= 2")
        assert kept.distance >= free.distance
        if kept.status == "optimal":
            assert kept.counterfactual["income"].item() == row["income"].item()
        steps = cfmap.ladder(row, [cfmaps.Probability(True, at_least=share) for share in (0.5, 0.6, 0.7)])
        assert steps[2].distance == free.distance
        assert steps[0].distance <= steps[1].distance <= steps[2].distance
        menu = cfmap.levers(row, target=target, max_features=5)
        assert min(lever.explanation.distance for lever in menu) >= free.distance  # a larger set may be cheaper
        assert cfmap.alternatives(row, target=target, k=1)[0].distance == free.distance
