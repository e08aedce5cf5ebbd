"""What data keep is offered, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from cfmaps import Binary, Features, Implies, Integer, Numeric, OneHot, Range
from cfmaps.mining import mine


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 200
    job = rng.integers(3, size=n)
    debt = rng.uniform(0, 10, n)
    owner = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "debt": debt,
            "credit": debt + rng.uniform(0, 5, n),
            "age": rng.integers(18, 80, n),
            "owner": owner,
            "insured": np.where(owner == 1, 1, rng.integers(2, size=n)),
            **{f"job={name}": (job == place).astype(int) for place, name in enumerate(("clerk", "nurse", "cook"))},
        }
    )


def test_all_that_is_offered_holds_in_every_row(frame):
    found = mine(frame)
    assert {one.kind for one in found} == {"order", "implication", "range", "one-hot", "integer"}
    texts = {str(one.proposal) for one in found}
    assert "debt - credit <= 0" in texts
    assert "if owner == 1 then insured == 1" in texts
    assert [one.proposal for one in found if one.kind == "one-hot"] == [
        OneHot("job", columns=["job=clerk", "job=nurse", "job=cook"])
    ]
    assert [one.proposal for one in found if one.kind == "integer"] == [Integer("age")]
    for one in found:
        if isinstance(one.proposal, Range):
            values = frame[one.proposal.feature]
            assert (values.min(), values.max()) == (one.proposal.low, one.proposal.high)


def test_known_features_are_not_offered_again(frame):
    numbers = [Numeric("debt"), Numeric("credit"), Integer("age"), Binary("owner"), Binary("insured")]
    features = Features([*numbers, OneHot("job", columns=["job=clerk", "job=nurse", "job=cook"])])
    kinds = [one.kind for one in mine(frame, features)]
    assert "one-hot" not in kinds
    assert "integer" not in kinds
    assert any(isinstance(one.proposal, Implies) for one in mine(frame, features))


def test_noise_has_no_orders_or_implications():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(300, 3)), rng.integers(2, size=(300, 2))])
    assert {one.kind for one in mine(rows)} == {"range"}
