"""What the project promised itself, and whether this run kept it."""

from typing import TYPE_CHECKING

from compare import Beside

if TYPE_CHECKING:
    from bench import Result

COLD = [("treecf", "BC", 100), ("treecf", "PD", 100), ("oceanpy", "BC", 3000), ("oceanpy", "PD", 3000)]
COLD += [("treecf", "CP", 20), ("treecf", "FI", 20)]
WARM = [("treecf", "BC", 2000), ("treecf", "PD", 15000)]


def bars(results: "dict[str, Result]") -> list[list[str]]:
    """One line per bar: what, how much is needed, what was measured, met or not."""
    lines = [line for peer, name, least in COLD for line in cold_lines(results, peer, name, least)]
    lines += [line for peer, name, least in WARM for line in warm_lines(results, peer, name, least)]
    return lines + build_lines(results) + size_lines(results)


def cold_lines(results: "dict[str, Result]", peer: str, name: str, least: float) -> list[list[str]]:
    """A fresh map for every query: with the model read on both sides, and with both reading it every time."""
    fast = fastest(results, peer, name)
    what = f"cold, {name}, against {peer}"
    if fast is None:
        return [[what, f"{least:,} x", "not measured", ""]]
    return [
        at_least(f"{what}: search", least, fast.times_search),
        at_least(f"{what}: both read the model for every question", least, fast.times_fresh),
    ]


def warm_lines(results: "dict[str, Result]", peer: str, name: str, least: float) -> list[list[str]]:
    """The whole map: one question at a time, and many in one call on one thread."""
    fast = fastest(results, peer, name)
    what = f"warm, {name}, against {peer}"
    if fast is None:
        return [[what, f"{least:,} x", "not measured", ""]]
    return [
        at_least(f"{what}: one at a time", least, fast.times_warm),
        at_least(f"{what}: many in one call", least, fast.times_many),
    ]


def build_lines(results: "dict[str, Result]") -> list[list[str]]:
    """The whole BC map on one core, counted in treecf's queries."""
    fast = fastest(results, "treecf", "BC")
    what = "whole map of BC on one core, in treecf queries"
    if fast is None:
        return [[what, "< 3", "not measured", ""]]
    queries = results["BC"].whole.seconds / fast.run.mean
    return [[what, "< 3", f"{queries:.2f}", met(queries < 3)]]


def size_lines(results: "dict[str, Result]") -> list[list[str]]:
    """Bytes per node of every map."""
    sizes = {name: result.whole.bytes_per_node for name, result in results.items()}
    return [[f"bytes per node, {name}", "<= 16", f"{size:.1f}", met(size <= 16)] for name, size in sizes.items()]


def fastest(results: "dict[str, Result]", peer: str, name: str) -> Beside | None:
    """Among a peer's settings the one with the smallest mean."""
    found = [pair for pair in results[name].peers if pair.run.peer.startswith(peer)] if name in results else []
    return min(found, key=lambda pair: pair.run.mean, default=None)


def at_least(what: str, least: float, ratio: float) -> list[str]:
    shown = f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:,.1f} x"
    return [what, f"{least:,} x", shown, met(ratio >= least)]


def met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"
