"""A wheel holds all that git tracks of our packages, where only gcbench is importable."""

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from environments import run

ROOT = Path(__file__).parents[2]
INSIDE = ("dashboards", "engines", "harness", "workloads")


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.mark.slow
def test_a_wheel_holds_what_git_tracks_and_makes_only_gcbench_importable(wheel):
    expected = {f"gcbench/packages/{name}" for name in tracked(*INSIDE)} | tracked("gcbench")
    packed = {name for name in names(wheel) if ".dist-info/" not in name.split("packages/")[0]}
    assert packed == expected | {
        "gcbench/packages/gcbench/__init__.py",
        "gcbench.pth",
        "gcbench.start",
    }


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_is_the_same(clone, wheel, tmp_path):
    script = "import sys, backend; print(backend.build_sdist(sys.argv[1]))"
    packed = run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, 'distribution'); {script}",
            str(tmp_path),
        ],
        clone,
    )
    assert packed.returncode == 0, packed.stderr
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    built = run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            *options,
            "--wheel-dir",
            str(tmp_path / "w"),
            str(source),
        ],
        tmp_path,
    )
    assert built.returncode == 0, built.stderr
    assert names(next((tmp_path / "w").glob("*.whl"))) == names(wheel)


@pytest.mark.slow
def test_what_an_earlier_layout_has_left_in_build_is_not_packed(clone, wheel, tmp_path):
    left = clone / "build" / "lib" / "harness" / "__init__.py"
    left.parent.mkdir(parents=True)
    left.touch()
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    built = run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(tmp_path), str(clone)],
        clone,
    )
    assert built.returncode == 0, built.stderr
    assert names(next(tmp_path.glob("*.whl"))) == names(wheel)


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["bench", "asv", "dev"])
def test_what_measuring_needs_is_in_an_extra(wheel, extra):
    with ZipFile(wheel) as archive:
        (name,) = [
            name
            for name in archive.namelist()
            if name.endswith("-0.1.0.dist-info/METADATA") and "packages" not in name
        ]
        metadata = archive.read(name).decode().splitlines()
    needed = [line for line in metadata if line.startswith("Requires-Dist: ")]
    assert f"Provides-Extra: {extra}" in metadata
    assert all("extra ==" in line for line in needed), "a bare install needs nothing"
