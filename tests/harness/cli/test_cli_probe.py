"""`gcbench probe`: right counts in every process of a program, which runs as it would without."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hook_of_ones_own import HOOK

from harness.probed.read_log import LogReader

ROOT = Path(__file__).parents[3]
GCBENCH = [sys.executable, "-m", "harness"]
PYTHON = sys.executable
SAYS_FOLDER = "import os; print(os.environ['GCBENCH_PROBE'], flush=True)\n"


def probe(
    words: list[str],
    folder: Path,
    *command: str,
    site: Path | None = None,
    more: Mapping[str, str] = {},
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **more,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([str(site)] if site else [])]),
    }
    return subprocess.run(
        [*GCBENCH, "probe", *words, "--", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@contextmanager
def started(
    words: list[str],
    folder: Path,
    *command: str,
    before: Sequence[str] = (),
    more: Mapping[str, str] = {},
) -> Iterator["subprocess.Popen[str]"]:
    """The same while it runs, behind ``before``; a test that fails leaves nothing behind."""
    with subprocess.Popen(
        [*before, *GCBENCH, "probe", *words, "--", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def result(folder: Path, *command: str, **options: Any) -> tuple[dict[str, Any], str]:
    """The document that `--json` wrote, and what the command wrote to its standard output."""
    done = probe(["--quiet", "--json", "result.json"], folder, *command, **options)
    assert done.stderr == ""
    return json.loads((folder / "result.json").read_text()), done.stdout


def script(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.landing
def test_counts_of_a_pool_are_those_of_a_hook_of_its_own(method, tmp_path):
    program = script(
        tmp_path,
        f"""
        import gc
        import multiprocessing

        def work(size):
            kept = [[[]] for _ in range(size)]
            gc.collect()
            return len(kept)

        if __name__ == "__main__":
            {SAYS_FOLDER.strip()}
            # One worker may have done all the work before the other has begun.
            with multiprocessing.get_context({method!r}).Pool(2, work, (20_000,)) as pool:
                print(pool.map(work, [20_000] * 6, chunksize=1))
                pool.close()
                pool.join()
            work(50_000)
        """,
    )
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(HOOK.format(folder=str(own)))
    done = probe(
        ["--log", "pauses.log", "--json", "result.json"], tmp_path, PYTHON, program, site=own
    )
    assert done.returncode == 0
    rings, answer = done.stdout.splitlines()
    assert answer == str([20_000] * 6)
    assert not Path(rings).exists()
    document = json.loads((tmp_path / "result.json").read_text())
    log = LogReader(tmp_path / "pauses.log").read()
    assert log.boot_id == document["boot_id"]
    collections = list(
        zip(log.pid.tolist(), log.generation.tolist(), log.start_ns.tolist(), strict=True)
    )
    found = {int(file.name): Counter(map(int, file.read_text())) for file in own.glob("*[0-9]")}
    outlived = {
        int(pid)
        for note in document["notes"]
        if "still running" in note
        for pid in re.findall(r"\d+", note)
    }
    for pid, counted in found.items():
        began = own / f"{pid}.began"
        since = int(began.read_text()) if began.exists() else 0  # a fork has it from the first on
        logged = Counter(
            generation
            for whose, generation, start_ns in collections
            if whose == pid and start_ns >= since
        )
        if pid in outlived:  # it collects as it ends, too
            assert logged <= counted, pid
        else:
            assert counted == logged, pid
    by_pid = {each["pid"]: each for each in document["processes"]}
    assert found.keys() <= by_pid.keys()
    assert sum("PoolWorker" in each["name"] for each in by_pid.values()) == 2
    for pid, each in by_pid.items():
        logged = Counter(generation for whose, generation, _ in collections if whose == pid)
        assert [g["collections"] for g in each["generations"]] == [logged[g] for g in range(3)]
    assert log.lost[-1].tolist() == [log.read_ns, 0]
    assert log.notes == ()
    assert log.began_ns < (log.start_ns + log.duration_ns).max() <= log.read_ns
    assert "PoolWorker" in done.stderr


SERVER = """
import gc
from aiohttp import web

def counts():
    return [each["collections"] for each in gc.get_stats()]

before = counts()

async def answer(request):
    kept = [[[]] for _ in range(50_000)]
    gc.collect(2)
    return web.Response(text=str([now - then for now, then in zip(counts(), before)]))

async def bye(app):
    print("bye", flush=True)

