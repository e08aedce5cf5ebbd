"""The nodes of many trees as model files hold them, put into the order an Ensemble asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.errors import UnsupportedModel

IntArray = npt.NDArray[np.intp]


def shifted(children: Sequence[npt.ArrayLike]) -> tuple[IntArray, IntArray, IntArray]:
    """Children numbered through all trees, the roots, and the tree of each node; what is negative stays.

    >>> shifted([[1, -1, -1], [1, -1, -1]])
    (array([ 1, -1, -1,  4, -1, -1]), array([0, 3]), array([0, 0, 0, 1, 1, 1]))
    """
    sizes = np.array([len(tree) for tree in children], dtype=np.intp)  # type: ignore[arg-type]
    roots = np.cumsum(sizes) - sizes
    tree = np.repeat(np.arange(len(sizes)), sizes)
    own = np.concatenate([np.asarray(tree_children, dtype=np.intp) for tree_children in children])
    return np.where(own < 0, own, own + roots[tree]), roots, tree


@dataclass(frozen=True, slots=True)
class Order:
    """The reachable nodes of all trees: tree after tree, and parents before their children."""

    nodes: IntArray
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    tree: IntArray

    @classmethod
    def of(cls, left: IntArray, right: IntArray, roots: IntArray) -> "Order":
        """Sorts nodes; a leaf has no left child. Pruned nodes that files still hold are dropped.

        >>> Order.of(np.array([2, -1, -1]), np.array([1, -1, -1]), np.array([0])).nodes
        array([0, 2, 1])
        """
        levels, trees = [roots], [np.arange(len(roots))]
        while len(levels[-1]):
            inner = left[levels[-1]] >= 0
            parents = levels[-1][inner]
            levels.append(np.stack([left[parents], right[parents]], axis=1).ravel())
            trees.append(np.repeat(trees[-1][inner], 2))
            _expect_nodes(levels, len(left))
        nodes, tree = np.concatenate(levels), np.concatenate(trees)
        by_tree = np.argsort(tree, kind="stable")
        nodes, tree = nodes[by_tree], tree[by_tree]
        place = np.full(len(left) + 1, -1, dtype=np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        return cls(
            nodes=nodes,
            left=place[left[nodes]],
            right=place[np.where(left[nodes] < 0, -1, right[nodes])],
            roots=place[roots],
            tree=tree,
        )


def in_columns(value: npt.NDArray[Any], column: IntArray, n_columns: int) -> npt.NDArray[np.float64]:
    """What each node adds to each score, when it adds to one of them only.

    >>> in_columns(np.array([0.5, 2.0]), np.array([1, 0]), 2)
    array([[0. , 0.5],
           [2. , 0. ]])
    """
    table = np.zeros((len(value), n_columns))
    table[np.arange(len(value)), column] = value
    return table


def _expect_nodes(levels: list[IntArray], n_nodes: int) -> None:
    """A damaged file may name children that do not exist, or a node twice, or go round in circles."""
    latest = levels[-1]
    if len(latest) and (latest.min() < 0 or latest.max() >= n_nodes):
        raise UnsupportedModel(f"a tree of the model names node {latest.max()}, but there are {n_nodes} nodes")
    if sum(map(len, levels)) > n_nodes:
        raise UnsupportedModel("a tree of the model reaches a node twice")
