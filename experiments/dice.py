"""DiCE (Mothilal et al. 2020) by its own package, in a process and an environment of its own."""

import json
import pickle
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from peers import Answer, answer, environment
from problem import Problem

VERSION = "0.12"


@cache
def dice_environment() -> Path | None:
    """The Python that has dice-ml, installed on the first call; None where it cannot be."""
    return environment(".venv-peers-dice", [f"dice-ml=={VERSION}", f"scikit-learn=={sklearn.__version__}"])


class Worker:
    """The process, kept for all problems, as importing the package takes seconds."""

    running: subprocess.Popen[str] | None = None

    @classmethod
    def ask(cls, **message: Any) -> dict[str, Any]:
        if cls.running is None or cls.running.poll() is not None:
            command = [str(dice_environment()), str(Path(__file__).with_name("dice_worker.py"))]
            cls.running = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        print(json.dumps(message), file=cls.running.stdin, flush=True)
        line = cls.running.stdout.readline()
        if not line:
            raise RuntimeError(f"dice-ml's process ended with code {cls.running.wait()}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    @classmethod
    def close(cls) -> None:
        if cls.running is not None:
            cls.running.communicate()
            cls.running = None


class Dice:
    """One method of the package with its default settings, one counterfactual a query."""

    norms = ("l1",)

    def __init__(self, method: str) -> None:
        self.method = method
        self.name = f"DiCE {method}"

    def available(self) -> bool:
        return dice_environment() is not None

    def prepare(self, problem: Problem) -> None:
        told = {"rows": problem.train, "labels": problem.train_labels, "model": problem.model}
        told |= {"kinds": problem.data.kinds, "groups": list(problem.data.groups.values())}
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            pickle.dump(told, file)
            file.flush()
            self.prepared = Worker.ask(problem=file.name)["prepared"]
        self.facts: dict[str, Any] = {"errors": []}

    def explain(self, x: np.ndarray, target: Any, norm: str) -> Answer:
        reply = Worker.ask(x=x.tolist(), target=int(target), method=self.method)
        if reply["error"] and reply["error"] not in self.facts["errors"]:
            self.facts["errors"].append(reply["error"])
        found = reply["counterfactual"]
        return answer(x, None if found is None else np.array(found), 1, reply["seconds"])
