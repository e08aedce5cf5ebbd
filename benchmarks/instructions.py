"""How many instructions the core spends on a box, counted by callgrind, and how many boxes a core could do at that.

Run as a script it is the program that is counted: it grows the map of a pickled ensemble up to a number of nodes.
"""

import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cfmaps import Ensemble, Features, Lattice, Partition

# What a core of the last ten years can sustain when nothing waits; few programs get there.
PER_CYCLE = 4.0


def limit(instructions: float, clock: float, *, per_cycle: float = PER_CYCLE) -> float:
    """Boxes per second of a core that never waits.

    >>> limit(500.0, 2.5e9)
    20000000.0
    """
    return clock * per_cycle / instructions


def clock() -> float:
    """The core's clock in hertz: measured where there is a compiler, as Linux reports it otherwise.

    The two differ: a virtual machine reports a nominal clock and its processor may run faster.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return reported_clock()
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "clock"))
        subprocess.run([compiler, "-O2", str(Path(__file__).with_name("clock.c")), "-o", program], check=True)
        return max(float(subprocess.run([program], capture_output=True, check=True).stdout) for _ in range(3))


def reported_clock() -> float:
    """What Linux reports; 2.5e9 where it does not."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"cpu MHz\s*:\s*([\d.]+)", path.read_text()) if path.exists() else None
    return float(found.group(1)) * 1e6 if found else 2.5e9


def per_box(ensemble: Ensemble, *, small: int = 20_000, large: int = 420_000) -> float | None:
    """Instructions per box of a growing map; None without valgrind.

    It is the difference of two runs, so that starting Python and reading the ensemble do not count. valgrind hides
    AVX-512 from the program, so what is counted is the AVX2 code; a processor that has AVX-512 needs fewer.
    """
    if shutil.which("valgrind") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "ensemble.pickle")
        saved.write_bytes(pickle.dumps(ensemble))
        (few, spent), (many, spent_more) = (counted(saved, size) for size in (small, large))
    return (spent_more - spent) / (many - few) if many > few else None


def counted(saved: Path, max_nodes: int) -> tuple[int, int]:
    """Nodes of the map, and instructions of the process that grew it."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*tool, sys.executable, __file__, str(saved), str(max_nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if collected is None:
        raise RuntimeError(f"callgrind printed no count: {done.stderr[-500:]}")
    return int(done.stdout), int(collected.group(1))


def grow(saved: Path, max_nodes: int) -> int:
    """Grow the map of an ensemble on one core; returns its nodes."""
    ensemble = pickle.loads(saved.read_bytes())
    partition = Partition(Lattice.of(ensemble, Features.numeric(ensemble.n_features)))
    partition.build(max_nodes=max_nodes, n_threads=1)
    return partition.n_nodes


if __name__ == "__main__":
    print(grow(Path(sys.argv[1]), int(sys.argv[2])))