app = web.Application()
app.router.add_get("/", answer)
app.on_cleanup.append(bye)
web.run_app(app, path="server.sock", print=lambda *_: print("ready", flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_as_it_would_and_full_passes_are_those_that_were_asked_for(number, tmp_path):
    import http.client
    import socket

    program = script(tmp_path, SERVER)
    words = ["--every", "0", "--json", "result.json"]
    with started(words, tmp_path, PYTHON, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        counts = []
        for _ in range(3):
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(tmp_path / "server.sock"))
            connection.request("GET", "/")
            counts.append(json.loads(connection.getresponse().read()))
            connection.close()
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "bye\n"), err
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["status"] == 0
    (server,) = document["processes"]
    assert (server["name"], server["role"]) == ("program.py", "command")
    full = server["generations"][2]
    assert full["collections"] >= 3
    for each in server["generations"]:
        assert each["collections"] >= counts[-1][each["generation"]]
        assert (
            0 < each["longest_pause_seconds"] <= each["pause_seconds"] <= document["wall_seconds"]
        )
    assert "The collector ran" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_status_is_the_commands(command, status, tmp_path):
    done = probe(["--json", "result.json"], tmp_path, PYTHON, "-c", command)
    assert done.returncode == status
    said = json.loads((tmp_path / "result.json").read_text())["status"]
    assert said == (status if status < 128 else 128 - status)


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        (["/nowhere/server"], 2, "'/nowhere/server' cannot be run: No such file or directory"),
        (["/etc/passwd"], 2, "'/etc/passwd' cannot be run: Permission denied"),
        (["true"], 3, "true is not Python and started no Python process that was seen"),
        ([PYTHON, "-S", "-c", ""], 3, "because -S leaves out what starts the probe"),
    ],
)
def test_a_command_that_cannot_be_watched_is_a_sentence(command, status, says, tmp_path):
    done = probe([], tmp_path, *command)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith("gcbench: ")
    assert says in line


CHILD = "import gc, sys; gc.collect(); print(len(gc.callbacks), flush=True); sys.stdin.readline()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["-S"], "{**os.environ}", "-S leaves out what starts the probe"),
        ([], "{'PATH': os.environ['PATH']}", "has taken GCBENCH_PROBE out of its environment"),
    ],
)
def test_a_child_that_is_not_watched_is_named_with_the_reason(
    options, environment, reason, tmp_path
):
    """It is let go only once it is old enough to be seen."""
    program = script(
        tmp_path,
        f"""
        import os, subprocess, sys
        with subprocess.Popen([sys.executable, *{options}, "-c", {CHILD!r}],
                              env={environment}, stdin=subprocess.PIPE) as child:
            sys.stdin.readline()
        """,
    )
    words = ["--every", "0.1", "--json", "result.json"]
    with started(words, tmp_path, PYTHON, program) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        began = time.monotonic()  # lines of the past may lie in the pipe
        while time.monotonic() < began + 2:  # they say how it stands, a tenth of a second apart
            process.stderr.readline()
        process.communicate("\n")
    document = json.loads((tmp_path / "result.json").read_text())
    (missed,) = document["not_probed"]
    assert reason in missed["reason"]
    assert len(document["processes"]) == 1


@pytest.mark.slow
def test_a_reader_that_is_killed_does_the_program_no_harm(tmp_path):
    program = SAYS_FOLDER + textwrap.dedent("""
        import gc, sys
        sys.stdin.readline()
        for _ in range(10_000):
            gc.collect(0)
        print("alive", flush=True)
    """)
    with started([], tmp_path, PYTHON, "-c", program) as process:
        assert process.stdout is not None
        rings = Path(process.stdout.readline().strip())
        assert rings.is_dir()
        process.kill()
        process.wait()
        out, err = process.communicate("\n")
    assert (out, err) == ("alive\n", "")
    # The next one removes what the killed one has left.
    _, said = result(tmp_path, PYTHON, "-c", SAYS_FOLDER)
    assert not Path(said.strip()).exists()
    assert not rings.exists()


@pytest.mark.slow
def test_what_outlives_the_command_is_named_and_runs_on(tmp_path):
    daemon = "import sys; sys.stdin.readline(); print('alive', flush=True)"
    program = script(
        tmp_path,
        f"""
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", {daemon!r}], stdin=0, start_new_session=True)
        """,
    )
    with started(["--quiet", "--json", "result.json"], tmp_path, PYTHON, program) as process:
        assert process.wait() == 0
        out, _ = process.communicate("\n")
    assert out == "alive\n"
    notes = json.loads((tmp_path / "result.json").read_text())["notes"]
    # The daemon is there for certain; that it had a ring by then is not.
    assert not notes or "still running" in notes[0]


