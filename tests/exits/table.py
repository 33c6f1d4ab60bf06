"""Turn measured times into a page: ``python -m tests.exits.table FILE... >PAGE``."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEAD = """\
# How soon a lock is free

However a job ends, its lock ends too. Each row is a way to end, each column a pool of Celery's and
a broker; the figure is the longest time in seconds from that end until somebody else could have the
lock. The locks had a TTL of 60 seconds, and of 3 where the row says TTL, so a lock that was left
behind would show.

- *at once*: the run gives it back itself.
- *about 1 s*: a child process was killed. Its worker notices, and shortens the lock.
- *TTL*: the whole worker was killed, and nobody is left to tell.
- *enqueue_ttl*: a job that is lost in the queue; here it was 3 seconds.

An empty cell: the pool or the broker does not have this way to end. `make test-exits` measures a
column set again, `make matrix-full` all of them, and `make exits-table` writes this page.
"""

SIDES = (
    ("The lock of a run: `at='run'`", ("run",)),
    ("The lock from sending on: `at='enqueue'` and `at='both'`", ("enqueue", "both")),
)

Cell = tuple[str, str]


def main(paths: Iterable[str]) -> None:
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    parts = [HEAD]
    for celery, times in sorted(_by_version(documents).items(), reverse=True):
        for title, places in SIDES:
            some = [facts for facts in times if facts["at"] in places]
            if some:
                parts.append(f"## Celery {celery}. {title}\n\n{_table(some)}\n")
    sys.stdout.write("\n".join(parts))


def _by_version(documents: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for document in documents:
        found[document["celery"]] += document["times"]
    return found


def _table(times: Iterable[Mapping[str, Any]]) -> str:
    cells: dict[str, dict[Cell, float]] = {}
    bounds: dict[str, str] = {}
    columns: list[Cell] = []
    for facts in times:
        row, column = facts["row"], (facts["pool"], facts["broker"])
        seconds = cells.setdefault(row, {})
        seconds[column] = max(facts["seconds"], seconds.get(column, 0.0))
        bounds[row] = facts["bound"]
        if column not in columns:
            columns.append(column)
    order = ("prefork", "threads", "solo", "gevent")
    columns.sort(key=lambda column: (column[1] == "rabbitmq", order.index(column[0])))
    heads = ["end", "free", *(_head(*column) for column in columns)]
    lines = [heads, ["---"] * len(heads)]
    for row in sorted(cells, key=lambda row: (_RANK.get(bounds[row], 9), row.strip("`").lower())):
        figures = [f"{cells[row][c]:.2f}" if c in cells[row] else "" for c in columns]
        lines.append([row, bounds[row], *figures])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


#: Rows are sorted by how soon they should be.
_RANK = {"at once": 0, "about 1 s": 1, "TTL": 2, "enqueue_ttl": 3}


def _head(pool: str, broker: str) -> str:
    return f"{pool}, RabbitMQ" if broker == "rabbitmq" else f"{pool}, Redis"


if __name__ == "__main__":
    main(sys.argv[1:])
