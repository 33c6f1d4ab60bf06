"""What the pages promise exists: commands, files, names, versions."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, code_blocks, page_name, table, words

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)


def test_readme_names_the_first_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert {"make demo", "make test"} <= set(re.findall(r"^    (make \w+)$", readme, re.MULTILINE))


@every_page
def test_make_commands_exist(page: Path) -> None:
    named = re.findall(r"(?:^    |`)make ((?:[a-z0-9-]+ ?)*)", page.read_text(), re.MULTILINE)
    assert {target for targets in named for target in targets.split()} <= TARGETS


def test_every_target_is_listed_by_make() -> None:
    listed = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))
    assert listed == TARGETS
    assert set(re.findall(r"^\.PHONY: (\S+)$", MAKEFILE, re.MULTILINE)) == TARGETS


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_table_of_contents() -> None:
    toctrees = "".join(code_blocks(DOCS / "index.md", "{toctree}"))
    listed = re.findall(r"^[a-z/-]+$", toctrees, re.MULTILINE)
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert set(listed) == pages - {"index"}


@every_page
def test_python_examples_are_valid_and_their_imports_exist(page: Path) -> None:
    for block in code_blocks(page, "python"):
        lines = block.splitlines()
        if prompts := [line[4:] for line in lines if line.startswith((">>> ", "... "))]:
            block = "\n".join(prompts)
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("django_latch"):
                module = importlib.import_module(str(node.module))
                missing = [name.name for name in node.names if not hasattr(module, name.name)]
                assert not missing, f"{node.module} has no {missing}"


def test_versions_agree_with_the_package() -> None:
    readme = (ROOT / "README.md").read_text()
    requirements = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["celery"]]
    least = {"Python": PROJECT["requires-python"]}
    for requirement in requirements:
        name, version = requirement.split(">=")
        least[name] = version
    called = {"Python": "Python", "django": "Django", "redis": "redis-py", "celery": "Celery"}
    text = " ".join(readme.split())
    for name, version in least.items():
        phrase = f"{called.get(name, name)} {version.removeprefix('>=')}+"
        assert phrase in text, f"README does not say {phrase!r}"
    assert f'"{PROJECT["name"]}[celery]"' in readme


def test_every_figure_has_a_command() -> None:
    rows = table("explanation/measures.md", "what")
    assert rows
    for row in rows:
        (command,) = words(row["command"])
        assert command.split()[0] == "make"
        assert command.split()[1] in TARGETS


@every_page
def test_measured_figures_stand_on_the_measures_page_only(page: Path) -> None:
    if page.name != "measures.md":
        text = page.read_text()
        assert re.findall(r"\b\d[\d.,]* ?(?:µs|ms|ops/s|times faster)\b", text) == []
