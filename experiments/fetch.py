"""The paper's data sets from the repository that published them, at one commit and with checksums.

Only where no data folder has them; without a network the study runs on stand-ins, and every table says so.
"""

import hashlib
import os
import sys
import urllib.request
from pathlib import Path

from datasets import folder

COMMIT = "5798546d3d271fd5bdcb0b18653b85ee4a8def0c"
ADDRESS = "https://raw.githubusercontent.com/vidalt/BA-Trees/{commit}/src/resources/datasets/{name}/{file}"
SHA256 = {
    "Breast-Cancer-Wisconsin.full.csv": "342fdd1c1d04c011c556fa508f2b4263335d38d47606e22fb5698dc1e6927d08",
    "COMPAS-ProPublica.full.csv": "150cb44f28aa4f98a196b0d86ee7793ef6fdf9f3261f3cc9041fdd02706c5e12",
    "FICO.full.csv": "be8e297991323b5965fe03fde0e7df4eca520196971fbe9df3362e83b524739f",
    "Pima-Diabetes.full.csv": "1a58d4015f3b0e2b457e569a6712cb690c32965b51c3d89da368e145d507f09d",
    "Seeds.full.csv": "d8ae669fa210fc5363bfcc8aec9e4fe7c8a0c52d2d28ed78692a1d0e2b9236b6",
}


def ensure_data(own: Path, address: str = ADDRESS) -> None:
    """Make sure that the data folder has the study's files, or say that it will run without them."""
    if all((folder() / file).exists() for file in SHA256):
        return
    own.mkdir(parents=True, exist_ok=True)
    try:
        for file in SHA256:
            fetch(file, own / file, address)
    except (OSError, ValueError) as error:
        print(
            f"the data sets cannot be fetched ({error}): stand-ins of the same shape take their place", file=sys.stderr
        )
        return
    os.environ["CFMAPS_DATA"] = str(own)


def fetch(file: str, path: Path, address: str) -> None:
    """Download a file unless it is there; ValueError when it is not the one that is expected."""
    if not path.exists():
        url = address.format(commit=COMMIT, name=file.partition(".")[0], file=file)
        with urllib.request.urlopen(url, timeout=30) as answer:
            content = answer.read()
        check(file, content)
        path.write_bytes(content)
    check(file, path.read_bytes())


def check(file: str, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[file]:
        raise ValueError(f"{file} has the checksum {found}, expected {SHA256[file]}")
