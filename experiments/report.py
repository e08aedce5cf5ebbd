"""The report: every table and figure of the paper with ours beside it, and what differs and why."""

import csv
from pathlib import Path

import figure
import machine
import report_tables as tables
from cells import table
from figures import draw_cumulative, draw_latency, draw_over
from plan import NAMES, Plan
from promises import promises
from study import Store
from summary import Lines, lines_of

EXAMPLES = """The paper's four questions on the integers 1 to 10, asked of the forest of seed 0. It is not the paper's
forest, so classes and costs differ; what carries over is how far each system is from the optimum, and that there may be
many optima.

"""
FEW_SEEDS = """OCEAN, treecf and DiCE are asked about one seed, but about all seeds of 100 trees of depth 5, whose means
take in harder forests: the bumps there are theirs, not the size's.
"""
REMARKS = Path(__file__).with_name("remarks.md")


def write(plan: Plan, store: Store, folder: Path, *, pixels: int = 800) -> Path:
    """Write the CSV file, the pictures and the report from what is there; gives the path of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    found = lines_of(plan, store)
    lines = Lines(found)
    with (folder / "measurements.csv").open("w", newline="") as file:
        head, rows = tables.all_measurements(found)
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    draw_latency(folder / "latency.png", lines)
    draw_cumulative(folder / "cumulative.png", lines, store)
    draw_over(folder / "trees.png", lines, "trees")
    draw_over(folder / "depth.png", lines, "depth")
    figure.draw(folder / "maps.png", pixels=pixels)
    path = folder / "REPORT.md"
    path.write_text(text(plan, store, lines))
    return path


def text(plan: Plan, store: Store, lines: Lines) -> str:
    parts = [opening(plan, store), kept(lines), section("Table 1: data sets", tables.data_sets()), main_table(lines)]
    parts += [
        section(
            "Figure 3: latency of a query by norm",
            picture("latency.png", "Milliseconds per query in three norms"),
            "Bars are means over seeds, whiskers the fastest and the slowest seed.\n",
            tables.latency(lines),
        ),
        section(
            "Cumulative time over queries",
            picture("cumulative.png", "Seconds over the number of counterfactuals, preparation included"),
            "Beyond the last query that its budget allowed, a system goes on at its mean pace.\n",
        ),
        section(
            "Time over the number of trees",
            picture("trees.png", "Seconds for 1,000 counterfactuals over the number of trees"),
            FEW_SEEDS,
            tables.scaling(lines, "trees"),
        ),
        section(
            "Time over the depth",
            picture("depth.png", "Seconds for 1,000 counterfactuals over the depth of 100 trees"),
            FEW_SEEDS,
            tables.scaling(lines, "depth"),
        ),
        section("KD-trees", tables.kd_trees(lines)),
        section("Quality over the number of trees", tables.quality(lines, "trees")),
        section("Quality over the depth", tables.quality(lines, "depth")),
        section("Examples on breast masses", examples(plan, store)),
        section("Counterfactual maps in the plane: Figure 1 and the appendix", maps()),
        section("BA-Trees: fast and smallest partitions", tables.partitions(plan, store)),
        REMARKS.read_text(),
    ]
    return "\n".join(parts)


def opening(plan: Plan, store: Store) -> str:
    done = sum(store.has(setting, name) for setting, name, _ in plan.cells)
    seeds = len({setting.seed for setting, _, _ in plan.cells})
    return f"""# The study of the paper, re-run

{machine.describe()}

{done:,} of {len(plan.cells):,} measurements are there; seeds: {seeds}; {plan.n_queries:,} queries a forest, fewer
where a system's budget ran out: the tables say how many. Everything runs on one thread, and the machine was shared with
other work: seconds are processor time, systems were measured in turn, forest by forest, and what others do to caches
still stretches all times by a factor that varies. Ratios within this run are firmer than its seconds.

A cell holds **ours** (the paper's; the paper's over ours): x278 means that ours is 278 times smaller. T_P is the
preparation of a forest, T_1000 the time of 1,000 queries (the mean of those asked), %F the queries without a valid
answer, D the total L1 distance of the valid answers over that of the optima. Numbers are means over seeds.
"""


def kept(lines: Lines) -> str:
    return section("What was promised", table(["what", "asked", "measured", ""], promises(lines)))


def main_table(lines: Lines) -> str:
    parts = [f"### {name}\n\n{tables.table_2(name, lines)}" for name in NAMES]
    parts.append(f"### OCEAN's mixed-integer program\n\n{tables.mixed_integer(lines)}")
    return section("Table 2: 100 trees of depth 5", *parts)


def examples(plan: Plan, store: Store) -> str:
    return EXAMPLES + tables.examples(store, plan.cells[0][0].votes)


def maps() -> str:
    return picture("maps.png", "Decision regions of two trees on blobs, and the maps in L1, L2 and Linf") + (
        "\nA forest of two trees of depth 5 on four blobs, as in the paper. From everywhere inside a cell the smallest "
        "change leads into the same box of the grey class.\n"
    )


def section(title: str, *parts: str) -> str:
    return f"## {title}\n\n" + "\n".join(parts)


def picture(file: str, alt: str) -> str:
    return f"![{alt}]({file})\n"
