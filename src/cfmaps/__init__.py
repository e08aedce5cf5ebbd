"""The smallest change that makes a tree model say otherwise: exact, proven, fast."""

from importlib.metadata import PackageNotFoundError, version

from cfmaps.alternatives import Alternatives
from cfmaps.box_tree import BoxTree, Nearest
from cfmaps.clauses import parse as parse_constraints
from cfmaps.constraints import (
    AllOf,
    AnyOf,
    Condition,
    Constraint,
    Decrease,
    Forbid,
    Freeze,
    Implies,
    Increase,
    Linear,
    MaxChanges,
    Not,
    Range,
    Robust,
    Step,
)
from cfmaps.distance import Distance
from cfmaps.ensemble import Ensemble
from cfmaps.errors import CorruptMap, NotConfirmed, UnsupportedModel
from cfmaps.explanation import Change, Explanation, Explanations, Region
from cfmaps.feasible import restricted
from cfmaps.features import Features
from cfmaps.kinds import Binary, Categorical, Integer, Numeric, OneHot, Ordinal
from cfmaps.lattice import Lattice
from cfmaps.levers import Lever, Levers
from cfmaps.maps import CounterfactualMap
from cfmaps.mining import Suggestion, mine
from cfmaps.partition import Boxes, Growth, Partition
from cfmaps.plausibility import Isolation, Live, Near
from cfmaps.prices import Price
from cfmaps.records import load_explanations, save_explanations
from cfmaps.targets import Interval, Probability

load = CounterfactualMap.load

try:
    __version__ = version("cfmaps")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "AllOf",
    "Alternatives",
    "AnyOf",
    "Binary",
    "BoxTree",
    "Boxes",
    "Categorical",
    "Change",
    "Condition",
    "Constraint",
    "CorruptMap",
    "CounterfactualMap",
    "Decrease",
    "Distance",
    "Ensemble",
    "Explanation",
    "Explanations",
    "Features",
    "Forbid",
    "Freeze",
    "Growth",
    "Implies",
    "Increase",
    "Integer",
    "Interval",
    "Isolation",
    "Lattice",
    "Lever",
    "Levers",
    "Linear",
    "Live",
    "MaxChanges",
    "Near",
    "Nearest",
    "Not",
    "NotConfirmed",
    "Numeric",
    "OneHot",
    "Ordinal",
    "Partition",
    "Price",
    "Probability",
    "Range",
    "Region",
    "Robust",
    "Step",
    "Suggestion",
    "UnsupportedModel",
    "load",
    "load_explanations",
    "mine",
    "parse_constraints",
    "restricted",
    "save_explanations",
]
