"""The words that the options of a single flight may have, side by side of a call's way."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from django_latch.core.timing import seconds
from django_latch.exceptions import LatchValueError

#: Longest duration an option may name, in seconds; the settings MAX_TTL and so on are stricter.
_LONGEST: Final = 10 * 365 * 86400

#: at -> the sides on which a call may meet another one.
SIDES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("run",),
    "enqueue": ("enqueue",),
    "both": ("enqueue", "run"),
}
#: side -> what a call that finds the lock held may do there.
POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("skip", "raise", "retry", "wait", "rerun"),
    "enqueue": ("skip", "raise", "rerun"),
}
#: side -> what a call that cannot reach the lock store may do there.
OUTAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("retry", "raise", "run"),
    "enqueue": ("raise", "run"),
}


def word(option: str, value: object, allowed: tuple[str, ...]) -> str:
    """`value`, if it is one of the words allowed.

    Raises:
        LatchValueError: it is not; names the option, the value, and the words, with a suggestion.
    """
    if isinstance(value, str) and value in allowed:
        return value
    near = get_close_matches(str(value), allowed, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise LatchValueError(
        f"single_flight: {option} must be one of {', '.join(map(repr, allowed))}, "
        f"not {value!r:.80}{hint}"
    )


def conflicts(at: str, value: object) -> dict[str, str]:
    """What happens on each side to a call that finds the lock held.

    Parameters:
        at: the option `at`.
        value: the option `on_conflict`: a word for every side, or a dict by side.

    Raises:
        LatchValueError: a side that `at` does not have, or a word that its side does not have.
    """
    sides = SIDES[at]
    if isinstance(value, Mapping):
        _check_sides("on_conflict", value, sides, at)
        return {
            side: word(f"on_conflict[{side!r}]", value.get(side, "skip"), POLICIES[side])
            for side in sides
        }
    plain = word("on_conflict", value, POLICIES["run"])
    if any(plain not in POLICIES[side] for side in sides):
        remedy = (
            f"on_conflict={{'enqueue': 'skip', 'run': {plain!r}}}"
            if at == "both"
            else f"one of {', '.join(map(repr, POLICIES['enqueue']))}"
        )
        raise LatchValueError(
            f"single_flight: on_conflict={plain!r} is for the run, and at={at!r} takes the lock "
            f"when the call is sent; write {remedy}"
        )
    return dict.fromkeys(sides, plain)


def outages(value: object) -> dict[str, str]:
    """What happens on each side to a call that cannot reach the lock store.

    Parameters:
        value: the option `on_outage`: a word, or a dict by side. The word ``"retry"`` means
            ``"raise"`` where the call is sent: there is no message yet that could come again.

    Raises:
        LatchValueError: an unknown side or word.
    """
    if isinstance(value, Mapping):
        _check_sides("on_outage", value, tuple(OUTAGES), "both")
        return {
            "enqueue": word(
                "on_outage['enqueue']", value.get("enqueue", "raise"), OUTAGES["enqueue"]
            ),
            "run": word("on_outage['run']", value.get("run", "retry"), OUTAGES["run"]),
        }
    plain = word("on_outage", value, OUTAGES["run"])
    return {"enqueue": "raise" if plain == "retry" else plain, "run": plain}


def duration(option: str, value: Any, least: float) -> float:
    """Seconds of an option.

    Raises:
        LatchValueError: no duration, or none of an allowed length.
    """
    return seconds(value, f"single_flight: {option}", least=least, most=_LONGEST)


def _check_sides(option: str, value: Mapping[Any, Any], sides: tuple[str, ...], at: str) -> None:
    for side in value:
        if side not in sides:
            known = " and ".join(map(repr, sides))
            raise LatchValueError(
                f"single_flight: {option} has {side!r}, but at={at!r} has the side {known} only; "
                "leave it out"
            )
