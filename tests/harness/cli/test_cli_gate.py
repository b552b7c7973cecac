"""`gcbench gate` from the outside: mistakes, commits that do not run, and one that allocates."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest
from full_output import full_standard_output
from processes import HEARS_CTRL_C, is_alive, until, wait_for
from scratch_repository import Repository, leave_git_alone
from small import answer
from valgrind import NEEDS_VALGRIND

from harness.cli.main import main
from harness.experiment.executor import Executor
from harness.experiment.store import RunStore
from harness.tracking.gate.result import GateResult
from harness.trial.spec import Trial, TrialFailure

ROOT = Path(__file__).parents[3]
TINY = ["--num-requests", "64", "--batch-size", "64", "--output-lens", "60"]
LISTS = ["--representation", "list_of_lists", "--delivery", "per_request"]
ENGINE = "engines/builtin/engine.py"
PROCESS = "    def _process(self, step: ScheduledStep, output: ModelRunnerOutput) -> StepOutput:\n"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))


def committed(root: Path, *, whole: bool = False) -> Repository:
    """This checkout's engines on ``main``, or of them the one file that `change` changes."""
    made = Repository(root)
    made.commit("before there were engines", other="1")
    made.git("tag", "bare")
    if whole:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "engines", made.root / "engines", ignore=ignored)
    else:
        (made.root / ENGINE).parent.mkdir(parents=True)
        shutil.copy(ROOT / ENGINE, made.root / ENGINE)
    made.commit("engines")
    return made


@pytest.fixture
def repository(tmp_path):
    """Enough where no trial is run for real."""
    return committed(tmp_path / "repo")


@pytest.fixture
def engines(tmp_path):
    """For real trials."""
    return committed(tmp_path / "engines", whole=True)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """For those who change nothing in it."""
    return committed(tmp_path_factory.mktemp("read-only") / "repo")


def change(repository, before: str, after: str, path: str = ENGINE) -> None:
    file = repository.root / path
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


@pytest.fixture
def gate(tmp_path, capsys):
    """Run the gate on a repository; status, what it printed, what it said of errors."""

    def call(repo: Repository | Path, *arguments: str) -> tuple[int, str, str]:
        output = [] if "--output" in arguments else ["--output", str(tmp_path / "runs")]
        where = ["--repo", str(repo.root if isinstance(repo, Repository) else repo)]
        flags = ["gate", *arguments, *TINY, *where, *output, "--details"]
        machine = call.machine
        status = main(flags, machine and (lambda _timeout: machine))
        said = capsys.readouterr()
        return status, said.out, said.err

    call.machine = None  # this one
    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["Missing argument", "BASE"]),
        (["nowhere"], ["has no commit 'nowhere'", "git log --all --oneline"]),
        (["main", "nowhere"], ["has no commit 'nowhere'"]),
        ([""], ["empty name"]),
        (["main", ""], ["empty name"]),
        (["main", "HEAD", "more"], ["more"]),
        (["bare"], ["bare (", "has no engines/", "--repo"]),
        (["main", "bare"], ["bare (", "has no engines/"]),
        (["main", "--gc", "disabled"], ["--gc disabled", "leave it out"]),
        (["main", "--gc", "default,disabled"], ["--gc disabled"]),
        (["main", "--engine", "builtin,vllm"], ["--engine builtin,vllm", "takes one"]),
        (["main", "--engine", "builtn"], ["'builtn'", "builtin"]),
        (["main", "--exact-only", "--worker", "process"], ["--exact-only", "a second process"]),
        (["main", "--exact-only", "--device", "modelled"], ["--exact-only", "a clock"]),
        (["main", "--instructions", "--worker", "process"], ["--instructions", "valgrind needs"]),
        (["main", "--instructions", "--engine", "vllm-hostpath"], ["--instructions: engine vllm-"]),
        (["main", "--rounds", "0"], ["--rounds 0", "at least 1"]),
        (["main", "--tolerance", "0"], ["--tolerance 0: must be"]),
        (["main", "--tolerance", "-1"], ["--tolerance -1: must be"]),
        (["main", "--tolerance", "nan"], ["--tolerance nan: must be"]),
        (["main", "--tolerance", "100"], ["--tolerance 100: must be"]),
        (["main", "--until-precise", "0"], ["--until-precise 0: must be"]),
        (["main", "--until-precise", "-2"], ["--until-precise -2: must be"]),
        (["main", "--until-precise", "inf"], ["--until-precise inf: must be"]),
        (["main", "--budget", "-1"], ["--budget -1: must be"]),
        (["main", "--budget", "nan"], ["--budget nan: must be"]),
        (["main", "--budget", "long"], ["--budget", "long"]),
        (["main", "--export", "markdown=/nowhere/x.md"], ["markdown=/nowhere/x.md", "written"]),
        (["main", "--export", "markdown=-", "--json", "-"], ["one of them alone"]),
        (["main", "--json", "/nowhere/x.json"], ["--json /nowhere/x.json", "written"]),
        (["main", "--export", "bencher=/"], ["--export bencher=/: Is a directory"]),
        (["main", "--export", "bencher"], ["bencher: give FORMAT=FILE", "pytorch-hud"]),
        (["main", "--export", "bencher="], ["bencher=: give FORMAT=FILE"]),
        (["main", "--export", "bench=x"], ["bench=x: give FORMAT=FILE", "bencher"]),
        (["main", "--export", "sarif=x"], ["sarif=x: give FORMAT=FILE"]),
        (["main", "--output", "/proc/nowhere"], ["/proc/nowhere", "--output DIR"]),
        (
            ["main", "--representation", "list_of_lists", "--delivery", "columnar"],
            ["columnar delivery of list_of_lists"],
        ),
        (["main", "--representation", "list_of_list"], ["'list_of_list'", "list_of_lists"]),
        (["main", "--exact"], ["--exact", "--exact-only"]),
        (["main", "--release", "x"], ["--release"]),
        (["main", "--seed", "-1"], ["seed -1"]),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(gate, read_only, tmp_path, arguments, words):
    status, out, err = gate(read_only, *arguments)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("gcbench: ")
    for word in words:
        assert word in line
    assert not (tmp_path / "runs").exists(), "nothing is begun"


