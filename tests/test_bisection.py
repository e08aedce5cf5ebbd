import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cfmaps.readers.bisection import last_true, numbers, ranks

FINITE = st.floats(-1e308, 1e308)


@given(st.lists(FINITE, min_size=1))
def test_the_switch_is_found_to_the_last_bit(switches):
    switches = np.array(switches) + 0.0
    ends = np.full(len(switches), np.finfo(float).max)
    found = last_true(lambda x: (x <= switches) | (x == -ends), -ends, np.full(len(switches), np.inf))
    np.testing.assert_array_equal(found, switches)


@given(FINITE)
def test_ranks_are_in_order_and_neighbours_are_one_apart(x):
    above = np.nextafter(np.array([x]), np.inf)
    assert ranks(above) - ranks(np.array([x])) == 1
    assert numbers(ranks(np.array([x]))) == x
