"""The smallest change that makes a tree model say otherwise: exact, proven, fast."""

from importlib.metadata import PackageNotFoundError, version

from cfmaps.box_tree import BoxTree, Nearest
from cfmaps.distance import Distance
from cfmaps.ensemble import Ensemble
from cfmaps.errors import CorruptMap, NotConfirmed, UnsupportedModel
from cfmaps.explanation import Change, Explanation, Explanations, Region
from cfmaps.features import Features
from cfmaps.kinds import Binary, Categorical, Integer, Numeric, OneHot, Ordinal
from cfmaps.lattice import Lattice
from cfmaps.maps import CounterfactualMap
from cfmaps.partition import Boxes, Growth, Partition
from cfmaps.records import load_explanations, save_explanations
from cfmaps.targets import Interval

load = CounterfactualMap.load

try:
    __version__ = version("cfmaps")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "Binary",
    "BoxTree",
    "Boxes",
    "Categorical",
    "Change",
    "CorruptMap",
    "CounterfactualMap",
    "Distance",
    "Ensemble",
    "Explanation",
    "Explanations",
    "Features",
    "Growth",
    "Integer",
    "Interval",
    "Lattice",
    "Nearest",
    "NotConfirmed",
    "Numeric",
    "OneHot",
    "Ordinal",
    "Partition",
    "Region",
    "UnsupportedModel",
    "load",
    "load_explanations",
    "save_explanations",
]
