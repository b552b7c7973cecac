"""The environment is made with a Python that gcbench runs on, whole, or a sentence says why not."""

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "engines" / "prepared" / "packages.py"
THIS = f"{sys.version_info[0]} {sys.version_info[1]} 64 linux-{platform.machine()} 3.x"


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with the claims of this one and nothing to install."""
    folder = tmp_path / "project"
    folder.mkdir()
    (requires,) = [
        line
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith("requires-python")
    ]
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "nothing"\nversion = "0"\n{requires}\n'
        "[project.optional-dependencies]\ndev = []\n[tool.setuptools]\npackages = []\n"
    )
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    return folder


def install(project: Path, python: Path | str, torch: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [".ci/install", str(python), "env", torch],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


def interpreter(project: Path, script: str) -> Path:
    path = project / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "echo 'pyenv: python3.12: command not found' >&2; exit 127",
            "does not run (pyenv: python3.12: command not found)",
        ),
        ("exit 126", "does not run (it said nothing)"),
        ("echo CPython 2 7 64 linux-x86_64 2.7.18", "is Python 2.7.18"),
        ("echo CPython 3 10 64 linux-x86_64 3.10.13", "is Python 3.10.13"),
        ("echo CPython 3 15 64 linux-x86_64 3.15.0", "is Python 3.15.0"),
        ("echo PyPy 3 11 64 linux-x86_64 3.11.9", "is PyPy"),
        (f"echo CPython {THIS.replace(' 64 ', ' 32 ')}", "is a 32-bit build"),
        (f"echo CPython {THIS.replace(platform.machine(), 'sparc')}", "is built for sparc"),
    ],
)
def test_an_interpreter_that_will_not_do_is_a_sentence(script, says, project):
    python = interpreter(project, script)
    done = install(project, python)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"gcbench: {python} {says}")
    assert "gcbench needs CPython 3.11 to 3.14, so set PYTHON=/path/to/python3.12" in sentence
    assert not (project / "env").exists()


def test_an_interpreter_that_is_not_there_is_a_sentence(project):
    done = install(project, "/nowhere/python3.12")
    assert done.returncode == 2
    assert done.stderr.startswith("gcbench: /nowhere/python3.12 does not run")
    assert len(done.stderr.splitlines()) == 1


def test_a_python_without_venv_is_a_sentence(project):
    """Debian has it in a package of its own, which only root can install."""
    python = interpreter(
        project, f'case "$*" in *ensurepip*|"-m venv"*) exit 1;; esac; exec "{sys.executable}" "$@"'
    )
    (project / "id").write_text("#!/bin/sh\necho 1000\n")
    (project / "id").chmod(0o755)
    done = subprocess.run(
        [".ci/install", str(python), "env", ""],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{project}:/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"gcbench: {python} has no venv module; on Debian: apt-get install python3-venv\n",
    )


def test_a_folder_that_is_no_environment_is_left_alone(project):
    (project / "env").mkdir()
    (project / "env" / "thesis.tex").touch()
    done = install(project, sys.executable)
    assert done.returncode == 2
    assert "env is there and is no Python environment" in done.stderr
    assert (project / "env" / "thesis.tex").exists()


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """An empty one, its Python."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def tiny(tmp_path) -> Path:
    """A folder with the wheel of a package that has one module."""
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / "tiny-1-py3-none-any.whl", "w") as wheel:
        for name, text in {
            "tiny.py": "",
            "tiny-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
            "tiny-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n",
            "tiny-1.dist-info/RECORD": "",
        }.items():
            wheel.writestr(name, text)
    return links


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "has_uv", "installer"),
    [
        ({}, True, "uv"),
        ({"PIP_TIMEOUT": "20", "PIP_PROGRESS_BAR": "off"}, True, "uv"),
        ({}, False, "pip"),
        ({"PIP_PREFER_BINARY": "1"}, True, "pip"),  # a setting that uv does not know
    ],
)
def test_packages_come_by_uv_where_it_can_be_had_and_heeds_what_pip_was_told(
    settings, has_uv, installer, environment, tiny, tmp_path
):
    subprocess.run([environment, "-m", "pip", "uninstall", "-qqy", "tiny"], check=True)
    (tmp_path / "bin").mkdir()
    if has_uv:
        (tmp_path / "bin" / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    done = subprocess.run(
        [environment, PACKAGES, "tiny==1"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tiny),
            **settings,
        },
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (by,) = environment.parents[1].rglob("tiny-1.dist-info/INSTALLER")
    assert by.read_text().strip() == installer


@pytest.mark.slow
def test_what_is_not_to_be_had_is_said_by_pip(environment, tiny, tmp_path):
    done = subprocess.run(
        [environment, PACKAGES, "missing"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tiny),
        },
    )
    assert done.returncode == 1
    assert "No matching distribution found for missing" in done.stderr


@pytest.mark.slow
def test_an_environment_is_kept_while_it_fits_and_remade_for_another_version(project):
    assert install(project, sys.executable).returncode == 0
    mark = project / "env" / "left_over"
    mark.touch()
    again = install(project, sys.executable)
    assert (again.returncode, again.stdout) == (0, ""), "nothing to do"
    assert install(project, "env/bin/python").stdout == "", "its own interpreter is the same one"

    made_for = project / "env" / ".made-for"
    made_for.write_text(made_for.read_text().replace("CPython 3 ", "CPython 2 "))
    (project / "env" / ".installed").write_text("of another version")
    assert install(project, "env/bin/python").returncode == 0
    assert not mark.exists(), "made anew, and not half used"

    mark.touch()
    with (project / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert "installing into env" in install(project, sys.executable).stdout
    assert mark.exists(), "brought up to date, not made anew"
