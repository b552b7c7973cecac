"""`gcbench bisect` from the outside: which commit it names, and what it says where it cannot."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from math import ceil, log2
from pathlib import Path

import msgspec
import pytest
from full_output import full_standard_output
from scratch_repository import Repository, leave_git_alone
from small import answer

from engines.prepared.cache import ReleaseError
from engines.vllm.host_path import HostPathEngine
from harness.cli.flags import asked
from harness.cli.gate import gate
from harness.cli.main import main
from harness.experiment.executor import Executor
from harness.experiment.store import RunStore
from harness.result.result import RESULT_SCHEMA
from harness.tracking.bisect.result import BisectResult
from harness.trial.spec import Trial, TrialFailure, TrialResult
from harness.verbs.gate_request import GateRequest

ROOT = Path(__file__).parents[3]
ENGINE = "engines/builtin/engine.py"
FIGURE = "engines__builtin__engine"
"""The file's name for `Repository`."""
METRIC = "bytecodes_per_request_step"


class Machine(Executor):
    """Takes the place of this machine: a tree's figure is what its engine.py holds.

    "broken" there is a trial that fails. ``interrupt_at``: the trial at which Ctrl-C comes.
    """

    def __init__(self, figure: Callable[[str], str] | None = None) -> None:
        self._figure = figure or (lambda release: Path(release, ENGINE).read_text())
        self.trials: list[Trial] = []
        self.interrupt_at = 0
        self.tokens = dict[str, str]()

    def batch_size(self, cells):
        return 2

    def run(self, trials: list[Trial]):
        for trial in trials:
            self.trials.append(trial)
            if len(self.trials) == self.interrupt_at:
                raise KeyboardInterrupt
            yield self._outcome(trial)

    def _outcome(self, trial: Trial) -> TrialResult | TrialFailure:
        text = self._figure(trial.cell.release)
        if text == "broken":
            why = f"no module there ({trial.cell.release}/{ENGINE}:1)"
            return TrialFailure(
                cell=trial.cell, mode=trial.mode, seed=0, kind="crashed", reason=why
            )
        value = None if text == "nothing" else float(text)
        metrics = {METRIC: value, "gc_collections_gen0": value, "leaked_objects_per_step": value}
        return answer(trial, metrics, tokens_sha256=self.tokens.get(text, "same"))


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))


def begun(root: Path) -> Repository:
    made = Repository(root)
    made.commit("before there were engines", other="1")
    made.git("tag", "bare")
    return made


@pytest.fixture
def repository(tmp_path):
    return begun(tmp_path / "repo")


@pytest.fixture(scope="module")
def branched(tmp_path_factory):
    """For those who only read it: ``old`` and ``main``, a branch beside it and another history."""
    made = begun(tmp_path_factory.mktemp("branched") / "repo")
    plant(made, 100)
    made.git("tag", "old")
    made.git("branch", "side")
    plant(made, 120)
    made.git("checkout", "--quiet", "side")
    made.commit("on the side", engines__b="1")
    made.git("checkout", "--quiet", "--orphan", "alien")
    made.commit("another history")
    made.git("checkout", "--quiet", "main")
    return made


class Bisect:
    """Runs the command on the repository; status, what it printed, what it said of errors."""

    def __init__(self, repository, tmp_path, capsys) -> None:
        self.machine = Machine()
        self.runs = tmp_path / "runs"
        self._json = tmp_path / "bisect.json"
        self._repository, self._capsys = repository, capsys

    def __call__(self, *arguments: str, metric: str = METRIC) -> tuple[int, str, str]:
        flags = ["--output", str(self.runs), "--json", str(self._json), *arguments]
        flags += ["--metric", metric] if metric else []
        if "--engine" not in arguments:
            flags += ["--repo", str(self._repository.root)]
        machine = self.machine
        status = main(["bisect", *flags], machine and (lambda _timeout: machine))
        said = self._capsys.readouterr()
        return status, said.out, said.err

    @property
    def result(self) -> BisectResult:
        """What was written for programs, the same in both places."""
        (kept,) = self.runs.glob("*-bisect/result.json")
        assert json.loads(kept.read_bytes()) == json.loads(self._json.read_bytes())
        return msgspec.json.decode(self._json.read_bytes(), type=BisectResult)