@pytest.mark.slow
@pytest.mark.landing
def test_prometheus_reads_collections_and_pauses_while_the_program_runs(tmp_path):
    from urllib.request import Request, urlopen

    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families

    program = script(
        tmp_path,
        """
        import gc, sys
        gc.disable()
        for _ in range(5):
            gc.collect(1)
        print("collected", flush=True)
        sys.stdin.readline()
        """,
    )
    words = ["--prometheus", "0", "--every", "0.1", "--json", "result.json"]
    with started(words, tmp_path, PYTHON, program) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        url = process.stderr.readline().split()[-1]
        assert process.stdout.readline() == "collected\n"
        text, deadline = "", time.monotonic() + 120
        while not re.search(r'collections_total{.*generation="1".* [5-9]', text):  # ring not read
            assert time.monotonic() < deadline, text
            with urlopen(url) as answer:
                text = answer.read().decode()
        # As Prometheus asks; some names come out otherwise there.
        asked = Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        with urlopen(asked) as answer:
            of_openmetrics = answer.read().decode()
        process.communicate("\n")
    (server,) = json.loads((tmp_path / "result.json").read_text())["processes"]
    of_process = {"process": "program.py", "role": "command", "number": "0"}

    def read(families: Iterable[Any]) -> dict[tuple[Any, ...], float]:
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    samples = read(text_string_to_metric_families(text))
    assert read(openmetrics(of_openmetrics)).keys() == samples.keys()

    def value(name: str, generation: int, **labels: str) -> float:
        wanted = of_process | {"generation": str(generation)} | labels
        return samples[(f"gcbench_{name}", *sorted(wanted.items()))]

    assert value("gc_collections_total", 1) >= 5
    for each in server["generations"]:
        generation, before_the_end = each["generation"], each["collections"]
        assert 0 <= value("gc_collections_total", generation) <= before_the_end
        assert value("gc_pause_seconds_total", generation) <= each["pause_seconds"]
        counted = value("gc_pause_length_seconds_count", generation)
        assert counted == value("gc_collections_total", generation)
        assert counted == value("gc_pause_length_seconds_bucket", generation, le="+Inf")
        assert value("gc_collections_lost_total", generation) == 0


@pytest.mark.parametrize("place", ["", "x", "70000", "-1"])
def test_a_port_that_cannot_be_had_is_a_sentence(place, tmp_path):
    done = probe(
        [f"--prometheus=:{place}" if place == "" else f"--prometheus={place}"],
        tmp_path,
        PYTHON,
        "-c",
        "print(1)",
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "give [HOST:]PORT, a port that is free" in line


@pytest.mark.slow
def test_options_of_the_command_are_its_own(tmp_path):
    show = "import sys; print(sys.argv[1:])"
    for words, value in ((["--"], ""), ([], "x")):
        done = subprocess.run(
            [*GCBENCH, "probe", "--quiet", *words, PYTHON, "-c", show, "--json", value, "--quiet"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == (f"{['--json', value, '--quiet']}\n", "")


@pytest.mark.slow
def test_signals_by_which_servers_are_told_things_reach_the_program(tmp_path):
    """Again and again, so that some come while rings are read; NumPy's threads take none."""
    names = ["SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU", "SIGQUIT", "SIGWINCH", "SIGALRM"]
    program = script(
        tmp_path,
        f"""
        import signal
        numbers = {{getattr(signal, name) for name in {names}}}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers | {{signal.SIGTERM}})
        print("ready", flush=True)
        while (number := signal.sigwait(numbers | {{signal.SIGTERM}})) != signal.SIGTERM:
            print(signal.Signals(number).name, flush=True)
        raise SystemExit(7)
        """,
    )
    environment = {"OPENBLAS_NUM_THREADS": "2"}
    with started(["--quiet"], tmp_path, PYTHON, program, more=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for name in names * 20:
            process.send_signal(getattr(signal, name))
            assert process.stdout.readline() == f"{name}\n"
        process.terminate()
        _, err = process.communicate()
    assert (process.returncode, err) == (7, "")


@pytest.mark.slow
def test_more_processes_than_one_may_open_files_are_all_watched(tmp_path):
    program = script(
        tmp_path,
        """
        import gc, os, sys
        gc.disable()
        held, let_go = os.pipe()
        pids = []
        for _ in range(60):
            pid = os.fork()
            if not pid:
                os.close(let_go)
                gc.collect(1)
                os.read(held, 1)
                gc.collect(1)
                os._exit(0)
            pids.append(pid)
        sys.stdin.readline()
        os.close(let_go)
        for pid in pids:
            os.waitpid(pid, 0)
        sys.exit(7)
        """,
    )
    words = ["--every", "0.1", "--json", "result.json"]
    limited = ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh"]
    with started(words, tmp_path, PYTHON, program, before=limited) as process:
        assert process.stderr is not None
        line = "a line"
        while line and "61 processes" not in line:
            line = process.stderr.readline()
        process.communicate("\n")
    assert process.returncode == 7
    document = json.loads((tmp_path / "result.json").read_text())
    forked = [each for each in document["processes"] if each["role"] == "fork"]
    assert len(forked) == 60
    assert all([g["collections"] for g in each["generations"]] == [0, 2, 0] for each in forked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("shutil.rmtree(os.environ['GCBENCH_PROBE'])", "From some moment on no new process"),
        ("open(os.environ['GCBENCH_PROBE'] + '/x-1.ring', 'w')", "x-1.ring is no ring"),
    ],
)
def test_a_program_that_meddles_with_the_rings_costs_no_figure(does, says, tmp_path):
    program = f"""
import gc, os, shutil, sys
sys.stdin.readline()
{does}
print(flush=True)
sys.stdin.readline()
for _ in range(5):
    gc.collect(2)
sys.exit(7)
"""
    words = ["--every", "0.1", "--json", "result.json"]
    with started(words, tmp_path, PYTHON, "-c", program) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdin is not None
        line = "a line"
        while line and "1 process," not in line:
            line = process.stderr.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        for _ in range(3):
            process.stderr.readline()
        process.communicate("\n")
    assert process.returncode == 7
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["processes"][0]["generations"][2]["collections"] >= 5
    assert [note for note in document["notes"] if says in note]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], ["sh", "-c", "exit 7"]),  # nothing to watch
        (["--json", "gone/result.json"], [PYTHON, "-c", "import os; os.rmdir('gone'); 1 / 0"]),
    ],
)
def test_a_status_is_handed_on_where_there_is_nothing_to_report(words, command, tmp_path):
    (tmp_path / "gone").mkdir()
    done = probe(words, tmp_path, *command)
    assert done.returncode == (1 if words else 7)
    assert "gcbench: " in done.stderr


