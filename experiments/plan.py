"""Which forests and systems the study measures, and how many seconds each may take."""

from dataclasses import dataclass, field

from problem import Setting

NAMES = ("BC", "CP", "FI", "PD", "SE")
TREES = (5, 10, 20, 50, 100)
DEPTHS = (2, 3, 4, 5, 6, 7)
UNLIMITED = 600.0

# Seconds per forest and norm on the forests of 100 trees of depth 5, which Table 2 is about.
MAIN = {
    "cf-maps": UNLIMITED,
    "warm": UNLIMITED,
    "warm-batch": UNLIMITED,
    "growing": UNLIMITED,
    "cold": 2.0,
    "lire": 4.0,
    "ft": 2.0,
    "ft-tree": 1.5,
    "dice-random": 3.0,
    "dice-genetic": 2.5,
    "dice-kdtree": 2.5,
    "ocean-cp": 8.0,
    "treecf": 3.0,
    "veritas": 2.0,
}
# On all other sizes, for the figures and tables over trees and depth.
OTHER = {"cf-maps": UNLIMITED, "warm": UNLIMITED, "growing": UNLIMITED, "lire": 1.5, "ft": 0.7, "ft-tree": 0.7}
# For some seeds of the other sizes only.
OTHER_SLOW = {"dice-random": 2.0, "ocean-cp": 3.0, "treecf": 1.0}
# Where the free licence of the mixed-integer solver may do.
SMALL = {"ocean-mip": 5.0}


# Measurements that are no system: sizes of partitions, and the four questions about breast masses.
PARTITIONS = ((3, 2), (5, 2), (3, 3))


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells of the study, the most important first, and how many queries each may answer."""

    n_queries: int
    extras: tuple[str, ...] = ("partition", "examples")
    cells: list[tuple[Setting, str, float]] = field(default_factory=list)

    def add(self, setting: Setting, systems: dict[str, float], factor: float = 1.0) -> None:
        self.cells.extend((setting, system, seconds * factor) for system, seconds in systems.items())


def full(votes: str) -> Plan:
    """Five seeds, a thousand queries; for the slow peers of the other sizes one seed."""
    plan = Plan(1000)
    for seed in range(5):
        for name in NAMES:
            plan.add(Setting(name, seed=seed, votes=votes), MAIN)
    for seed in range(5):
        for trees, depth in other_sizes(TREES, DEPTHS):
            for name in NAMES:
                setting = Setting(name, trees, depth, seed, votes)
                plan.add(setting, OTHER | (OTHER_SLOW if seed == 0 else {}))
    for name in NAMES:
        plan.add(Setting(name, 5, 3, 0, votes), SMALL)
        plan.add(Setting(name, 100, 5, 0, votes), SMALL)
    add_extras(plan, PARTITIONS, votes)
    return plan


def quick(votes: str) -> Plan:
    """One seed, 200 queries, a few sizes, little time for everybody."""
    plan = Plan(200)
    for name in NAMES:
        plan.add(Setting(name, votes=votes), MAIN, factor=0.3)
    for trees, depth in other_sizes((5, 20, 100), (3, 5)):
        for name in NAMES:
            plan.add(Setting(name, trees, depth, 0, votes), OTHER, factor=0.3)
    plan.add(Setting("BC", 5, 3, 0, votes), SMALL, factor=0.3)
    add_extras(plan, PARTITIONS[:2], votes)
    return plan


def add_extras(plan: Plan, sizes: tuple[tuple[int, int], ...], votes: str) -> None:
    plan.add(Setting("BC", votes=votes), {"examples": UNLIMITED})
    for name in NAMES:
        for trees, depth in sizes:
            plan.add(Setting(name, trees, depth, 0, votes), {"partition": UNLIMITED})


def other_sizes(trees: tuple[int, ...], depths: tuple[int, ...]) -> list[tuple[int, int]]:
    """More trees of depth 5, then other depths of 100 trees."""
    return [(n, 5) for n in trees if n != 100] + [(100, depth) for depth in depths if depth != 5]
