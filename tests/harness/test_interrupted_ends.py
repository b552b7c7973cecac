"""The exit status is 130 or that of the command, at whatever moment a signal comes, or a second."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHILE_IT_IMPORTS = """
class Kills:
    def find_spec(self, name, path=None, target=None):
        if name == "harness.cli.main":
            os.kill(os.getpid(), number)


sys.meta_path.insert(0, Kills())
"""
AT_ITS_END = "atexit.register(os.kill, os.getpid(), number)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("moments", "status"),
    [(WHILE_IT_IMPORTS, 130), (AT_ITS_END, 0), (WHILE_IT_IMPORTS + AT_ITS_END, 130)],
)
def test_a_signal_outside_of_a_command_leaves_a_status(number, moments, status):
    program = f"""
import atexit, os, signal, sys
number = {int(number)}
# Whoever runs the tests may ignore it, as nohup does.
signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
{moments}
from harness.__main__ import main
sys.argv[1:] = ["list", "metrics"]
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert done.stderr == ("interrupted\n" if status else "")