@pytest.fixture
def bisect(repository, tmp_path, capsys):
    return Bisect(repository, tmp_path, capsys)


def plant(repository, *figures: object) -> list[str]:
    """A commit for each figure; one that is as the last one changes something else."""
    made, last = [], None
    for number, figure in enumerate(figures):
        file = (
            {"other": str(number)} if figure == last else {"engines__builtin__engine": str(figure)}
        )
        made.append((f"Change {number}", file))
        last = figure
    return repository.line(made)


@pytest.mark.parametrize("culprit", [1, 7, 19])
def test_the_commit_is_named_with_its_author_and_its_figures(bisect, repository, culprit):
    figures = [(120 if n >= culprit else 100) + (1 + n % 3) * 1e-4 for n in range(20)]
    made = plant(repository, *figures)
    before = repository.state()
    status, out, err = bisect(made[0], made[-1])
    assert status == 0
    assert repository.state() == before
    answered = out.split("Measured commits")[0]
    date = repository.git("show", "--no-patch", "--format=%ad", "--date=short", made[culprit])
    assert " ".join(answered.split()) == (
        f"{made[culprit][:10]} Change {culprit}, by A on {date}, changed {METRIC} from 100.0 to "
        "120.0 bytecodes (+20.0 %, worse)."
    )
    table = out.split("all it changes")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(rf"{made[0][:10]} Change 0 +100\S* +good\n", out)
    assert re.search(rf"{made[-1][:10]} Change 19 +120\S* +bad\n", out)
    assert len(bisect.machine.trials) <= ceil(log2(19)) + 2
    result = bisect.result
    assert result.schema == RESULT_SCHEMA
    assert [each.id for each in result.suspects] == [made[culprit]]
    assert [each.candidate.subject for each in result.measured if each.verdict == "bad"]
    assert f"measuring {made[0][:10]} Change 0; about 6 more after it" in err
    assert len(re.findall(r"^measuring ", err, re.MULTILINE)) == len(bisect.machine.trials)


def test_the_command_that_explains_it_is_one_that_gate_takes(bisect, repository):
    made = plant(repository, 100, 120)
    flags = [
        "--num-requests",
        "8",
        "--axis",
        "stop=a b",
        "--axis",
        "stop=c",
        "--axis",
        "detokenizer=byte_table",
    ]
    status, out, _ = bisect(
        made[0], "HEAD", *flags, "--axis", "respect-eos=on", "--batch-size", "8"
    )
    assert status == 0
    (command,) = re.findall(r"^all it changes +(gcbench gate .*)$", out, re.MULTILINE)
    words = shlex.split(command)
    assert words[2:4] == [made[0][:10], made[1][:10]]
    assert words[-1] == "--exact-only"
    assert command == bisect.result.explain
    taken = asked(GateRequest, gate.make_context("gate", words[2:]))
    assert taken.stop == ["a b", "c"]
    assert (taken.num_requests, taken.values("batch_size"), taken.respect_eos) == (8, [8], True)
    assert taken.repo == repository.root


@pytest.mark.parametrize(
    ("metric", "modes"),
    [(METRIC, ["opcodes"] * 2), ("gc_collections_gen0", ["counts"] * 2 + ["opcodes"] * 2)],
)
def test_each_trial_counts_in_the_metrics_own_mode_and_is_kept(bisect, repository, metric, modes):
    """Then, unless that was the same, by function, the two beside the culprit."""
    made = plant(repository, 100, 120, 120)
    assert bisect(made[0], metric=metric)[0] == 0
    assert [trial.mode for trial in bisect.machine.trials] == modes, (
        "the third commit has the second one's engines"
    )
    kept = [folder for folder in bisect.runs.iterdir() if not folder.name.endswith("-bisect")]
    for folder in kept:
        store = RunStore(bisect.runs, folder.name)
        assert len(store.load_trials()) == 1
        assert not (folder / "incomplete.txt").exists()
    assert len(kept) == len(modes)


