"""How a number of ours stands beside the paper's in a cell of a table."""

import math
from collections.abc import Sequence


def beside(ours: float, paper: float | None) -> str:
    """Ours in bold, the paper's, and how many times smaller ours is.

    >>> beside(2.0, 556.7), beside(1.0, 1.0), beside(0.5, None)
    ('**2** (556.7; x278)', '**1** (1; x1)', '**0.5** (-)')
    """
    if not math.isfinite(ours):
        return "-" if paper is None else f"- ({number(paper)})"
    if paper is None:
        return f"**{number(ours)}** (-)"
    return f"**{number(ours)}** ({number(paper)}; {times(paper, ours)})"


def times(paper: float, ours: float) -> str:
    """The paper's figure over ours."""
    if paper == ours:
        return "x1"
    if ours == 0:
        return "x inf"
    return f"x{number(paper / ours)}"


def number(value: float) -> str:
    """Three digits, more where they stand before the point.

    >>> [number(each) for each in (1234567.0, 42983.2, 0.00123, 0.0, 3.14159, 27.0)]
    ['1,234,567', '42,983', '0.00123', '0', '3.14', '27']
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    shown = f"{value:,.{min(digits, 6)}f}" if abs(value) >= 1e-6 else f"{value:.1e}"
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right, the first column to the left."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows)) + "\n"
