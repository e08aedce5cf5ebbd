"""Pictures hold what the answers say."""

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps import plot

RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.normal(size=200), RNG.normal(size=200), RNG.integers(0, 5, 200), np.eye(3)[RNG.integers(3, size=200)]]
)
Y = np.where(X[:, 0] + X[:, 1] * X[:, 3] > 0.2 * X[:, 2], "yes", "no")
FEATURES = cfmaps.Features(
    [
        cfmaps.Numeric("a"),
        cfmaps.Numeric("b", low=-1),
        cfmaps.Integer("n", low=0),
        cfmaps.OneHot("job", columns=["clerk", "nurse", "none"]),
    ]
)


@pytest.fixture(scope="module")
def cfmap():
    cfmap = cfmaps.CounterfactualMap(
        RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y), features=FEATURES
    )
    cfmap.build(max_nodes=50_000)
    return cfmap


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(params=["default", "dark_background"])
def _style(request):
    with pyplot.style.context(request.param):
        yield


@pytest.mark.usefixtures("_style")
@pytest.mark.parametrize("show", ["decision", "counterfactual", "distance"])
def test_a_slice_is_drawn_on_the_axes_given_and_marks_the_case(cfmap, show):
    ax = pyplot.subplots()[1]
    assert plot.plane(cfmap, X[0], ("a", "b"), show=show, pixels=20, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert [line.get_xydata()[0].tolist() for line in ax.lines[-1:]] == [X[0, :2].tolist()]
    ax.figure.canvas.draw()


def test_the_decision_slice_shows_what_predict_says(cfmap):
    ax = plot.plane(cfmap, X[0], ("a", "b"), pixels=25, limits={"a": (-2, 2), "b": (-1, 1)})
    rows = np.tile(X[0], (625, 1))
    steps = (np.arange(25) + 0.5) / 25
    rows[:, 0], rows[:, 1] = np.tile(-2 + 4 * steps, 25), np.repeat(-1 + 2 * steps, 25)
    shades = ax.images[0].get_array()[:, :, 0].reshape(-1)
    labels = cfmap.classes[cfmap.ensemble.labels(rows)]
    assert len({(shade, label) for shade, label in zip(shades.tolist(), labels.tolist(), strict=True)}) == 2


def test_a_slice_keeps_to_the_limits_of_a_feature(cfmap):
    assert plot.plane(cfmap, np.maximum(X[0], 0), ("a", "b"), pixels=5).get_ylim()[0] == -1


@pytest.mark.usefixtures("_style")
@pytest.mark.parametrize("distance", ["l1", "l2", "linf", 3])
def test_the_steps_of_a_waterfall_sum_up_to_the_distance(cfmap, distance):
    for row in X[:20]:
        answer = cfmap.explain(row, distance=distance)
        ax = plot.waterfall(answer)
        widths = [bar.get_width() for bar in ax.patches]
        assert len(widths) == len(answer.changes())
        assert sum(widths) == pytest.approx(answer.distance, rel=1e-6)


def test_a_waterfall_without_an_answer_says_so(cfmap):
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
    ax = plot.waterfall(cfmaps.CounterfactualMap(model).explain([0.0], target="b"))
    assert ax.get_title() == "a: infeasible"


def test_alternatives_are_small_multiples_on_one_scale(cfmap):
    answers = [cfmap.explain(X[0], distance=norm) for norm in ("l1", "l2", "linf", 3)]
    axes = plot.alternatives(answers)
    shown = [ax for ax in axes.flat if ax.get_visible()]
    assert axes.shape == (2, 3)
    assert len(shown) == 4
    assert len({ax.get_xlim() for ax in shown}) == 1
    with pytest.raises(ValueError, match="explanations must hold at least one answer"):
        plot.alternatives([])


@pytest.mark.usefixtures("_style")
def test_histograms_count_every_row(cfmap):
    many = cfmap.explain_many(X[:60])
    ax = plot.distances(many, by=X[:60, 2] > 2, bins=7)
    assert sum(bar.get_height() for bar in ax.patches) == 60
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["False", "True"]


@pytest.mark.usefixtures("_style")
def test_bars_count_how_often_features_change(cfmap):
    many = cfmap.explain_many(X[:60])
    ax = plot.changed_features(many)
    assert sum(bar.get_width() for bar in ax.patches) == sum(len(one.changes()) for one in many)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert set(names) <= set(FEATURES.names)


def test_nothing_that_changes_is_an_empty_picture(cfmap):
    many = cfmap.explain_many(X[:0])
    for draw in (plot.distances, plot.changed_features, plot.costs_by_changes):
        assert draw(many).figure is not None


@pytest.mark.usefixtures("_style")
def test_costs_stand_over_the_number_of_changes(cfmap):
    many = cfmap.explain_many(X[:60])
    numbers = sorted({len(one.changes()) for one in many})
    assert plot.costs_by_changes(many).get_xticks().tolist() == numbers


def test_growth_draws_a_point_for_each_question():
    fresh = cfmaps.CounterfactualMap(
        RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y), features=FEATURES
    )
    ax = plot.growth(fresh, X[:30])
    sizes = ax.lines[0].get_ydata().tolist()
    assert len(sizes) == 30
    assert sizes[0] < sizes[-1] == fresh.partition.n_nodes


def test_unknown_columns_and_kinds_are_named(cfmap):
    with pytest.raises(ValueError, match=r"columns must be two of \['a', 'b', 'n', .*\], got 'z'"):
        plot.plane(cfmap, X[0], ("a", "z"))
    with pytest.raises(ValueError, match="show must be 'decision', 'counterfactual' or 'distance', got 'x'"):
        plot.plane(cfmap, X[0], ("a", "b"), show="x")
