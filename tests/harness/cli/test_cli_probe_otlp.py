"""`gcbench probe --otlp`: a collector has the figures, and whatever it does harms no program."""

import json
import socket

import pytest
from otlp_receiver import metrics_in, points_in, receiving
from processes import HANG_SECONDS, until
from test_cli_probe import PYTHON, probe, script, started

AT_THE_END = {"OTEL_METRIC_EXPORT_INTERVAL": str(10**8)}
OFTEN = {"OTEL_METRIC_EXPORT_INTERVAL": "20"}
FOR_EVER = AT_THE_END | {"OTEL_EXPORTER_OTLP_TIMEOUT": str(HANG_SECONDS)}
WITHOUT = """
import sys

class Lacks:
    def find_spec(self, name, *_):
        if name == {lacks!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Lacks())
"""

COLLECTS = """
import gc, os, sys

def collect(times, before):
    for _ in range(times):
        gc.collect()
    # It is os._exit that ends it, so that nothing is collected after this was written.
    print(gc.get_stats()[2]["collections"] - before, flush=True)
    sys.stdin.readline()

gc.disable()
if sys.argv[1:]:
    collect(11, 0)
    os._exit(0)
collect(5, 0)
had = gc.get_stats()[2]["collections"]
if (child := os.fork()) == 0:
    collect(7, had)
    os._exit(0)
os.waitpid(child, 0)
os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
"""


def full_passes(request):
    """By series, of which each process image has another or goes on with it."""
    found = metrics_in(request).get("gcbench_gc_collections")
    points = points_in(found) if found else {}  # there is none while nothing is watched yet
    return {key: point.as_double for key, point in points.items() if "generation=2" in key}


@pytest.mark.slow
@pytest.mark.landing
def test_sums_are_those_of_gc_get_stats_over_fork_and_exec_and_never_go_back(tmp_path):
    program = script(tmp_path, COLLECTS)
    counted: list[int] = []
    more = OFTEN | {"OTEL_RESOURCE_ATTRIBUTES": "service.namespace=a%20b"}
    with receiving() as (url, came):
        words = ["--quiet", "--json", "result.json", "--otlp", url]
        with started(words, tmp_path, PYTHON, program, more=more) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            for _ in range(3):
                counted.append(int(process.stdout.readline()))
                until(lambda: came and sum(full_passes(came[-1][2]).values()) == sum(counted))
                process.stdin.write("\n")
                process.stdin.flush()
            _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert counted == [5, 7, 11]
    last = came[-1][2]
    assert sum(full_passes(last).values()) == sum(counted)
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["notes"] == []
    for generation in range(3):
        for name, field in (("collections", "collections"), ("objects_freed", "objects_freed")):
            points = points_in(metrics_in(last)[f"gcbench_gc_{name}"])
            sent = sum(p.as_double for k, p in points.items() if f"generation={generation}" in k)
            told = [g for each in document["processes"] for g in each["generations"]]
            assert sent == sum(g[field] for g in told if g["generation"] == generation)
    before: dict[object, float] = {}
    for path, headers, request in came:
        assert path == "/v1/metrics"
        assert headers["Content-Type"] == "application/x-protobuf"
        resource = {
            each.key: each.value.string_value
            for each in request.resource_metrics[0].resource.attributes
        }
        assert resource["service.name"] == "gcbench-probe"
        assert resource["service.namespace"] == "a b"
        metrics = metrics_in(request)
        now = {
            (name, key, part): value
            for name, metric in metrics.items()
            if metric.WhichOneof("data") in {"sum", "histogram"}
            for key, point in points_in(metric).items()
            for part, value in _growing(point).items()
        }
        assert all(value <= now[key] for key, value in before.items())
        before = now
        if "gcbench_gc_collections" in metrics:
            lengths = points_in(metrics["gcbench_gc_pause_length_seconds"])
            for key, point in points_in(metrics["gcbench_gc_collections"]).items():
                assert lengths[key].count == sum(lengths[key].bucket_counts) == point.as_double


def _growing(point):
    if hasattr(point, "as_double"):
        return {"": point.as_double}
    return {"count": point.count, "sum": point.sum} | dict(enumerate(point.bucket_counts))


