"""The instruments: what goes wrong on a page is noted, and faint texts are found."""

from __future__ import annotations

import pytest

from tests.admin.pages import LIST
from tests.browser.conftest import Visiting

pytestmark = pytest.mark.browser

BREACHES = {
    "an inline script": "e => { e = document.createElement('script'); e.text = '1'; return e }",
    "an inline style": "e => { e = document.createElement('style'); e.append('p {}'); return e }",
    "a picture from elsewhere": "e => { e = new Image(); e.src = 'http://127.0.0.1:9/'; return e }",
}


@pytest.mark.parametrize("breach", BREACHES)
def test_the_policy_is_in_force_and_breaches_are_noted(visit: Visiting, breach: str) -> None:
    seen = visit()
    page = seen.go(LIST)
    with page.expect_console_message():
        page.evaluate(f"document.body.append(({BREACHES[breach]})())")
    assert any("Content Security Policy" in error for error in seen.errors)
    seen.errors.clear()


def test_errors_of_scripts_and_missing_pages_are_noted(visit: Visiting) -> None:
    seen = visit()
    page = seen.go(LIST)
    with page.expect_event("pageerror"):
        page.evaluate("setTimeout(() => { throw Error('oops') })")
    seen.go("/nowhere/")
    assert any("oops" in error for error in seen.errors)
    assert f"404: {seen.site}/nowhere/" in seen.errors
    seen.errors.clear()


@pytest.mark.parametrize(
    ("style", "found"),
    [
        ("color: #767676; background: white", []),
        ("color: #777; background: white", [4.48]),
        ("color: #777; background: white; font-size: 24px", []),
        ("color: rgb(0 0 0 / 40%); background: white", [2.85]),
        ("color: white; background: white", [1]),
        ("color: white; background: white; visibility: hidden", []),
    ],
)
def test_faint_texts_are_found(visit: Visiting, style: str, found: list[float]) -> None:
    seen = visit()
    page = seen.go(LIST)
    page.evaluate(
        """style => {
            const text = document.createElement("p");
            text.style.cssText = style;
            text.textContent = "some text";
            document.body.append(text);
        }""",
        style,
    )
    assert [one["contrast"] for one in seen.faint("body > p")] == found


def test_what_hangs_over_the_edge_is_found(visit: Visiting) -> None:
    seen = visit(width=400)
    page = seen.go(LIST)
    assert seen.sideways() == 0
    page.evaluate("document.body.style.minWidth = '500px'")
    assert seen.sideways() > 0