def test_equal_trees_share_a_measurement(bisect, repository):
    """Reverts, and reverts of them."""
    made = plant(repository, *[100, 101, 100, 101, 100, 101, 120, 100, 120, 121, 120, 121] * 2)
    status, _, _ = bisect(made[1], made[-1])
    assert status == 0
    assert len(bisect.machine.trials) <= 4


def test_commits_that_cannot_run_are_stepped_around(bisect, repository):
    figures = [100 + n * 1e-4 for n in range(16)] + [120 + n * 1e-4 for n in range(8)]
    figures[11:14] = ["broken", "broken ", "broken"]
    figures[12] = "nothing"
    made = plant(repository, *figures)
    status, out, _ = bisect(made[0])
    assert status == 0
    assert [each.id for each in bisect.result.suspects] == [made[16]]
    assert re.search(rf"{made[11][:10]} Change 11 +– +✗ cannot run", out)
    reason = rf"{made[11][:10]}\S* .*no module there \({ENGINE}:1\)"
    assert re.search(reason, " ".join(out.split("Cannot be measured")[1].split()))


def test_all_among_which_the_culprit_lies_are_named(bisect, repository):
    made = plant(repository, 100, 100.1, "broken", "nothing", "120", 120.1)
    status, out, _ = bisect(made[0])
    assert status == 3
    said = " ".join(out.split())
    assert f"One of 3 commits changed {METRIC} from 100.1 to 120 bytecodes (+19.9 %, worse)" in said
    for number in (2, 3, 4):
        assert f"- {made[number][:10]} Change {number}, by A on 20" in out
    assert f"{made[2][:10]}: no module there ({ENGINE}:1)" in said
    assert f"{made[3][:10]}: its trial gave no {METRIC}" in said
    assert [each.id for each in bisect.result.suspects] == made[2:5]
    assert f"gcbench gate {made[1][:10]} {made[4][:10]} " in out


def test_a_commit_without_the_package_or_without_an_engine_is_stepped_around(bisect, repository):
    made = plant(repository, 100)
    shutil.rmtree(repository.root / "engines")
    made.append(repository.commit("Remove the engines"))
    made.append(repository.commit("Another engine", engines__motor="1"))
    made += plant(repository, 120)
    status, out, _ = bisect(made[0])
    assert status == 3
    said = " ".join(out.split())
    assert "has no engines/" in said
    assert "no engines/builtin there" in said
    assert [each.id for each in bisect.result.suspects] == made[1:]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            [100, 120, 100.01],
            [
                f"Nothing to find: {METRIC} goes from 100 to 100.0 bytecodes",
                "too small a change to search for.",
            ],
        ),
        (
            [100, 120, "100.0"],
            [f"Nothing to find: {METRIC} is 100 bytecodes at GOOD", "and at BAD HEAD alike."],
        ),
        ([100, 100, 100], ["Nothing to find", "2 commits after GOOD, of which 1 change"]),
        (["broken", 100, 120], ["Nothing was searched, because GOOD", "no module there"]),
        ([100, 120, "broken"], ["Nothing was searched, because BAD HEAD cannot be measured"]),
        ([100, 120, "nothing"], ["Nothing was searched", f"its trial gave no {METRIC}."]),
        (
            [100 + n / 5 for n in range(20)],
            [
                f"No single commit moved {METRIC}: it goes from 100 to 103.8 bytecodes "
                "(+3.8 %, worse)"
            ],
        ),
    ],
)
def test_nothing_that_is_found_is_no_success(bisect, repository, figures, words):
    made = plant(repository, *figures)
    status, out, _ = bisect(made[0])
    assert status == 3
    for word in words:
        assert word in " ".join(out.split())
    assert bisect.result.conclusion in ("same", "unmeasured", "gradual")
    assert "gcbench gate" not in out
    status, out, err = bisect(made[0], "--quiet")
    assert (status, out) == (3, "")
    (line,) = err.splitlines()
    assert line.startswith("gcbench: No")