def test_what_is_no_checkout_of_the_engine_is_one_sentence(gate, repository, tmp_path):
    (tmp_path / "plain").mkdir()
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.root}", str(clone))
    hollow = Repository(tmp_path / "hollow")
    hollow.commit("an engines/ of something else", engines__motor="1")
    for repo, word in (
        (tmp_path / "nowhere", "no such folder"),
        (tmp_path / "plain", "no git repository"),
        (clone, "fetch --unshallow"),
        (hollow.root, "cannot be measured: no engines/builtin"),
    ):
        status, out, err = gate(repo, "HEAD" if repo == hollow.root else "HEAD~1")
        assert (status, out, len(err.splitlines())) == (2, "", 1), err
        assert word in err
        assert "--release" not in err


def no(trial: Trial) -> bool:
    return False


class Machine(Executor):
    """Takes the place of this machine: equal figures for both, until Ctrl-C at one trial.

    ``slower``: by what share HEAD's steps take longer. ``broken`` says which trials fail.
    ``head``: what HEAD counts otherwise.
    """

    def __init__(
        self,
        interrupt_at: int = 0,
        slower: float = 0.0,
        broken: Callable[[Trial], bool] = no,
        **head: float,
    ) -> None:
        self.interrupt_at, self.slower, self.broken, self.asked = interrupt_at, slower, broken, 0
        self.head = head

    def batch_size(self, cells):
        return 2

    def run(self, trials: list[Trial]):
        for trial in trials:
            self.asked += 1
            if self.asked == self.interrupt_at:
                raise KeyboardInterrupt
            if self.broken(trial):
                yield TrialFailure(
                    cell=trial.cell, mode=trial.mode, seed=0, kind="crashed", reason="it fell over"
                )
                continue
            slow = 1 + self.slower * trial.cell.release.endswith("head") + self.asked % 7 / 1e5
            metrics = {
                "host_time_per_step": 1e-3 * slow,
                "num_steps": 60.0,
                "gc_collections_per_1000_steps": 900.0,
                "tracked_peak_per_step": 64.0,
                "bytecodes_per_request_step": 100.0,
            }
            is_head = trial.cell.release.endswith("head")
            yield answer(trial, metrics | (self.head if is_head else {}))


