"""The project's own promises: what is packaged, what is locked, and that every room has its place."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bucketq

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "bucketq"


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def project_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_every_room_has_its_place_in_the_import_contracts(pyproject):
    contracts = {contract["id"]: contract for contract in pyproject["tool"]["importlinter"]["contracts"]}
    placed = set(re.findall(r"\w+", " ".join(contracts["layers"]["layers"])))
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert packages | modules <= placed


def test_every_folder_of_source_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_public_names_are_sorted_and_resolve():
    assert list(bucketq.__all__) == sorted(set(bucketq.__all__))
    assert [name for name in bucketq.__all__ if not hasattr(bucketq, name)] == []


def test_the_version_is_the_one_that_is_packaged(pyproject):
    version = pyproject["project"]["version"]
    assert bucketq.__version__ == version
    assert importlib.metadata.version("bucketq") == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_holds_every_module_and_the_type_marker(tmp_path):
    from hatchling.builders.wheel import WheelBuilder  # only in the development environment

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("bucketq/")}
    sources = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py")}
    assert sources | {"bucketq/py.typed"} <= packed


def test_the_lock_holds_what_development_needs_and_no_place_to_download_from(pyproject):
    lock = (ROOT / "requirements-dev.lock").read_text()
    assert "://" not in lock
    locked = {project_name(line) for line in lock.splitlines()}
    extras = pyproject["project"]["optional-dependencies"]
    wanted = [*pyproject["project"]["dependencies"], *extras["dev"], *extras["test"]]
    assert {project_name(requirement) for requirement in wanted} - {"bucketq"} <= locked
    assert "pyspark" not in locked


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_names_the_command_to_begin_with(command):
    assert command in (ROOT / "README.md").read_text()
