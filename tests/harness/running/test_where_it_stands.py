"""Processes that hang for real, asked where they are."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from harness.running.stack_dump import FOLDER_VARIABLE
from harness.running.where_it_stands import where_it_stands

ROOT = Path(__file__).parents[3]
HANGS = textwrap.dedent("""
    import os, queue, sys
    from threading import Thread
    from harness.running.stack_dump import dump_on_signal

    def waits_for_tokens():
        queue.Queue().get()

    def reads():
        os.read(0, 1)

    is_parent = os.fork() > 0
    dump_on_signal()
    Thread(target=reads, daemon=True).start()
    os.write(1, b".")
    waits_for_tokens() if is_parent else reads()
""")


def test_each_process_of_the_group_says_where_its_main_thread_is(tmp_path):
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {FOLDER_VARIABLE: str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.read(1) == b"."
        here = f"{tmp_path.name}/hangs.py"
        functions = {"waits_for_tokens": 7, "reads": 10}
        wanted = {f"{f} ({here}:{n})" for f, n in functions.items()}
        found = set()
        for _ in range(600):  # each is past its dot and may have a step to go
            if found == wanted:
                break
            found = set(where_it_stands(process.pid, tmp_path).split(" and "))
        assert found == wanted
        assert process.poll() is None, "it is asked, not ended"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_nobody_is_asked_who_would_not_understand(tmp_path):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        assert where_it_stands(process.pid, tmp_path) == ""
        assert process.poll() is None
        process.kill()


def test_one_that_is_stopped_says_nothing(tmp_path):
    (tmp_path / "stacks-1").touch()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        process.send_signal(signal.SIGSTOP)
        assert where_it_stands(process.pid, tmp_path) == ""
        process.kill()