@pytest.mark.slow
def test_a_status_is_handed_on_where_children_are_ignored(tmp_path):
    ignored = ["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh"]
    with started(["--quiet"], tmp_path, "sh", "-c", "exit 7", before=ignored) as process:
        process.communicate()
    assert process.returncode == 7


@pytest.mark.slow
def test_a_program_that_empties_the_callbacks_is_told_by_its_statistics(tmp_path):
    program = "import gc; gc.disable(); gc.callbacks[:] = []; [gc.collect(1) for _ in range(13)]"
    done = probe(["--json", "result.json"], tmp_path, PYTHON, "-c", program)
    assert done.returncode == 0
    assert "collected 13 times more" in " ".join(done.stderr.split())
    (only,) = json.loads((tmp_path / "result.json").read_text())["processes"]
    assert [each["unseen"] for each in only["generations"]] == [0, 13, 0]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a PID namespace")
def test_as_the_first_process_of_a_container_it_waits_for_orphans(tmp_path):
    """The program ends once nothing is left that nobody has waited for."""
    program = """
import gc, os, pathlib
for _ in range(5):
    if not (pid := os.fork()):
        os.fork()  # whose parent ends
        os._exit(0)
    os.waitpid(pid, 0)
def stats():
    for each in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            yield each.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            pass
while [1 for state, parent in stats() if parent == "1"] != [1]:
    pass
raise SystemExit(7)
"""
    before = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with started(["--quiet"], tmp_path, PYTHON, "-c", program, before=before) as process:
        process.communicate()
    assert process.returncode == 7


STALLS = """
import gc

class Token:
    pass

gc.set_threshold(10**6)
kept = [[] for _ in range(200_000)]

def step():
    made = [Token() for _ in range(500)]
    gc.collect()
    return made

for _ in range(4):
    step()
"""


def test_a_long_pause_is_explained_where_that_is_asked_for(tmp_path):
    """The collection after a long one names what there is: by then it is looked for."""
    program = tmp_path / "stalls.py"
    program.write_text(STALLS)
    for asked in ([], ["--long", "0.2"]):
        done = probe(["--json", "result.json", *asked], tmp_path, PYTHON, program)
        assert done.returncode == 0
        document = json.loads((tmp_path / "result.json").read_text())
        pauses = [each for each in document["long_pauses"] if each["function"] == "step"]
        assert len(pauses) == 4 * bool(asked)
    pauses.sort(key=lambda each: each["start_ns"])
    (process,) = document["processes"]
    for each in pauses:
        assert (Path(each["file"]).name, each["line"]) == ("stalls.py", 12)
        assert each["generation"] == 2
        assert each["pid"] == process["pid"]
        assert 0.0002 <= each["seconds"] <= process["generations"][2]["longest_pause_seconds"]
    for each in pauses[1:]:
        assert ["__main__.Token", 500] in each["objects"]
    assert document["notes"] == []
    assert "stalls.py:12, step" in done.stderr
