"""The paper's five data sets, the forests trained on them and the rows that are asked about.

The files are looked for in the folder named by the environment variable ``CFMAPS_DATA``, then in ``../shared/datasets``
beside the checkout. Without them, synthetic stand-ins of the same shape are drawn, and their name says so.
"""

import os
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set comes from, and its shape for the stand-in."""

    file: str
    n_rows: int
    n_classes: int
    columns: tuple[str, ...]
    values: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class DataSet:
    """Rows and labels with what is known about the columns.

    ``kinds`` has one of "numeric", "integer", "binary" and "one-hot" per column; ``groups`` gives the column numbers of
    each one-hot group.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    groups: dict[str, tuple[int, ...]]


BREAST = (
    "Clump-T,Uniformity-Size,Uniformity-Shape,Adhesion,Cell-Size,Bare-Nuclei,Bland-Chromatin,Normal-Nucleoli,Mitoses"
)
COMPAS = (
    "sex:Female,age:<21,age:<23,age:<26,age:<46,juvenile-felonies:=0,juvenile-misdemeanors:=0,juvenile-crimes:=0,"
    "priors:=0,priors:=1,priors:2-3,priors:>3"
)
FICO = (
    "ExternalRiskEstimate<0.49,ExternalRiskEstimate<0.65,ExternalRiskEstimate<0.80,NumSatisfactoryTrades<0.5,"
    "TradeOpenTime<0.6,TradeOpenTime<0.85,TradeFrequency<0.45,TradeFrequency<0.6,Delinquency<0.55,Delinquency<0.75,"
    "Installment<0.5,Installment<0.7,Inquiry<0.75,RevolvingBalance<0.4,RevolvingBalance<0.6,Utilization<0.6,"
    "TradeWBalance<0.33"
)
PIMA = "Pregnancies,Glucose,BloodPressure,SkinThickness,Insulin,BMI,DiabetesPedigreeFunction,Age"
SEEDS = "area,perimeter,compactness,kernel-length,kernel-width,asymmetry,kernel-groove"

SOURCES = {
    "BC": Source("Breast-Cancer-Wisconsin.full.csv", 683, 2, tuple(BREAST.split(",")), (1, 10)),
    "CP": Source("COMPAS-ProPublica.full.csv", 6907, 2, tuple(COMPAS.split(",")), (0, 1)),
    "FI": Source("FICO.full.csv", 10459, 2, tuple(FICO.split(",")), (0, 1)),
    "PD": Source("Pima-Diabetes.full.csv", 768, 2, tuple(PIMA.split(",")), (0, 9)),
    "SE": Source("Seeds.full.csv", 210, 3, tuple(SEEDS.split(",")), (0, 9)),
    "PD-raw": Source("Pima-Diabetes.csv", 768, 2, tuple(PIMA.split(",")), None),
    "SE-raw": Source("Seeds.csv", 210, 3, tuple(SEEDS.split(",")), None),
}


def load(name: str) -> DataSet:
    """The data set called ``name`` (a key of ``SOURCES``), with the columns the paper counts."""
    source = SOURCES[name]
    path = folder() / source.file
    if path.exists():
        return paper_columns(read(name, path, source))
    return paper_columns(stand_in(f"{name} (synthetic)", source))


def folder() -> Path:
    """Where the files are looked for."""
    beside_the_checkout = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    return Path(os.environ.get("CFMAPS_DATA", beside_the_checkout))


def read(name: str, path: Path, source: Source) -> DataSet:
    """The columns of a file as they are written; the last one is the class."""
    columns = tuple(path.read_text().partition("\n")[0].strip().split(",")[:-1])
    # Raw files carry a second line of type letters.
    table = np.loadtxt(path, delimiter=",", skiprows=1 if source.values else 2)
    return plain(name, table[:, :-1], table[:, -1].astype(int), columns, source)


def stand_in(name: str, source: Source) -> DataSet:
    """Rows of the same shape: a hidden level per row moves every column, and its equal parts are the classes."""
    rng = np.random.default_rng(0)
    hidden = rng.uniform(size=source.n_rows)
    labels = np.minimum((hidden * source.n_classes).astype(int), source.n_classes - 1)
    quantities = {base: 0.5 * hidden + 0.5 * rng.uniform(size=source.n_rows) for base in map(base_of, source.columns)}
    families = {base: list(family) for base, family in groupby(source.columns, base_of)}
    rows = np.hstack([drawn(quantities[base], family, source.values) for base, family in families.items()])
    return plain(name, rows, labels, source.columns, source)