@pytest.mark.parametrize("moment", [1, 4, 5, 7, 12, 29, 38, 48])
def test_ctrl_c_is_no_verdict_and_keeps_what_had_ended(gate, read_only, tmp_path, moment):
    """While it is tried what runs at all (4 trials), counted (24), timed (28)."""
    gate.machine = Machine(interrupt_at=moment)
    markdown, answered, figures = (tmp_path / name for name in ("gate.md", "gate.json", "figures"))
    status, out, err = gate(
        read_only,
        "main",
        "--export",
        f"markdown={markdown}",
        "--budget",
        "0",
        "--json",
        str(answered),
        "--export",
        f"bencher={figures}",
    )
    assert status == 130
    assert "interrupted" in err
    assert f"--export bencher={figures}: not written, for not everything was measured" in err
    assert not figures.exists()
    for text in (out, markdown.read_text()):
        assert "✗ incomplete" in text.lower()
        assert "Interrupted before everything was measured." in text
        assert "Nothing changed" not in text
    result = msgspec.json.decode(answered.read_bytes(), type=GateResult)
    assert result.verdict == "incomplete"
    assert {cell.verdict for cell in result.cells} <= {"incomplete"}
    stored = list((tmp_path / "runs").glob("*/trials/*.json"))
    assert len(stored) >= (moment - 5) // 2
    (folder,) = (tmp_path / "runs").glob("*-gate")
    kept = msgspec.json.decode((folder / "result.json").read_bytes(), type=GateResult)
    assert kept.missing


def test_what_is_worse_before_ctrl_c_is_said_and_is_not_a_verdict_by_exit_code(
    gate, read_only, tmp_path
):
    """At the first trial that looks for the cause, once everything is timed."""
    gate.machine = Machine(interrupt_at=62, slower=0.2)
    path = tmp_path / "gate.json"
    status, out, _ = gate(read_only, "main", "--budget", "0", "--json", str(path))
    assert status == 130
    assert out.startswith("▼ WORSE in what was measured ")
    assert "Not measured" in out
    assert msgspec.json.decode(path.read_bytes(), type=GateResult).verdict == "worse"


def test_ctrl_c_while_a_budgets_release_is_counted_is_no_verdict(gate, repository, tmp_path):
    """Its first trial comes once both commits are counted."""
    change(repository, PROCESS, PROCESS + "        # since then\n")
    repository.commit("what is counted for main is not for the commit before")
    most = '{bytecodes_per_request_step = "+3 %"}'
    accepts = f'[budget]\nsince = "main~1"\nmost = {most}\n'
    (repository.root / "gate-accepts.toml").write_text(accepts)
    path = tmp_path / "gate.json"
    flags = ["main", "--exact-only", "--json", str(path)]
    counted: list[str] = []
    gate.machine = Machine(
        broken=lambda trial: (
            trial.mode != "timing" and counted.append(trial.cell.release) is not None
        )
    )
    gate(repository, *flags)
    first = next(n for n, release in enumerate(counted, 1) if release.endswith("since"))
    assert set(counted[first:]) == {counted[first - 1]}, "and nothing after them"
    for moment in (1, first, first + 1):
        shutil.rmtree(tmp_path / "cache")  # or nothing is counted again
        gate.machine = Machine(interrupt_at=moment)
        status, out, _ = gate(repository, *flags)
        assert status == 130
        assert "Interrupted before everything was measured." in out
        assert msgspec.json.decode(path.read_bytes(), type=GateResult).verdict == "incomplete"
        assert gate.machine.asked == moment, "Ctrl-C leaves out what comes after"


@pytest.mark.parametrize("mode", ["opcodes", "timing"])
def test_a_mode_that_neither_commit_survives_is_incomplete(gate, read_only, tmp_path, mode):
    gate.machine = Machine(broken=lambda trial: trial.mode == mode)
    path = tmp_path / "gate.json"
    status, out, err = gate(read_only, "main", "--budget", "0", "--json", str(path))
    assert status == 3
    assert out.startswith("✗ INCOMPLETE ")
    assert "Nothing changed" not in out
    assert msgspec.json.decode(path.read_bytes(), type=GateResult).verdict == "incomplete"
    for text in (out, err):
        assert " ".join(text.split()).count("it fell over") == 1, "one failure, however often"