def test_other_commits_that_moved_it_are_not_passed_over(bisect, repository):
    made = plant(repository, 100, 110, 110.1, 110, 130, 130.1, 136)
    status, out, _ = bisect(made[0], "HEAD", "--batch-size", "8")
    assert status == 0
    result = bisect.result
    assert [each.id for each in result.suspects] == [made[4]]
    said = " ".join(out.split())
    assert (
        "from 100 to 136 bytecodes (+36.0 %, worse). This commit's change is 55.6 % of it" in said
    )
    repo = f"--repo {repository.root} --batch-size 8"
    before, after = result.rest
    assert before == f"gcbench bisect {made[0]} {made[3][:10]} --metric {METRIC} {repo}"
    assert after == f"gcbench bisect {made[4][:10]} HEAD --metric {METRIC} {repo}"
    assert before in out, "in one line, to be copied"
    for command, culprit in ((before, 1), (after, 6)):
        shutil.rmtree(bisect.runs)
        assert bisect(*shlex.split(command)[2:4])[0] == 0
        assert [each.id for each in bisect.result.suspects] == [made[culprit]]


def test_what_became_better_is_found_too(bisect, repository):
    made = plant(repository, 0.5, 0.5001, 0, 0)
    status, out, _ = bisect(made[0], metric="leaked_objects_per_step")
    assert status == 0
    assert "from 0.500 to 0 objects (-100.0 %, better)" in " ".join(out.split())
    made = plant(repository, 0, 0.5)
    shutil.rmtree(bisect.runs)
    status, out, _ = bisect(made[0], metric="leaked_objects_per_step")
    assert status == 0
    assert "from 0 to 0.500 objects (worse)" in " ".join(out.split())


def test_other_work_is_no_figure(bisect, repository):
    made = plant(repository, 100, 101, 120, 121)
    bisect.machine.tokens = {"101": "other", "121": "other"}
    status, out, _ = bisect(made[0], made[2], metric="gc_collections_gen0")
    assert status == 3
    assert "101" not in {str(each.figure) for each in bisect.result.measured}
    assert "it produces other tokens than GOOD" in " ".join(out.split())
    shutil.rmtree(bisect.runs)
    status, out, _ = bisect(made[0], made[3], metric="gc_collections_gen0")
    assert status == 3
    assert "because BAD" in out


@pytest.mark.parametrize("moment", range(1, 7))
def test_ctrl_c_says_what_is_known_so_far(bisect, repository, moment):
    made = plant(repository, *(100 + n * 1e-4 + 20 * (n >= 9) for n in range(17)))
    bisect.machine.interrupt_at = moment
    status, out, err = bisect(made[0])
    assert status == 130
    assert "interrupted; what is said is of the trials that had ended" in err
    said, result = " ".join(out.split()), bisect.result
    assert result.conclusion == "interrupted"
    assert len(result.measured) == moment - 1
    assert (result.explain, result.rest) == ("", [])
    if moment <= 2:
        assert said.startswith(f"Interrupted before GOOD {made[0]} and BAD HEAD were both measured")
        assert result.suspects == []
        return
    count = len(result.suspects)
    assert made[9] in [each.id for each in result.suspects]
    assert count < 17 / 2 ** (moment - 3) + 1
    assert f"Interrupted: {METRIC} changed from 100" in said
    assert f"with one of the {count} commits after " in said


def test_quiet_and_json_on_standard_output(bisect, repository, tmp_path, capsys):
    made = plant(repository, 100, 110, 120)
    assert bisect(made[0], "--quiet") == (0, "", "")
    where = ["--repo", str(repository.root), "--output", str(tmp_path / "others")]
    arguments = ["bisect", made[0], "--metric", METRIC, *where, "--json", "-"]
    assert main(arguments, lambda _timeout: Machine()) == 0
    out = capsys.readouterr().out
    assert msgspec.json.decode(out, type=BisectResult).conclusion == "found"


def test_the_result_is_kept_where_standard_output_is_full(bisect, repository, monkeypatch):
    made = plant(repository, 100, 120)
    with full_standard_output(monkeypatch):
        assert bisect(made[0])[0] == 74
    assert bisect.result.conclusion == "found"


