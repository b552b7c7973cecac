"""Every kind of result is stored, read back and shown in every format, whatever made it."""

import io
from html.parser import HTMLParser

import pytest
from explain_bodies import BODIES
from golden_text import reported
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.cells import cell_len
from test_pages import GATE, MAIN_JOB
from test_report import made_up_trial
from test_report_load import ATTRIBUTED
from test_report_nightly import NIGHTS

from harness.cli.main import main
from harness.experiment.advice import Advice
from harness.experiment.crossover import CrossoverPoint, CrossoverResult, HostChange
from harness.experiment.diff import diff
from harness.experiment.doctor_result import DoctorResult
from harness.experiment.experiment_file import PartResult, PartsResult
from harness.experiment.noise_result import NoiseResult
from harness.experiment.run_result import RunResult
from harness.experiment.store import load_experiment
from harness.explain.cadence import Cadence, CadenceResult
from harness.explain.result import ExplainResult
from harness.files import write_json
from harness.load.both_ways import HttpResult
from harness.load.steady import SteadyRate
from harness.load.sweep import Knee, SweepPoint, SweepResult
from harness.load.task import Asked
from harness.machine.doctor import DoctorFinding
from harness.probed.result import GenerationTotals, ProbedProcess, ProbeResult
from harness.render.markdown import report_markdown
from harness.render.terminal import make_console, print_report
from harness.report.kinds import KINDS, describe_result, read_result
from harness.result.result import RESULT_FILE, ReplayedWorkload, Result
from harness.tracking.bisect.result import BisectResult, Candidate, Measured
from harness.tracking.history_result import HistoryResult, Read, SeriesChange

JOB = load_experiment(MAIN_JOB)
ABOUT = {
    "name": "made-up",
    "command": "gcbench made-up --output 'a folder'",
    "machine": JOB.machine,
    "workloads": [ReplayedWorkload(name="chat")],
    "notes": ["a note of it"],
}
ODD = "`a` <b> | $x$ @c"
OLD, NEW = (Candidate(id=each * 40, subject=f"Change {each}") for each in "ab")
RESULTS: list[Result] = [
    JOB,
    GATE,
    NIGHTS["one of many, and another"],
    ATTRIBUTED,
    diff(JOB, JOB, 0.02),
    PartsResult(
        name="two",
        question="Which is best?",
        parts=[PartResult(title=title, published=[], result=JOB) for title in ("one", "another")],
    ),
    Advice(tried=JOB, verified=None, recommends="", bound=1.5, snippet="", **ABOUT),
    NoiseResult(
        metric="host_time_per_step",
        cells=2,
        rounds=14,
        trial_cv=0.02,
        sd_log_ratio=0.018,
        mde={7: 0.031, 14: 0.0152},
        experiment=JOB,
        **ABOUT,
    ),
    BisectResult(
        candidate_kind="commit",
        package="engines",
        metric="bytecodes_per_request_step",
        unit="bytecodes",
        direction="lower",
        good="old",
        bad="new",
        conclusion="found",
        num_commits=1,
        num_candidates=1,
        suspects=[NEW],
        before=100.0,
        after=120.0,
        functions=[],
        measured=[
            Measured(candidate=OLD, figure=100.0, verdict="good"),
            Measured(candidate=NEW, figure=120.0, verdict="bad"),
        ],
        explain="gcbench gate old new --exact-only",
        rest=[],
        axes={},
        **ABOUT,
    ),
    CrossoverResult(
        axes={},
        baseline="default",
        tolerance=0.02,
        rounds=5,
        points=[
            CrossoverPoint(
                candidate="freeze",
                batch_size=8,
                heap_objects=0,
                latencies={
                    "token": HostChange(baseline_seconds=1e-3, ratio=0.5, ci95=(0.45, 0.55))
                },
            )
        ],
        models=[],
        checks=[],
        **ABOUT,
    ),
    CadenceResult(
        axes={},
        cadences=[
            Cadence(
                label="default",
                python="3.11.7",
                long_lived=0,
                thresholds=(700, 10, 10),
                predicted=(10, 1, 0),
                observed=(10, 1, 0),
                num_steps=100,
            )
        ],
        **ABOUT,
    ),
    HttpResult(rounds=2, cells=[], **ABOUT),
    SweepResult(
        kind_of="rate",
        asked=Asked(urls=["http://h"], model="m"),
        points=[
            SweepPoint(
                asked=8,
                run="made-up",
                invalid="",
                steady=SteadyRate(seconds=9, sent=8, served=7.5, ci95=(7, 8)),
                latencies={"ttft_median": 0.1},
                output_throughput=None,
            )
        ],
        knee=Knee(value=7.5, ci95=(7, 8), capacity=7.5),
        **ABOUT,
    ),
    HistoryResult(
        between=None,
        read=Read(commits=2, first="2026-01-01", last="2026-01-02", machines=["box"], figures=4),
        changes=[
            SeriesChange(
                machine="box",
                environment="py3.11",
                series=f"suite.track_{metric}({ODD!r})",
                suite="suite",
                metric=metric,
                unit="collections",
                direction="lower",
                kind="exact",
                parameters={"shape": ODD},
                base="a" * 40,
                head="b" * 40,
                before=100.0,
                after=after,
                verdict=verdict,
                suspects=[],
            )
            for metric, after, verdict in (
                ("worse", 130.0, "worse"),
                ("more", 2000.0, "changed"),
                ("same", 100.0, "no_change_shown"),
                ("gone", None, "missing"),
            )
        ],
        problems=["one file cannot be read"],
        **ABOUT,
    ),
    ProbeResult(
        status=0,
        began_ns=0,
        wall_seconds=10.0,
        boot_id="",
        processes=[
            ProbedProcess(
                pid=4711,
                name="worker",
                role="command",
                forked_from=0,
                command=["python"],
                python="3.11",
                generations=[
                    GenerationTotals(
                        generation=2,
                        collections=3,
                        pause_seconds=0.6,
                        longest_pause_seconds=0.25,
                        cpu_seconds=0.6,
                        objects_freed=0,
                        lost=0,
                    )
                ],
            )
        ],
        not_probed=[],
        **ABOUT,
    ),
    RunResult(trial=made_up_trial(), **ABOUT),
    DoctorResult(
        findings=[DoctorFinding("bad", "memory", "0.1 GiB available", "free memory")], **ABOUT
    ),
    *(ExplainResult(axes={"engine": "builtin"}, body=body, **ABOUT) for body in BODIES.values()),
]


