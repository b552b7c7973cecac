"""What is said of a command that has ended before it could be looked at."""

import os
import subprocess
import sys

import psutil
import pytest

from harness.probed.run import probed_environment
from harness.probed.watch import Watch


@pytest.mark.parametrize(("options", "reasons"), [(["-S"], ["-S leaves out"]), ([], [])])
def test_an_interpreter_that_ended_unseen_is_given_its_own_reason(options, reasons, tmp_path):
    command = [sys.executable, *options, "-c", ""]
    environment = probed_environment(tmp_path, os.environ)
    with subprocess.Popen(command, env=environment) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie's files are empty
        watch = Watch(tmp_path, psutil.Process(process.pid), command)
        watch.poll()
        watch.finish()
        said = [(each.pid, each.name, each.reason[:13]) for each in watch.not_probed()]
    assert said == [(process.pid, "python -c", each) for each in reasons]