def test_what_a_commit_says_is_shown_and_not_obeyed(bisect, repository):
    plant(repository, 100)
    repository.git("tag", "good")
    repository.commit(f"\x1b[31mred [bold]{'long ' * 40}", engines__builtin__engine="120")
    status, out, _ = bisect("good")
    assert status == 0
    assert "\x1b" not in out
    assert "x1b[31mred [bold]" in out
    assert max(map(len, out.split("all it changes")[0].splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["Missing argument", "GOOD"]),
        (["nowhere"], ["has no commit 'nowhere'", "git log --all --oneline"]),
        (["old", "nowhere"], ["has no commit 'nowhere'"]),
        (["old", ""], ["empty name"]),
        (["HEAD"], ["GOOD HEAD and BAD HEAD are the same commit"]),
        (["main", "old"], ["no ancestor of BAD old, but its descendant", "older commit first"]),
        (["side", "main"], ["GOOD side is no ancestor of BAD main; the last commit"]),
        (["alien", "main"], ["GOOD alien is no ancestor of BAD main; they have no commit in"]),
        (["bare"], ["bare (", "has no engines/", "--repo"]),
        (["old", "--gc", "default,freeze"], ["one value an axis"]),
        (["old", "--batch-size", "8,16"], ["one value an axis"]),
        (["old", "--engine", "builtin,vllm-hostpath"], ["--engine builtin,vllm-hostpath", "one"]),
        (["old", "--engine", "builtn"], ["'builtn'", "builtin"]),
        (["old", "--device", "modelled"], ["need not repeat", "--device null"]),
        (["old", "--worker", "process"], ["need not repeat", "--worker"]),
        (["old", "--json", "/nowhere/x.json"], ["--json /nowhere/x.json", "written"]),
        (["old", "--output", "/proc/nowhere"], ["/proc/nowhere", "--output DIR"]),
        (["old", "--release", "x"], ["--release"]),
        (["old", "--rounds", "3"], ["--rounds"]),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(branched, tmp_path, capsys, arguments, words):
    if "--engine" in arguments:
        arguments = [*arguments, "--repo", str(branched.root)]
    assert_refused(Bisect(branched, tmp_path, capsys), *arguments, words=words)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("", ["--metric: must be given"]),
        ("bytecodes_per_request", ["no such metric; did you mean bytecodes_per_request_step"]),
        ("request_throughput", ["comes from timed trials"]),
        ("tracked_heap", ["neither better nor worse"]),
        ("scheduler_output_bytes_per_step", ["nothing crosses with --worker in-process"]),
    ],
)
def test_a_metric_that_is_not_exact_is_refused(bisect, repository, metric, words):
    made = plant(repository, 100, 120)
    assert_refused(bisect, made[0], metric=metric, words=words)


def assert_refused(bisect, *arguments: str, words: list[str], metric: str = METRIC) -> None:
    status, out, err = bisect(*arguments, metric=metric)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("gcbench: ")
    for word in words:
        assert word in line
    assert not bisect.runs.exists(), "nothing is begun"
    assert bisect.machine.trials == []


@pytest.fixture
def releases(monkeypatch, bisect):
    """vLLM's releases as an index might have them; those that were prepared, in their order."""
    known = ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.9.1"]
    prepared: list[str] = []

    def prepare(release, say):
        say(f"downloading vLLM {release}")
        if release == "0.11.2":
            raise ReleaseError(f"vLLM {release} cannot be imported")
        prepared.append(release)

    def figure(release):
        return "100" if release in ("0.10.2", "0.11.0", "0.11.1") else "80"

    monkeypatch.setattr("engines.vllm.releases.VLLM.known_versions", lambda: known[::-1])
    monkeypatch.setattr("engines.vllm.releases.VLLM.prepare_release", prepare)
    monkeypatch.setattr(HostPathEngine, "launch", staticmethod(lambda _python, _release: None))
    bisect.machine = Machine(figure)
    return prepared


HOST_PATH = ["--engine", "vllm-hostpath"]


