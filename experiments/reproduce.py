"""Re-runs the study of the paper and writes tables, figures and a report; what was measured before is not again."""

import argparse
from pathlib import Path

from fetch import ensure_data
from plan import full, quick
from run import run
from study import Store
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
CELLS = HERE.parent / "build" / "experiments"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, 200 queries, a few sizes: minutes")
    parser.add_argument("--votes", choices=("soft", "hard"), default="soft", help="how the forests decide")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no measurement after this long")
    parser.add_argument("--report-only", action="store_true", help="write the report from what has been measured")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def main() -> None:
    options = parse()
    ensure_data(HERE.parent / "data")
    name = ("quick" if options.quick else "full") + ("" if options.votes == "soft" else "-hard")
    plan = (quick if options.quick else full)(options.votes)
    store = Store(CELLS / name)
    if options.again:
        store.forget()
    if not options.report_only:
        with threadpool_limits(1):
            run(plan, store, 60 * options.minutes)
    from report import write  # it draws, which the measurements must not wait for

    # The full run with the forest's own votes is the one that is kept with the sources.
    folder = HERE / "results" if name == "full" else HERE / "results" / name
    print(write(plan, store, folder))


if __name__ == "__main__":
    main()