def test_the_end_of_a_program_that_is_short_is_sent_under_the_name_that_it_is_given(tmp_path):
    with receiving() as (url, came):
        done = probe(
            ["--quiet", "--otlp", f"{url}/base/v1/metrics"],
            tmp_path,
            *(PYTHON, "-c", "import gc; gc.collect(); gc.collect()"),
            more=AT_THE_END
            | {"OTEL_SERVICE_NAME": "mine", "OTEL_EXPORTER_OTLP_HEADERS": "key=secret"},
        )
    assert (done.returncode, done.stderr) == (0, "")
    ((path, headers, request),) = came
    assert (path, headers["key"]) == ("/base/v1/metrics", "secret")
    attributes = {
        each.key: each.value.string_value
        for each in request.resource_metrics[0].resource.attributes
    }
    assert attributes["service.name"] == "mine"
    assert sum(full_passes(request).values()) >= 2


def notes(folder, done):
    """One, and nothing else on standard error; the program has run as it would have."""
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "")
    (note,) = json.loads((folder / "result.json").read_text())["notes"]
    return note


PROGRAM = (PYTHON, "-c", "print('out'); raise SystemExit(7)")
WORDS = ["--quiet", "--json", "result.json", "--otlp"]


@pytest.mark.slow
@pytest.mark.flaky(reruns=2)  # the first attempt of all has three seconds
def test_a_collector_that_is_down_is_a_note(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://somebody:secret@127.0.0.1:{free.getsockname()[1]}"
        done = probe([*WORDS, url], tmp_path, *PROGRAM, more=FOR_EVER)
    assert notes(tmp_path, done) == (
        "1 of 1 exports by --otlp failed: [Errno 111] Connection refused."
    )


def test_a_collector_that_answers_500_is_a_note(tmp_path):
    with receiving((500,)) as (url, came):
        done = probe([*WORDS, url], tmp_path, *PROGRAM, more=AT_THE_END)
    assert came
    note = notes(tmp_path, done)
    assert note.startswith("1 of 1 exports by --otlp failed: ")
    assert "Internal Server Error" in note


@pytest.mark.slow
def test_a_collector_that_comes_to_itself_has_all_figures(tmp_path):
    waits = script(tmp_path, "import gc, sys; gc.collect(); sys.stdin.readline()")
    with (
        receiving((400, 400, 200)) as (url, came),
        started([*WORDS, url], tmp_path, PYTHON, waits, more=OFTEN) as process,
    ):
        until(lambda: len(came) > 5)
        _, err = process.communicate("\n")
    assert (process.returncode, err) == (0, "")
    (note,) = json.loads((tmp_path / "result.json").read_text())["notes"]
    assert note.startswith(f"2 of {len(came)} exports by --otlp failed: ")
    assert "400" in note
    assert note.endswith("; the last arrived, with all figures.")


@pytest.mark.slow
def test_a_collector_that_never_answers_holds_nobody(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = probe([*WORDS, url], tmp_path, *PROGRAM, more=FOR_EVER, timeout=HANG_SECONDS / 2)
    assert notes(tmp_path, done) == "1 of 1 exports by --otlp failed: no answer in 3 seconds."


@pytest.mark.parametrize("lacks", ["opentelemetry", "opentelemetry.sdk"])
def test_without_the_sdk_it_says_what_to_install_and_runs_nothing(lacks, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(lacks=lacks))
    done = probe(["--otlp", "http://127.0.0.1:1"], tmp_path, *PROGRAM, site=tmp_path)
    assert done.stdout == ""
    assert done.stderr == (
        f"gcbench: {PYTHON} has no {lacks}, which --otlp needs; run {PYTHON} -m pip install "
        "'gcbench[otlp]'\n"
    )


def test_nothing_of_it_is_loaded_where_it_is_not_asked_for(tmp_path):
    names = "sorted(each for each in sys.modules if each.startswith('opentelemetry'))"
    (tmp_path / "sitecustomize.py").write_text(
        f"import atexit, sys; atexit.register(lambda: print({names}))"
    )
    done = probe(["--quiet", "--prometheus", "0"], tmp_path, PYTHON, "-c", "", site=tmp_path)
    assert set(done.stdout.splitlines()) == {"[]"}
