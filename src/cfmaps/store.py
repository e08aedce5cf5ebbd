"""Maps in files: written once, mapped into memory, queried at once, grown further in memory."""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import cfmaps.ensemble
import cfmaps.features
from cfmaps import _container, _core, _plain
from cfmaps.ensemble import Ensemble
from cfmaps.errors import CorruptMap
from cfmaps.features import Features
from cfmaps.lattice import Lattice
from cfmaps.partition import Partition, StoredNodes

FORMAT = 1

Path: TypeAlias = str | os.PathLike[str]

_KINDS: dict[str, type] = {
    name: kind
    for module in (cfmaps.ensemble, cfmaps.features)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind)
}


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file holds of a map.

    Attributes
    ----------
    ensemble, features, partition
        The model as it computes, its columns, and the map as it was grown.
    about : dict
        Where it comes from: ``model``, ``library``, ``library_version``, ``votes``, ``named``, ``ensemble_sha256``.
    complete : bool
        Whether the file has every box.
    n_nodes : int
        Nodes in the file.
    """

    ensemble: Ensemble
    features: Features
    partition: Partition
    about: dict[str, Any]
    complete: bool
    n_nodes: int


def digest(ensemble: Ensemble) -> str:
    """SHA-256 of everything the ensemble computes with.

    >>> stump = dict(feature=[0, -1, -1], threshold=[0.5, 0, 0], left=[1, -1, -1], right=[2, -1, -1], roots=[0],
    ...              init=[0, 0], classes=["no", "yes"], n_features=1)
    >>> one = Ensemble(value=[[0, 0], [1, 0], [0, 1]], **stump)
    >>> other = Ensemble(value=[[0, 0], [0, 1], [1, 0]], **stump)
    >>> digest(one) == digest(one), digest(one) == digest(other)
    (True, False)
    """
    arrays: dict[str, Any] = {}
    hasher = hashlib.sha256(json.dumps(_plain.encode(ensemble, "ensemble", arrays), sort_keys=True).encode())
    for name in sorted(arrays):
        hasher.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        hasher.update(_container.bytes_of(np.ascontiguousarray(arrays[name])))
    return hasher.hexdigest()


def save(path: Path, partition: Partition, about: Mapping[str, Any]) -> None:
    """Write a map, complete or not; ``path`` then has all of it or, should anything fail, what it had before."""
    lattice = partition.lattice
    arrays, records = _nodes(partition), {}
    for name, value in (("ensemble", lattice.ensemble), ("features", lattice.features), ("about", dict(about))):
        records[name] = _plain.encode(value, name, arrays)
    records |= {"complete": partition.is_complete, "ensemble_sha256": digest(lattice.ensemble)}
    arrays |= {f"lattice.{name}": array for name, array in _lattice_arrays(lattice).items()}
    _container.write(path, {"format": f"cfmaps {FORMAT}", "map": json.dumps(records)}, arrays)


def load(path: Path) -> Saved:
    """Open a map. Its nodes stay in the file until a query needs them.

    Raises
    ------
    CorruptMap
        When the file is cut, changed, of a later format, or no map.
    """
    container = _container.read(path)
    _expect_format(path, container.texts)
    try:
        records = json.loads(container.texts["map"])
        ensemble, features, about = (_decoded(records[name], container) for name in ("ensemble", "features", "about"))
        if not (isinstance(ensemble, Ensemble) and isinstance(features, Features)):
            raise TypeError("it describes no model")
        lattice = Lattice.of(ensemble, features)
        complete = bool(records["complete"])
        stored = _stored(container, lattice, complete)
        about["ensemble_sha256"] = records["ensemble_sha256"]
        n_nodes = len(container.array("nodes"))
        return Saved(ensemble, features, Partition(lattice, stored=stored), about, complete, n_nodes)
    except CorruptMap as error:
        raise CorruptMap(f"{path}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptMap(f"{path} holds a map that makes no sense: {error}") from error


def verify(path: Path) -> None:
    """Read the whole file and check every digest in it; raises `CorruptMap` where one differs."""
    container = _container.read(path)
    for name in container.digests:
        container.verified(name)


def _expect_format(path: Path, texts: Mapping[str, str]) -> None:
    library, _, version = str(texts.get("format", "")).partition(" ")
    if library != "cfmaps" or not version.isdigit():
        raise CorruptMap(f"{path} is no map of cfmaps")
    if int(version) > FORMAT:
        raise CorruptMap(f"{path} has format {version}; this version of cfmaps reads up to {FORMAT}: update it")


def _decoded(code: Any, container: _container.Container) -> Any:
    return _plain.decode(code, container.verified, _KINDS)


def _nodes(partition: Partition) -> dict[str, npt.NDArray[Any]]:
    """The nodes, the digests of their pages, and the digests of the pages of those."""
    words = partition.pack()
    digests = _core.page_digests(words.view(np.uint8))
    return {"nodes": words, "nodes.digests": digests, "nodes.roots": _core.page_digests(digests)}


def _lattice_arrays(lattice: Lattice) -> dict[str, npt.NDArray[Any]]:
    values: list[tuple[str, Any]] = [(field.name, getattr(lattice, field.name)) for field in fields(lattice)]
    return {name: value for name, value in values if isinstance(value, np.ndarray)}


def _stored(container: _container.Container, lattice: Lattice, complete: bool) -> StoredNodes | None:
    """The nodes, unless they speak of other cells than this version of cfmaps would make of the model."""
    for name, array in _lattice_arrays(lattice).items():
        if f"lattice.{name}" not in container.arrays:
            continue
        # Cells of missing values have NaN for ends.
        if not np.array_equal(container.verified(f"lattice.{name}"), array, equal_nan=array.dtype.kind == "f"):
            warnings.warn(
                f"the map was grown over other cells ({name}) than this version of cfmaps uses: "
                "it starts empty; answers are the same, but the first ones take longer",
                stacklevel=4,
            )
            return None
    roots = container.verified("nodes.roots")
    return StoredNodes(container.array("nodes"), container.array("nodes.digests"), roots, complete)
