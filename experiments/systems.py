"""Every system of the study behind one interface.

A system has a ``name`` and the ``norms`` it answers in; ``available()`` says whether it can run here, ``refuses
(problem)`` why it cannot take a problem (or ""), ``prepare(problem)`` does what is done once per forest, ``explain(x,
target, norm)`` gives an `Answer` with the seconds of its own search, and ``facts`` what else is worth a table.
``explain_all`` answers all rows in one call where a system can; ``confirmed`` fetches the rows of answers whose search
does not return them; ``gap`` is the cost of another category, where it is not that of the columns.
"""

from typing import Any

import clock
import numpy as np
from cfmaps_systems import CfMaps, Cold, Growing, Warm, WarmInOneCall
from dice import Dice
from lire import Lire
from peers import Answer, Ocean, Treecf, Veritas
from problem import Problem
from tweaking import FeatureTweaking


class Peer:
    """A peer of the benchmarks."""

    def __init__(self, peer: Any, *, gap: float | None = None) -> None:
        self.peer, self.name, self.norms, self.gap = peer, peer.name, (peer.norm,), gap
        self.facts: dict[str, Any] = {}

    def available(self) -> bool:
        return self.peer.available()

    def refuses(self, problem: Problem) -> str:
        return self.peer.refuses(problem.model, problem.data)

    def prepare(self, problem: Problem) -> None:
        spent, _ = clock.seconds(lambda: self.peer.prepare(problem.model, problem.data))
        self.prepared = getattr(self.peer, "processor", spent)

    def explain(self, x: np.ndarray, target: Any, norm: str) -> Answer:
        spent, found = clock.seconds(lambda: self.peer.explain(x, target))
        self.facts = {"unproven": int(self.peer.unproven)}
        # A peer in a process of its own says how long that was busy.
        return found._replace(seconds=getattr(self.peer, "processor", spent))

    def close(self) -> None:
        if hasattr(self.peer, "close"):
            self.peer.close()


def all_systems() -> dict[str, Any]:
    """By the short name that files and plans use."""
    return {
        "cf-maps": CfMaps(),
        "cold": Cold(),
        "growing": Growing(),
        "warm": Warm(),
        "warm-batch": WarmInOneCall(),
        "ocean-cp": Peer(Ocean(time_limit=300), gap=1.0),
        "ocean-mip": Peer(Ocean(solver="MIP", time_limit=300), gap=1.0),
        "treecf": Peer(Treecf(time_limit=30)),
        "veritas": Peer(Veritas(time_limit=30)),
        "lire": Lire(),
        "ft": FeatureTweaking(forest_check=True),
        "ft-tree": FeatureTweaking(forest_check=False),
        "dice-random": Dice("random"),
        "dice-genetic": Dice("genetic"),
        "dice-kdtree": Dice("kdtree"),
    }
