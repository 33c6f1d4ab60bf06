from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from tests.admin.pages import ROLES
from tests.holding import Hold, holding


@pytest.fixture
def client_of(db: None) -> Callable[[str], Client]:
    """A client logged in as somebody with a role."""

    def make(role: str) -> Client:
        client = Client()
        users = get_user_model().objects
        if role == "superuser":
            client.force_login(users.create_superuser("root"))
        elif role != "anonymous":
            user = users.create_user(role.replace(" ", "-"), is_staff=True)
            codenames = ROLES[role]
            user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
            assert user.user_permissions.count() == len(codenames)
            client.force_login(user)
        return client

    return make


@pytest.fixture
def client(client_of: Callable[[str], Client]) -> Client:
    return client_of("superuser")


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Take a lock as if the process with these facts had done so."""
    with holding() as take:
        yield take
