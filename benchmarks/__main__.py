"""Run the scenarios and print what they found: `python -m benchmarks`.

Every scenario runs all locks side by side on one server of its own, in turns. A scenario that
misses a goal by more than the goal's margin is measured again, twice at most. The exit code is 1
when it misses it each time, unless the machine was busy with something else or only a report is
wanted.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from benchmarks.environment import describe, project
from benchmarks.figures import BUSY, Table

#: Modules with a `measure(effort)`; they are imported once Django is configured.
SCENARIOS = (
    "uncontended",
    "handover",
    "contended",
    "takeover",
    "dead_waiter",
    "celery_tasks",
    "http",
    "snapshot",
)

#: How often a scenario that misses a goal is measured.
ATTEMPTS = 3


def main() -> int:
    options = arguments()
    print(describe())
    with project():
        missed = [name for name in options.scenario or SCENARIOS if not run(name, options.effort)]
    if missed:
        print(f"\nMissed each time: {', '.join(missed)}")
    return 1 if missed and not options.report else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: all")
    parser.add_argument("--effort", type=float, default=1.0, help="rounds, as a multiple (1)")
    parser.add_argument("--report", action="store_true", help="a missed goal is no failure")
    return parser.parse_args()


def run(name: str, effort: float) -> bool:
    """Measure a scenario and print it; whether its goals are met, or nothing can be said."""
    measure = import_module(f"benchmarks.{name}").measure
    disturbed = False
    for attempt in range(1, ATTEMPTS + 1):
        table: Table = measure(effort)
        print(f"\n{table}", flush=True)
        if table.busy:
            print(
                f"  the machine was busy: raw rounds scatter by {table.scatter:.1f}, not {BUSY:g}"
            )
        if not table.missed:
            return True
        disturbed |= table.busy
        if attempt < ATTEMPTS:
            print("  measured again:")
    if disturbed:
        print("  not counted as missed, for the machine was busy")
    return disturbed


if __name__ == "__main__":
    sys.exit(main())
