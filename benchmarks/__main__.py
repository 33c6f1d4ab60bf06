"""Run the scenarios and print medians and ratios: `python -m benchmarks`.

The exit code is 1 when the median ratio of a peer is above the limit that its scenario sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from statistics import median

from benchmarks.environment import describe, project
from benchmarks.measure import Result, Scenario, run

#: Modules with a `scenario()`; they are imported once Django is configured.
SCENARIOS = ("uncontended",)


def main() -> int:
    options = arguments()
    print(describe())
    passed = True
    with project():
        for name in options.scenario or SCENARIOS:
            scenario = import_module(f"benchmarks.{name}").scenario()
            results = run(scenario, rounds=options.rounds, calls=options.calls)
            print(f"\n{scenario.title}: median of {options.rounds} rounds of {options.calls}")
            report(scenario, results)
            passed &= judge(scenario, results)
    return 0 if passed else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: all")
    parser.add_argument("--rounds", type=int, default=60, help="turns of each peer (60)")
    parser.add_argument("--calls", type=int, default=100, help="operations in one turn (100)")
    return parser.parse_args()


def report(scenario: Scenario, results: Mapping[str, Result]) -> None:
    print(f"  {'':<28} {'time':>11} {'ratio':>7}  quartiles of the ratio")
    for name, result in results.items():
        first, third = result.spread
        time = f"{median(result.seconds) * 1e6:.0f} µs"
        print(f"  {name:<28} {time:>11} {result.ratio:7.2f}  {first:.2f} - {third:.2f}")


def judge(scenario: Scenario, results: Mapping[str, Result]) -> bool:
    """Say for each limit whether it holds; True when all do."""
    passed = True
    for name, limit in scenario.limits.items():
        ratio = results[name].ratio
        verdict = "ok" if ratio <= limit else "TOO SLOW"
        print(f"  {verdict}: {name} / {scenario.baseline} = {ratio:.2f}, limit {limit:.2f}")
        passed &= ratio <= limit
    return passed


if __name__ == "__main__":
    sys.exit(main())