def test_releases_are_prepared_when_they_are_needed(bisect, releases):
    flags = [*HOST_PATH, "--batch-size", "8"]
    status, out, err = bisect("v0.10.2", "0.14.0", *flags, metric="gc_collections_gen0")
    assert status == 3
    said = " ".join(out.split())
    assert "One of 2 releases changed gc_collections_gen0 from 100 to 80 collections" in said
    assert "(-20.0 %, better)" in said
    assert "0.11.2: vLLM 0.11.2 cannot be imported" in said
    assert releases[:2] == ["0.10.2", "0.14.0"]
    assert "0.13.0" not in releases
    assert "downloading vLLM 0.10.2" in err
    result = bisect.result
    assert (result.candidate_kind, result.num_commits) == ("release", 6)
    assert [each.id for each in result.suspects] == ["0.11.2", "0.12.0"]
    assert result.explain == "gcbench releases vllm 0.11.1 0.12.0 --batch-size 8"


def test_a_release_is_named_by_its_version(bisect, releases):
    status, out, _ = bisect("0.11.1", "0.12", *HOST_PATH, metric="gc_collections_gen0")
    assert status == 3
    shutil.rmtree(bisect.runs)
    bisect.machine = Machine(lambda release: "100" if release < "0.13" else "80")
    status, out, _ = bisect("0.12.0", "0.14.0", *HOST_PATH, metric="gc_collections_gen0")
    assert status == 0
    assert " ".join(out.split()).startswith("0.13.0 changed gc_collections_gen0 from 100 to 80")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["0.14.0", "0.11.0"], ["GOOD 0.14.0 is no older release than BAD 0.11.0"]),
        (["0.11.0", "0.11"], ["no older release"]),
        (["0.9.1", "0.11.0"], ["too old"]),
        (["0.11.0", "0.11.9"], ["0.11.9 is not on the package index"]),
        (["0.11.0", "0.13.0rc1"], ["not a final release"]),
    ],
)
def test_releases_that_cannot_be_searched_are_one_sentence(bisect, releases, arguments, words):
    metric = "gc_collections_gen0"
    assert_refused(bisect, *arguments, *HOST_PATH, words=words, metric=metric)
    assert releases == []


def test_help_reads_well_at_80_and_100_columns(capsys, monkeypatch):
    for columns in ("80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["bisect", "--help"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= int(columns)
        assert re.search(r"Examples:\n\s+gcbench bisect ", text)
        for word in ("GOOD", "[BAD]", "--metric NAME", "Exit status"):
            assert word in text


DOC = '        """The next step."""\n'
LOOP = "        for _ in range(200):\n            pass\n"
LATE = "        for _ in range(200 * (0 < len(self._running) < 32)):\n            pass\n"
"""Once the first requests have gone."""
KEPT = "        self._kept = [*getattr(self, '_kept', ()), {*()}]\n"
"""Sets have no free list, whose last entries another line would have had."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "culprit", "metric"),
    [(LOOP, 23, METRIC), (LATE, 41, METRIC), (KEPT, 50, "tracked_survivors_per_step")],
)
def test_a_planted_commit_is_found_among_64_by_running_eight(
    bisect, repository, planted, culprit, metric
):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "engines", repository.root / "engines", ignore=ignored)
    scheduler = repository.root / "engines" / "builtin" / "scheduler.py"
    made = []
    for number in range(65):
        text = scheduler.read_text()
        if number == culprit:
            assert text.count(DOC) == 1
            text = text.replace(DOC, DOC + planted)
        scheduler.write_text(f"{text}# Nothing changes here: {number}.\n")
        made.append(repository.commit(f"Change {number}"))
    bisect.machine = None
    small = ["--num-requests", "32", "--batch-size", "32", "--output-lens", "uniform:12:36"]
    status, out, err = bisect(made[0], "HEAD", *small, "--device", "null", metric=metric)
    assert status == 0, err
    result = bisect.result
    assert [each.subject for each in result.suspects] == [f"Change {culprit}"]
    assert len(result.measured) <= 8
    assert f"Change {culprit}, by A on " in " ".join(out.split())
    assert "worse)" in out
    (first, *_) = result.functions
    assert (first.when, first.function) == ("step", "Scheduler.schedule")
    assert first.text == planted.splitlines()[0].strip()
    assert f"Scheduler.schedule\n  engines/builtin/scheduler.py:{first.line}" in re.sub(
        " +\n", "\n", out
    )