def drawn(quantity: np.ndarray, family: list[str], values: tuple[int, int] | None) -> np.ndarray:
    """The columns of one feature (shape: rows x columns) from a quantity in [0, 1]."""
    if values is None:
        return np.array(100.0 * quantity[:, None])
    if values != (0, 1):
        return np.array(values[0] + np.floor((values[1] - values[0] + 1) * quantity[:, None]))
    if family[0].startswith("priors"):
        return one_hot(np.minimum((quantity * len(family)).astype(int), len(family) - 1), len(family))
    cuts = np.arange(1, len(family) + 1) / (len(family) + 1)
    return np.array(quantity[:, None] < cuts, dtype=float)


def plain(name: str, rows: np.ndarray, labels: np.ndarray, columns: tuple[str, ...], source: Source) -> DataSet:
    """A data set without groups."""
    kind = {None: "numeric", (0, 1): "binary"}.get(source.values, "integer")
    return DataSet(name, rows, labels, columns, (kind,) * len(columns), {})


def paper_columns(data: DataSet) -> DataSet:
    """Binary columns of one feature become one one-hot group; everything else stays as it is.

    A family of nested cuts (``age:<21``, ``age:<23``, ...) has one category more than it has cuts.
    """
    if "binary" not in data.kinds:
        return data
    blocks: list[np.ndarray] = []
    columns: list[str] = []
    kinds: list[str] = []
    groups: dict[str, tuple[int, ...]] = {}
    for base, family in groupby(range(len(data.columns)), lambda j: base_of(data.columns[j])):
        block, names = recoded(data, base, list(family))
        if len(names) > 1:
            groups[base] = tuple(range(len(columns), len(columns) + len(names)))
        blocks.append(block)
        columns += names
        kinds += ["one-hot" if len(names) > 1 else "binary"] * len(names)
    return replace(data, rows=np.hstack(blocks), columns=tuple(columns), kinds=tuple(kinds), groups=groups)


def recoded(data: DataSet, base: str, family: list[int]) -> tuple[np.ndarray, list[str]]:
    """The paper's columns of one feature, and their names."""
    block = data.rows[:, family]
    names = [data.columns[j] for j in family]
    if len(family) == 1 or (block.sum(axis=1) == 1).all():
        return block, names
    return one_hot(len(family) - block.sum(axis=1).astype(int), len(family) + 1), [*names, f"{base} above"]


def base_of(column: str) -> str:
    """The feature a column belongs to: ``age`` for ``age:<21``."""
    return column.split(":")[0].split("<")[0]


def one_hot(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Codes 0..n_codes-1 as rows with a single 1."""
    rows: np.ndarray = np.eye(n_codes)[codes]
    return rows


def forest(
    name: str, *, trees: int = 100, depth: int = 5, seed: int = 0
) -> tuple[RandomForestClassifier, DataSet, np.ndarray]:
    """A forest fitted on 80 % of a data set, the data set, and the other 20 % of its rows."""
    data = load(name)
    train, test, labels, _ = train_test_split(data.rows, data.labels, test_size=0.2, random_state=seed)
    model = RandomForestClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    return model.fit(train, labels), data, test


def queries(data: DataSet, test: np.ndarray, n: int, *, seed: int = 0) -> np.ndarray:
    """The first ``n`` test rows, followed by uniform samples over the range of the data when there are too few."""
    n_drawn = max(0, n - len(test))
    return np.vstack([test[:n], uniform(data, n_drawn, seed=seed)])


def uniform(data: DataSet, n: int, *, seed: int = 0) -> np.ndarray:
    """Rows drawn uniformly over the range of each column, honouring kinds and groups."""
    rng = np.random.default_rng(seed)
    low, high = data.rows.min(axis=0), data.rows.max(axis=0)
    whole = rng.integers(low.astype(int), high.astype(int) + 1, size=(n, len(low)))
    rows = np.where(np.array(data.kinds) == "numeric", rng.uniform(low, high, size=(n, len(low))), whole)
    for group in data.groups.values():
        rows[:, group] = one_hot(rng.integers(len(group), size=n), len(group))
    return rows