def test_files_are_complete_where_standard_output_is_full(gate, read_only, monkeypatch, tmp_path):
    gate.machine = Machine()
    files = [tmp_path / name for name in ("gate.md", "result.json", "figures")]
    with full_standard_output(monkeypatch):
        status, _, err = gate(
            read_only,
            "main",
            "--budget",
            "0",
            "--json",
            str(files[1]),
            "--export",
            f"markdown={files[0]}",
            "--export",
            f"action-benchmark-smaller={files[2]}",
        )
    assert status == 74
    assert err.splitlines()[-1].startswith("gcbench: standard output cannot be written: No space")
    assert files[0].read_text().startswith("### gcbench gate: = SAME")
    assert json.loads(files[1].read_text())["verdict"] == "same"
    assert json.loads(files[2].read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "edit", "words"),
    [
        (
            "HEAD",
            ("import time\n", "import time\ndef (\n"),
            r"SyntaxError: invalid syntax \(engines/builtin/engine.py:\d+\)",
        ),
        (
            "BASE",
            ("        params: SamplingParams,\n", ""),
            r"NameError: .*'params'.* \(engines/builtin/engine.py:\d+\)",
        ),
    ],
)
def test_a_commit_that_cannot_run_is_named_once_and_nothing_is_timed(
    gate, engines, tmp_path, side, edit, words
):
    change(engines, *edit)
    engines.commit("broken")
    engines.git("tag", "broken")
    commits = ["broken", "HEAD~1"] if side == "BASE" else ["HEAD~1", "broken"]
    markdown = tmp_path / "gate.md"
    shape = ["--delivery", "columnar", "--representation", "flat_arrays"]
    status, out, err = gate(
        engines, *commits, *shape, "--quiet", "--export", f"markdown={markdown}"
    )
    assert (status, out) == (3, "")
    (line,) = err.splitlines()
    said = rf"{side}, broken \(\w{{10}}\), cannot run: its process ended with status 1: .*{words}"
    assert re.search(said, line)
    assert "✗ INCOMPLETE" in markdown.read_text().splitlines()[0]
    stored = [path.name for path in (tmp_path / "runs").glob("*/trials/*")]
    assert not [name for name in stored if "timing" in name]


@pytest.mark.parametrize("head", [[], ["HEAD"]])
def test_equal_figures_are_the_same_and_every_file_is_written(gate, repository, tmp_path, head):
    """Also from a work tree with changes, where HEAD is left out."""
    gate.machine = Machine()
    change(repository, '"""', '"""Not committed. ')
    before = repository.state()
    files = [tmp_path / name for name in ("gate.md", "result.json", "figures.json")]
    status, out, _ = gate(
        repository,
        "main",
        *head,
        "--budget",
        "0",
        "--json",
        str(files[1]),
        "--export",
        f"markdown={files[0]}",
        "--export",
        f"action-benchmark-smaller={files[2]}",
    )
    assert status == 0
    assert repository.state() == before
    assert out.startswith("= SAME ")
    assert ("uncommitted changes" in out) == (not head)
    assert ("belong to neither commit" in " ".join(out.split())) == bool(head)
    result = msgspec.json.decode(files[1].read_bytes(), type=GateResult)
    assert result.verdict == "same"
    assert result.head.is_dirty == (not head)
    text = Path(result.head.folder, ENGINE).read_text()
    assert text.startswith('"""Not committed.') == (not head)
    assert files[0].read_text().startswith("### gcbench gate: = SAME")
    assert json.loads(files[2].read_text())
    assert max(map(len, out.splitlines())) <= 80


def test_a_trade_fails_until_the_line_of_its_report_is_in_a_commit(
    gate, repository, tmp_path, monkeypatch
):
    gate.machine = Machine(bytecodes_per_request_step=80.0, tracked_peak_per_step=96.0)
    repository.git("tag", "base")
    repository.commit("Trade objects for bytecodes", engines__ours="1")
    status, out, _ = gate(repository, "base", "main", "--exact-only")
    assert status == 1
    assert out.startswith("⇅ TRADE, by exact counts alone ")
    assert "a trade, -20 bytecodes per request and step for +32 live objects/step;" in " ".join(
        out.split()
    )
    (line,) = (each for each in out.splitlines() if each.startswith("accept"))
    repository.commit(f"Accept it\n\n{line.removeprefix('accept').strip()}")
    status, out, _ = gate(repository, "base", "main", "--exact-only")
    assert status == 0
    assert out.startswith("✓ ACCEPTED, by exact counts alone ")
    assert "+32 of 32 live objects/step, by commit " in " ".join(out.split())
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "another"))  # HEAD's was called BASE's, too
    status, out, _ = gate(repository, "main", "main", "--exact-only")
    assert (status, "accepted" in out.lower()) == (1, False), "merged, it accepts nothing"


@pytest.mark.parametrize(("slower", "verdict"), [(0.2, "incomplete"), (0.05, "same")])
def test_steps_that_took_far_longer_are_never_the_same(gate, read_only, tmp_path, slower, verdict):
    """Work in C is in no count."""
    gate.machine = Machine(slower=slower)
    path = tmp_path / "gate.json"
    status, out, _ = gate(read_only, "main", "--exact-only", "--json", str(path))
    result = msgspec.json.decode(path.read_bytes(), type=GateResult)
    assert (status, result.verdict) == (3 if verdict == "incomplete" else 0, verdict)
    assert {cell.verdict for cell in result.cells} == {verdict}
    assert ("which the counts do not explain" in " ".join(out.split())) == (slower > 0.1)