def test_there_is_one_of_each_kind():
    assert {type(each) for each in RESULTS} == set(KINDS)


@pytest.fixture(params=RESULTS, ids=lambda each: type(each).__name__)
def result(request) -> Result:
    return request.param


def test_it_is_read_back_as_it_was_stored(result, tmp_path):
    write_json(tmp_path / RESULT_FILE, result)
    assert read_result(tmp_path / RESULT_FILE) == result


def test_a_terminal_shows_the_answer_first_in_eighty_columns(result):
    report = describe_result(result)
    short = reported(result)
    assert short.split()[:3] == report.answer.split()[:3]
    long = reported(result, details=True)
    for note in result.notes:
        assert " ".join(note.split()[:3]) in " ".join(long.split())
    assert not report.command or report.command in long


def test_no_collections_confirm_no_prediction():
    (found,) = (each for each in RESULTS if isinstance(each, CadenceResult))
    none = [replace(each, predicted=(0, 0, 0), observed=(0, 0, 0)) for each in found.cadences]
    assert "tells nothing" in reported(replace(found, cadences=none))


class Tags(HTMLParser):
    """The tags that are open, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
def test_every_format_can_be_asked_for(tmp_path, capsys):
    for number, each in enumerate(RESULTS):
        run = tmp_path / f"{number}"
        run.mkdir()
        write_json(run / RESULT_FILE, each)
        words, report = ["report", str(run)], describe_result(each)
        page, markdown, picture = (tmp_path / f"{number}.{end}" for end in ("html", "md", "svg"))
        assert main([*words, "--html", str(page), "--export", f"markdown={markdown}"]) == 0
        tags = Tags()
        tags.feed(page.read_text())
        assert tags.open == []
        assert report.answer in tags.text
        kinds = {token.type for token in MarkdownIt().enable("table").parse(markdown.read_text())}
        assert "heading_open" in kinds
        assert markdown.read_text() == report_markdown(report)
        assert main([*words, "--image", str(picture)]) == (0 if report.pictures else 2)
        assert picture.exists() == bool(report.pictures)
    capsys.readouterr()
    assert main(["report", "latest", "--output", str(tmp_path)]) == 0
    file = io.StringIO()
    print_report(
        describe_result(RESULTS[-1]), make_console(file), "gcbench report latest --details"
    )
    assert capsys.readouterr().out == file.getvalue()
    assert all(cell_len(line) <= 80 for line in file.getvalue().splitlines())
