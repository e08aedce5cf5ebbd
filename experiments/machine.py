"""What the study ran on."""

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("cfmaps", "scikit-learn", "numpy", "treecf", "dtai-veritas")


def describe() -> str:
    """A line for the machine, one for the software."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    found = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}; "
        f"load when the report was written: {load}. Python {platform.python_version()}, {found}. "
        "oceanpy 2.0.7 and dice-ml 0.12 run in processes and environments of their own."
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