def test_without_valgrind_there_is_a_sentence_and_no_count(gate, read_only, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, err = gate(read_only, "main", "--instructions", "--exact-only")
    assert (status, out, len(err.splitlines())) == (3, "", 1)
    assert "there is no valgrind on PATH" in err
    assert "apt-get install valgrind" in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@NEEDS_VALGRIND
@pytest.mark.parametrize(
    ("planted", "verdict"),
    [
        ('        __import__("zlib").crc32(bytes(1 << 16))\n', "worse"),
        ("        # Nothing of the step is different.\n", "same"),
    ],
)
def test_work_in_c_is_worse_by_name(gate, engines, tmp_path, planted, verdict):
    change(engines, PROCESS, PROCESS + planted)
    answered = tmp_path / "gate.json"
    status, out, _ = gate(
        engines, "main", "--exact-only", "--instructions", *LISTS, "--json", str(answered)
    )
    (cell,) = msgspec.json.decode(answered.read_bytes(), type=GateResult).cells
    (counted,) = (each for each in cell.exact if each.metric == "instructions_per_request_step")
    assert (status, cell.verdict, counted.verdict) == (int(verdict == "worse"), verdict, verdict)
    assert [each.function for each in cell.c_functions][:1] == ["crc32_z"] * (verdict == "worse")
    assert ("crc32_z of libz.so" in out) == (verdict == "worse")


def test_a_waiver_that_nobody_can_mean_is_wrong_usage_before_anything_runs(
    gate, repository, tmp_path
):
    repository.commit("Trade\n\nGate-accepts: memory +2 KiB")
    status, out, err = gate(repository, "HEAD~1", "main", "--exact-only")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "'memory' is no exact metric; is it memory_peak_per_step or " in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_what_others_merged_is_named_before_anything_is_measured(gate, repository, tmp_path):
    gate.machine = Machine()
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.commit("ours", engines__ours="1")
    repository.git("checkout", "--quiet", "main")
    repository.git("tag", "stale")
    repository.commit("others", engines__others="1")
    repository.git("merge", "--quiet", "--no-ff", "branch", "--message", "merge")
    markdown = tmp_path / "gate.md"
    status, out, err = gate(
        repository, "stale", "main", "--exact-only", "--export", f"markdown={markdown}"
    )
    words = "HEAD is a merge whose first parent"
    assert status == 0
    assert err.startswith(words)
    assert words in " ".join(out.split())
    assert words in markdown.read_text()


def test_help_reads_well_at_80_and_100_columns(capsys, monkeypatch):
    for columns in ("80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["gate", "--help"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= int(columns)
        assert re.search(r"Examples:\n\s+gcbench gate ", text)
        for word in ("BASE", "[HEAD]", "--exact-only", "Exit status", "work tree as it stands"):
            assert word in text


def gate_process(repository, tmp_path, *arguments: str) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "harness",
        "gate",
        *arguments,
        *TINY,
        "--repo",
        str(repository.root),
        "--output",
        str(tmp_path / "runs"),
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **HEARS_CTRL_C,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (("import time\n", "import time\nimport a_module_of_no_name\n"), "a_module_of_no"),
        ((PROCESS, PROCESS + "        raise RuntimeError('out of order')\n"), "out of order"),
        (('"flat_arrays"', '"other_arrays"', "engines/builtin/registries.py"), "flat_arrays"),
    ],
)
def test_a_commit_that_does_not_run_is_no_success(gate, engines, edit, words):
    change(engines, *edit)
    engines.commit("broken")
    status, out, _ = gate(
        engines,
        "HEAD~1",
        "HEAD",
        "--rounds",
        "3",
        "--budget",
        "0",
        "--delivery",
        "columnar",
        "--representation",
        "flat_arrays",
    )
    out = " ".join(out.split())
    assert status == 3
    assert words in out
    assert out.startswith("✗ INCOMPLETE ")
    assert "HEAD, " in out, "by commit rather than by folder"
    assert "▲" not in out


