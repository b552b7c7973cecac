"""Where the packages lie that only gcbench's own interpreters import.

They are ``workloads``, ``engines``, ``harness`` and ``dashboards``: names that other people's
projects have too. An installed wheel keeps them inside gcbench, where no import finds them.
"""

from pathlib import Path


def code_root() -> Path:
    """The folder to put first on the path: in a wheel ``gcbench/packages``, else the checkout."""
    here = Path(__file__).parent
    packages = here / "packages"
    return packages if packages.is_dir() else here.parent


if __name__ == "__main__":
    print(code_root())
