"""What a notebook shows: tables without scripts or colours of their own."""

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import cfmaps
from cfmaps.audit import audit

FEATURES = cfmaps.Features(
    [
        cfmaps.Numeric("income <net>", low=0),
        cfmaps.Integer("age", low=18, high=99),
        cfmaps.Ordinal("grade", values=[1, 2]),
        cfmaps.OneHot("job", columns=["clerk", "nurse"]),
    ]
)
RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.random(60), RNG.integers(18, 99, 60), RNG.integers(1, 3, 60), np.eye(2)[RNG.integers(2, size=60)]]
)


@pytest.fixture(scope="module")
def shown():
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, np.where(X[:, 0] > 0.5, "<yes>", "no"))
    cfmap = cfmaps.CounterfactualMap(model, features=FEATURES)
    many = cfmap.explain_many(X)
    return {"map": cfmap, "answer": many[0], "answers": many, "audit": audit(cfmap, X, groups={"age": X[:, 1] > 50})}


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.styles = [], set(), ""

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.add(tag)
        self.styles += str(dict(attributes).get("style", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("what", ["map", "answer", "answers", "audit"])
def test_html_is_plain_tables_on_any_ground(shown, what):
    tags = Tags()
    tags.feed(shown[what]._repr_html_())
    assert not tags.open
    assert tags.seen <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "color" not in tags.styles
    assert "background" not in tags.styles


def test_a_map_shows_what_its_columns_may_be(shown):
    page = shown["map"]._repr_html_()
    for text in (
        "income &lt;net&gt;",
        "from 18 to 99",
        "1, 2",
        "clerk, nurse",
        "&lt;yes&gt;, no",
        "DecisionTreeClassifier",
    ):
        assert text in page
