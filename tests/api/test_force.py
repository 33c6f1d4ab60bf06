from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from django_latch import ainventory, latch
from tests.api.test_tokens import LOGIN, signed_in


@override_settings(ROOT_URLCONF="tests.api.urls", DJANGO_LATCH=LOGIN)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ended", [1, 2])
def test_a_lease_that_ends_meanwhile_saves_no_other(
    monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    client = signed_in("view_activelock", "release_activelock")
    leases = [latch("job", limit=2, timeout=0).acquire() for _ in range(2)]
    look = ainventory.aget

    async def look_and_be_late(*args: Any, **options: Any) -> Any:
        seen = await look(*args, **options)
        for lease in leases[:ended]:
            await lease.arelease()
        return seen

    monkeypatch.setattr(ainventory, "aget", look_and_be_late)
    body = {"force": True, "reason": "stuck"}
    answer = client.post("/v1/latch/job/release", body, content_type="application/json")
    monkeypatch.undo()
    assert answer.status_code == (200 if ended == 1 else 404)
    assert latch("job").inspect() is None
    for lease in leases[ended:]:
        lease.leave()
