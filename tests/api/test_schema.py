"""The OpenAPI document says what the server does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from django_latch.api import bodies
from django_latch.api.problems import CODES
from tests.api.conftest import Api
from tests.api.server import serving

DOCUMENT = json.loads((files("django_latch.api") / "openapi.json").read_text("utf-8"))
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_it_is_served_as_it_is(api: Api) -> None:
    assert api.http.get("/v1/openapi.json").json() == DOCUMENT


def test_it_knows_every_code_and_field() -> None:
    assert set(SCHEMAS["Problem"]["properties"]["code"]["enum"]) == set(CODES)
    assert set(SCHEMAS["Acquire"]["properties"]) == set(bodies.acquire_fields(1, 1))
    assert set(SCHEMAS["Release"]["properties"]) == set(bodies.RELEASE_FIELDS)


def test_every_code_is_in_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs/reference/http-api.md"
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", page.read_text(), re.MULTILINE)
    assert {code: int(status) for status, code in rows} == {
        code: status for code, (status, _, _) in CODES.items()
    }


@pytest.mark.api
def test_schemathesis_finds_nothing(folder: Path, token: str, tmp_path: Path) -> None:
    """Hundreds of requests, valid and not: no failure, no undocumented status."""
    config = Path(__file__).with_name("schemathesis.toml")
    with serving(folder, HTTP={"MAX_WAIT": 0.1}) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from schemathesis.cli import schemathesis as s; s()"),
                *("--config-file", str(config)),
                *("run", f"{server.url}/v1/openapi.json"),
                *("-H", f"Authorization: Bearer {token}"),
                *("--max-examples", "30", "--request-timeout", "20"),
                *("--generation-database", "none"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"Tested: +6", done.stdout)
