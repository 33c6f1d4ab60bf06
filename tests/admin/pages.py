"""Reading admin pages as a browser would."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client

ROLES = {
    "superuser": None,
    "view-only": ("view_activelock",),
    "release-only": ("release_activelock",),
    "view and release": ("view_activelock", "release_activelock"),
    "staff without permission": (),
    "anonymous": None,
}

LIST = "/admin/django_latch/activelock/"


class Page(HTMLParser):
    """The tags of a page, and the fields of its forms."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []
        self.feed(response.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        if tag == "form":
            self.forms.append((given.get("action", ""), []))
        elif tag == "input" and self.forms and given.get("name"):
            self.forms[-1][1].append((given["name"], given.get("value", "")))

    def confirmation(self) -> tuple[str, dict[str, Any]]:
        """Where the confirmation form is sent, and with what."""
        for action, fields in self.forms:
            leases = [value for name, value in fields if name == "lease"]
            if leases:
                return action, {"lease": leases}
        raise AssertionError("this is no confirmation page")


def ask(client: Client, name: str, **more: object) -> tuple[str, dict[str, Any]]:
    """Open the confirmation page of a lock."""
    response = client.get("/admin/django_latch/activelock/release/", {"name": name, **more})
    assert response.status_code == 200
    return Page(response).confirmation()


def messages_of(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def names_of(response: Any) -> list[str]:
    """The keys on a list page, in order."""
    return [row.name for row in response.context["cl"].result_list]
