"""Other people's exact searches, each behind the same four names so that one loop can time them all.

A peer has a ``name`` and a ``norm``; ``available()`` says whether it can run here, ``refuses(model, data)`` why it
cannot take a problem (or ""), ``prepare(model, data)`` does everything that need not be repeated per query, and
``explain(x, target)`` gives an ``Answer``. Only the peer's own search is inside the clock, on one thread.
``unproven`` counts the answers since ``prepare`` that the peer did not call optimal because a limit stopped it.
"""

import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from datasets import DataSet
from sklearn.ensemble import RandomForestClassifier

BUILD = Path(__file__).resolve().parents[1] / "build"

# Leaf fractions are summed in another order than predict sums them; a tie may be off by this much.
TIE = 1e-12


class Answer(NamedTuple):
    """What a peer found, how far it is in the peer's norm, and how long the search took."""

    counterfactual: np.ndarray | None
    distance: float
    seconds: float


def answer(x: np.ndarray, counterfactual: np.ndarray | None, order: float, seconds: float) -> Answer:
    """The distance is computed here, from the columns, for every peer alike."""
    distance = np.inf if counterfactual is None else float(np.linalg.norm(counterfactual - x, ord=order))
    return Answer(counterfactual, distance, seconds)


class Treecf:
    """treecf's exact backend: weighted L1 with all weights 1, columns free on the line unless the data says binary.

    ``warm_start`` is its default: a genetic search first, then the exact one. Small problems are faster without.
    """

    norm = "l1"

    def __init__(self, *, warm_start: bool = True, integers: bool = False, time_limit: float = 60.0) -> None:
        self.name = "treecf exact" + (" (integers)" if integers else "") + ("" if warm_start else " (cold)")
        self.options = {"warm_start": warm_start, "time_budget_s": time_limit, "node_budget": 10**9}
        self.whole = ("binary", "integer") if integers else ("binary",)

    def available(self) -> bool:
        return importlib.util.find_spec("treecf") is not None

    def refuses(self, model: RandomForestClassifier, data: DataSet) -> str:
        return "takes two classes only" if len(model.classes_) > 2 else ""

    def prepare(self, model: RandomForestClassifier, data: DataSet) -> None:
        import treecf

        names = [f"f{j}" for j in range(model.n_features_in_)]
        groups = [treecf.OneHot(tuple(names[j] for j in group)) for group in data.groups.values()]
        flags = [treecf.Range(name, 0, 1) for name, kind in zip(names, data.kinds, strict=True) if kind == "binary"]
        whole = {name: "integer" for name, kind in zip(names, data.kinds, strict=True) if kind in self.whole}
        constraints = [*groups, *flags]
        self.explainer = treecf.Explainer(
            model, normalizers=np.ones(len(names)), constraints=constraints, value_policy=whole
        )
        self.classes = list(model.classes_)
        self.unproven = 0
        self.load(data.rows[0])

    def load(self, x: np.ndarray) -> None:
        """A first call hands the model to the compiled core, which is not part of a query."""
        target = self.target(self.classes[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.explainer.explain(x, target, backend="exact", warm_start=False, node_budget=1)

    def target(self, label: object) -> object:
        from treecf import Target

        # A tie goes to the first class.
        return Target.raw(op="<=" if label == self.classes[0] else ">=", value=0.5 + TIE)

    def explain(self, x: np.ndarray, target: object) -> Answer:
        goal = self.target(target)
        start = time.perf_counter()
        found = self.explainer.explain(x, goal, backend="exact", seed=0, **self.options)
        seconds = time.perf_counter() - start
        self.unproven += found.proof not in ("optimal", "certified")
        return answer(x, getattr(found, "x_cf", None), 1, seconds)


class Veritas:
    """veritas' robustness search: it halves the Linf radius until the bracket is ``tolerance`` wide.

    It stays within ``tolerance`` of an optimum; columns are free on the line.
    """

    name = "veritas robustness"
    norm = "linf"

    def __init__(self, *, tolerance: float = 1e-3, time_limit: float = 60.0) -> None:
        self.tolerance = tolerance
        self.time_limit = time_limit

    def available(self) -> bool:
        return importlib.util.find_spec("veritas") is not None

    def refuses(self, model: RandomForestClassifier, data: DataSet) -> str:
        if len(model.classes_) > 2:
            return "its robustness search takes two classes only"
        return "" if set(data.kinds) <= {"numeric", "integer"} else "has no binary columns and no one-hot groups"

    def prepare(self, model: RandomForestClassifier, data: DataSet) -> None:
        import veritas

        self.trees = veritas.get_addtree(model, silent=True)
        self.classes = list(model.classes_)
        self.unproven = 0
        self.radius = float(np.ptp(data.rows, axis=0).max()) + 1.0

    def explain(self, x: np.ndarray, target: object) -> Answer:
        start = time.perf_counter()
        search = self.search(x, target)
        _, low, high = search.search()
        seconds = time.perf_counter() - start
        self.unproven += high - low >= self.tolerance
        nearest = min(search.generated_examples, key=lambda found: np.abs(found - x).max(), default=None)
        return answer(x, nearest, np.inf, seconds)

    def search(self, x: np.ndarray, target: object) -> Any:
        """A search in the ball that surely holds an example; the trees give the score of the second class."""
        from veritas import VeritasRobustnessSearch

        second = target == self.classes[1]
        return VeritasRobustnessSearch(
            x,
            self.radius,
            None if second else self.trees,
            self.trees if second else None,
            num_steps=40,
            max_time=self.time_limit,
            stop_condition=lambda low, high: high - low < self.tolerance,
            search_guard=1e-5,
            silent=True,
        )


class Ocean:
    """oceanpy's constraint (or mixed-integer) program in L1; it needs Python >= 3.12, so it has a process of its own.

    It counts a change of category once where the norm over the columns counts it twice.
    """

    norm = "l1"

    def __init__(self, *, solver: str = "CP", integers: bool = False, time_limit: float = 300.0) -> None:
        self.name = f"oceanpy {solver}"
        self.settings = {"solver": solver, "integers": integers, "time_limit": time_limit}
        self.worker: Any = None

    def available(self) -> bool:
        return ocean_environment() is not None

    def refuses(self, model: RandomForestClassifier, data: DataSet) -> str:
        return ""

    def prepare(self, model: RandomForestClassifier, data: DataSet) -> None:
        self.close()
        self.unproven = 0
        self.classes = list(model.classes_)
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            pickle.dump(self.settings | {"model": model, **columns_of(data)}, file)
            file.flush()
            command = [str(ocean_environment()), str(Path(__file__).with_name("ocean_worker.py")), file.name]
            self.worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            reply = self.receive()
        if not reply["ready"]:
            raise RuntimeError(f"{self.name}: {reply['error']}")
        self.processor = reply["processor"]

    def explain(self, x: np.ndarray, target: object) -> Answer:
        print(json.dumps({"x": x.tolist(), "target": self.classes.index(target)}), file=self.worker.stdin, flush=True)
        reply = self.receive()
        if "error" in reply:
            raise RuntimeError(f"{self.name}: {reply['error']}")
        found = reply["counterfactual"]
        self.unproven += reply["status"] not in ("OPTIMAL", "INFEASIBLE")
        self.processor = reply["processor"]
        return answer(x, None if found is None else np.array(found), 1, reply["seconds"])

    def receive(self) -> dict[str, Any]:
        """The worker's next line; it says hello once the model is built."""
        line = self.worker.stdout.readline()
        if not line:
            raise RuntimeError(f"oceanpy's process ended with code {self.worker.wait()}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        """End the process, if there is one."""
        if self.worker is not None:
            self.worker.communicate()
            self.worker = None


def columns_of(data: DataSet) -> dict[str, Any]:
    """Kinds, groups and ranges as plain values, which any Python can unpickle."""
    low, high = data.rows.min(axis=0).tolist(), data.rows.max(axis=0).tolist()
    return {"kinds": data.kinds, "groups": list(data.groups.values()), "low": low, "high": high}


def ocean_environment() -> Path | None:
    """The Python that has oceanpy, installed on the first call; None when there is no Python >= 3.12 or no wheel."""
    # The same scikit-learn on both sides, or the forest would not unpickle.
    packages = ["oceanpy==2.0.7", f"scikit-learn=={sklearn.__version__}"]
    return environment(".venv-peers-ocean", packages, newer_python)


def environment(
    name: str, packages: list[str], find_python: Callable[[], str | None] = lambda: sys.executable
) -> Path | None:
    """The Python of a virtual environment with these packages, made on the first call; None where that fails."""
    folder = BUILD / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    base = find_python()
    if base is None:
        return None
    create = [base, "-m", "venv", str(folder)]
    install = [str(python), "-m", "pip", "install", "--quiet", *packages]
    if not (succeeds(create) and succeeds(install)):
        return None
    ready.touch()
    return python


def newer_python() -> str | None:
    """A Python >= 3.12 on the path or under pyenv that starts and can make virtual environments."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = [shutil.which(f"python3.{minor}") for minor in (12, 13)]
    candidates = [*filter(None, on_path), *map(str, sorted(versions.glob("3.1[23].*/bin/python")))]
    probe = "import sys, ensurepip; sys.exit(sys.version_info < (3, 12))"
    return next((python for python in candidates if succeeds([python, "-c", probe])), None)


def succeeds(command: list[str]) -> bool:
    """Whether the command ends well; what it prints is dropped."""
    return subprocess.run(command, capture_output=True).returncode == 0