@pytest.mark.slow
@pytest.mark.landing
def test_one_more_object_for_each_request_is_found_by_counting(gate, engines, tmp_path):
    notes = "        self._notes = [{row} for row in step.output.rows.tolist()]\n"
    change(engines, PROCESS, PROCESS + notes)
    kept = "        self._num_surplus = 0\n"
    change(engines, kept, "        self._notes: list[set[int]] = []\n" + kept)
    engines.commit("Keep a note of each `request`")
    path = tmp_path / "gate.json"
    status, out, _ = gate(engines, "HEAD~1", "HEAD", "--exact-only", *LISTS, "--json", str(path))
    assert status == 1
    result = msgspec.json.decode(path.read_bytes(), type=GateResult)
    assert result.verdict == "worse"
    for cell in result.cells:
        worse = {found.metric for found in cell.exact if found.verdict == "worse"}
        assert {"tracked_allocations_per_step", "bytecodes_per_request_step"} <= worse
        assert cell.timing is None
    assert out.startswith("▼ WORSE, by exact counts alone ")
    assert re.search(r"at its peak a step has 6\d more tracked objects", " ".join(out.split()))


@pytest.mark.slow
def test_work_in_add_request_is_found_though_no_step_costs_more(gate, engines):
    line = "        check_params(request_index, params, self.config)\n"
    loop = "        for _ in range(10):\n            pass\n"
    change(engines, line, line + loop)
    engines.commit("Look at a request ten times before it is queued")
    status, out, _ = gate(engines, "HEAD~1", "HEAD", "--exact-only")
    assert status == 1
    sentence = r"Every cell: a request costs \d\d more bytecodes to add \(\+\d+\.\d %, .*?\)\. "
    assert re.search(sentence, " ".join(out.split()))
    assert out.count("bytecodes_per_add") == 1
    assert "bytecodes_per_request_step" not in out


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_a_kill_leaves_results_that_are_read(engines, tmp_path):
    trials = tmp_path / "runs"
    for number, how in enumerate((signal.SIGINT, signal.SIGKILL)):
        with gate_process(engines, tmp_path, "main", *LISTS, "--rounds", "50") as gating:
            enough = 4 * (number + 1)
            wait_for(lambda n=enough: len(list(trials.glob("*/trials/*.json"))) >= n, gating)
            children = psutil.Process(gating.pid).children(recursive=True)
            os.kill(gating.pid, how)
            _, err = gating.communicate(timeout=600)
            if how == signal.SIGKILL:  # nobody is left to end them
                for child in children:
                    if is_alive(child):
                        child.kill()
        assert gating.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        assert "Traceback" not in err
        until(lambda started=children: not any(map(is_alive, started)))
    for folder in trials.glob("*-exact"):
        store = RunStore(trials, folder.name)
        assert store.load_trials()
        assert store.warnings == []
    assert len(list(trials.glob("*/result.json"))) == 1


SHARED = ("        processed.outputs = [\n", "        processed.outputs = len(indices) * [\n")
ONLY_THE_FIRST = (
    "strict=True\n            )\n        ]",
    "strict=True\n            )\n        ][:1]",
)


@pytest.mark.slow
def test_one_output_for_all_requests_is_other_work_told_by_request_step_and_token(gate, engines):
    """`output_token_ids` is as before, and the objects are fewer: it once was BETTER."""
    for before, after in (SHARED, ONLY_THE_FIRST):
        change(engines, before, after, "engines/builtin/delivery/per_request.py")
    status, out, _ = gate(engines, "main", *LISTS, "--exact-only")
    said = " ".join(out.split())
    assert status == 3
    assert "HEAD produces other tokens (first in step 1, request 0, token 2: " in said


ALLOWED = ["--allow-uncovered"]


@pytest.mark.slow
def test_a_worker_s_loop_that_no_cell_enters_is_the_same_only_where_it_ran(gate, engines, tmp_path):
    loop = "            message = memoryview(self._next())\n"
    dearer = loop + "            for _ in range(20_000):\n                pass\n"
    change(engines, loop, dearer, "engines/builtin/worker/process_loop.py")
    for flags, verdict, expected in (([], "? NOT COVERED", 3), (ALLOWED, "= SAME where it ran", 0)):
        status, out, _ = gate(engines, "main", *LISTS, "--exact-only", *flags)
        assert (status, out[: len(verdict)]) == (expected, verdict)
    tried = [list(tmp_path.glob(f"runs/*-{name}/trials/*")) for name in ("cover", "likely")]
    assert len(tried[0]) > 5
    assert len(tried[1]) == 1, "the second gate knew where to look"
    assert "WorkerProcess.run (engines/builtin/worker/process_loop.py:" in " ".join(out.split())
