"""How fast a map of a gigabyte opens, and answers its first question: each time in a process of its own.

python benchmarks/large_file.py [folder]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import cfmaps

N_NODES = 134_000_000
ASK = """
import sys, time, numpy
import cfmaps
row = numpy.load(sys.argv[2])[int(sys.argv[3])]
start = time.perf_counter()
cfmap = cfmaps.load(sys.argv[1])
opened = time.perf_counter()
found = cfmap.explain(row)
found.counterfactual
print(f"opened in {1e3 * (opened - start):.1f} ms, answered in {1e3 * (time.perf_counter() - opened):.1f} ms more")
"""


def main(folder: Path) -> None:
    """Make the file, then ask it one question each from several processes."""
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X[:, :10], y)
    cfmap = cfmaps.CounterfactualMap(model)
    print(cfmap.build(max_nodes=N_NODES))
    path, rows = folder / "large.cfmap", folder / "rows.npy"
    cfmap.save(path)
    np.save(rows, X[:, :10])
    print(f"{path.stat().st_size / 1e9:.2f} GB")
    for row in range(0, 500, 50):
        subprocess.run([sys.executable, "-c", ASK, path, rows, str(row)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
