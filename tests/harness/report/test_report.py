"""What people read, from made-up results: golden text, without colour."""

from pathlib import Path

import msgspec
import pytest
from golden_text import WIDTHS, assert_golden, assert_golden_screens, printed, reported
from hypothesis import given
from hypothesis import strategies as st

from harness.axes import Cell, values
from harness.collector.result import GcState, ProcessResult
from harness.experiment.doctor_result import DoctorResult
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import CellResult, Comparison, ExperimentResult, MetricSamples
from harness.experiment.run_result import RunResult
from harness.experiment.store import load_experiment
from harness.machine.describe import Machine
from harness.machine.doctor import DoctorFinding
from harness.machine.other_work import OtherWork, Surroundings
from harness.metrics import METRICS
from harness.render.lists import list_table
from harness.render.markdown import report_markdown
from harness.render.terminal import print_table
from harness.report.bars import BAR_WIDTH, bar
from harness.report.experiment import describe_experiment
from harness.report.kinds import read_result
from harness.report.messages import message_sizes, messages_tables
from harness.report.metrics_page import metrics_markdown
from harness.report.releases import costs_table, releases_table, roles_tables
from harness.report.run import by_subject
from harness.report.summary import cells_table, modes_tables
from harness.result.result import ReplayedWorkload
from harness.statistics.median_interval import median_interval
from harness.trial.arrival_fidelity import SentArrivals
from harness.trial.messages import Messages
from harness.trial.spec import TrialFailure, TrialResult
from harness.trial.steady_state import DriftingSteps, SteadyState, SteadySteps

PUBLISHED = Path(__file__).parents[3] / "results" / "published"


def samples(name: str, *values: float | None) -> MetricSamples:
    metric = METRICS[name]
    known = sorted(value for value in values if value is not None)
    return MetricSamples(
        unit=metric.unit,
        direction=metric.direction,
        kind=metric.kind,
        median=known[len(known) // 2] if known else None,
        samples=list(values),
    )


def cell_result(name: str, group: int, scale: float, **axes: str | int) -> CellResult:
    spread = (0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03)
    timings = {
        "request_throughput": 48.95 / scale,
        "tpot_median": 0.01324 * scale,
        "host_time_per_request_step": 0.85e-6 * scale,
        "host_time_per_step": 870e-6 * scale,
        "step_time_median": 2.7e-3 * scale,
        "phase_schedule": 120e-6 * scale,
        "phase_launch": 31.4e-6,
        "phase_wait": 1.83e-3,
        "phase_handoff": 48e-6 * scale,
        "phase_process": 0.6e-3 * scale,
        "gc_pause_share": 0.0123 * scale,
    }
    metrics = {name: samples(name, *(value * s for s in spread)) for name, value in timings.items()}
    for generation, collections in enumerate((3023, 275, 4)):
        metric = f"gc_collections_gen{generation}"
        metrics[metric] = samples(metric, float(collections))
    metrics["gc_effect"] = samples("gc_effect", None if group else 0.041 * scale)
    cell = Cell(**{"device": "modelled", "representation": "list_of_lists"} | axes)
    return CellResult(
        id=name,
        axes=values(cell),
        group=group,
        samples=7,
        metrics=metrics,
        processes=[],
        tokens_sha256=["ab" * 32],
    )


def comparison(candidate: str, baseline: str, ratio: float, verdict: str) -> Comparison:
    return Comparison(
        metric="request_throughput",
        baseline=baseline,
        candidate=candidate,
        ratio=ratio,
        ci95=(ratio - 0.009, ratio + 0.009),
        verdict=verdict,
        p_adjusted=0.004,
        mde=0.012,
        rounds=7,
    )


def test_modes_have_a_table_of_their_own_where_they_are_compared(experiment):
    assert modes_tables(experiment) == []
    cells = [cell_result(mode, 0, 1.0, output_processing=mode) for mode in ("inline", "thread")]
    more = {
        "ttft_median": 0.020,
        "ttft_p99": 0.031,
        "output_processing_per_step": 0.0012,
        "device_idle_share": 0.4,
        "surplus_tokens": 12.0,
    }
    cells[1].metrics.update({name: samples(name, value) for name, value in more.items()})
    (table,) = modes_tables(msgspec.structs.replace(experiment, cells=cells))
    assert table.groups == [
        [
            ("inline", "13.2", "–", "–", "–", "–", "–"),
            ("thread", "13.2", "20.0", "31.0", "1.20", "40.0 %", "12.0"),
        ]
    ]
    assert "on a modelled device" in table.title


def test_messages_have_a_table_a_direction_of_the_cells_that_send_any(experiment):
    assert messages_tables(experiment) == message_sizes(experiment) == []
    cells = [cell_result(name, 0, 1.0, device="null") for name in ("alone", "full", "pickle")]
    sent = {
        "bytes_per_step": 2_664,
        "bytes_first": 2_616,
        "bytes_last": 2_930,
        "bytes_parameters": 396,
        "bytes_prompt": 60,
        "bytes_output_ids": 90,
        "bytes_names": 1_372,
        "bytes_rest": 746,
        "edit_distance": 46,
        "edit_distance_first": 93,
    }
    both = {
        f"{direction}_{name}": samples(f"{direction}_{name}", value)
        for direction in ("scheduler_output", "model_runner_output")
        for name, value in sent.items()
    }
    cells[1].metrics.update(both)
    few = {"scheduler_output_bytes_per_step": samples("scheduler_output_bytes_per_step", 7)}
    cells[2].metrics.update(few)
    with_messages = msgspec.structs.replace(experiment, cells=cells)
    (small,) = message_sizes(with_messages)
    assert small.groups == [[("full", "2,664", "2,664"), ("pickle", "7", "–")]]
    there, back = messages_tables(with_messages)
    figures = ("2,664", "2,616", "2,930", "396", "60", "90", "1,372", "746", "46", "93")
    assert there.groups == [[("full", *figures), ("pickle", "7", *["–"] * 9)]]
    assert back.groups == [[("full", *figures)]]
    assert there.title.startswith("To the workers")
    (named, _), (named_back,) = there.groups[0], back.groups[0]
    assert named == named_back


@pytest.fixture
def experiment() -> ExperimentResult:
    lists, arrays = "list_of_lists · default", "list_of_arrays · default"
    flat = "flat_arrays · default"
    small, small_flat = f"{lists} · 128", f"{flat} · 128"
    flat_axis = {"representation": "flat_arrays"}
    frozen = "list_of_lists · freeze+threshold:50000/20/20"
    threshold = {"gc": "freeze+threshold:50000/20/20"}
    cell = Cell(device="modelled", representation="tensor")
    return ExperimentResult(
        name="2026-11-21T0314-opt125m-48-200",
        machine=Machine(
            cpu_model="Made-up CPU",
            cores_usable=2,
            memory_bytes=25276502016,
            kernel="Linux 6.1",
            virtualization="virtual machine",
            python="3.11.7",
            torch="2.13.0+cpu",
            numpy="2.4.6",
        ),
        workloads=[
            ReplayedWorkload(name="opt125m-48-200", hash="0123456789abcdef" * 4, num_requests=2048)
        ],
        decide=["request_throughput"],
        tolerance=0.02,
        cells=[
            cell_result(lists, 0, 1.0),
            cell_result(arrays, 0, 1.2, representation="list_of_arrays"),
            cell_result(flat, 0, 0.7, **flat_axis),
            cell_result(frozen, 0, 0.99, **threshold),
            cell_result(small, 1, 0.31, batch_size=128),
            cell_result(small_flat, 1, 0.3, batch_size=128, **flat_axis),
        ],
        comparisons=[
            comparison(arrays, lists, 0.833, "worse"),
            comparison(flat, lists, 1.431, "better"),
            comparison(frozen, lists, 1.003, "same"),
            comparison(small_flat, small, 1.016, "inconclusive"),
        ],
        failures=[
            TrialFailure(
                cell=cell,
                mode="timing",
                seed=seed,
                kind="timed_out",
                reason="no result after 300 s",
            )
            for seed in range(2)
        ],
        notes=["the first trial after idle was thrown away"],
        command="gcbench compare --representation list_of_lists,list_of_arrays,flat_arrays",
        code_commits=["0123abc+dirty"],
    )


def made_up_trial() -> TrialResult:
    values: dict[str, float | None] = {}
    for number, (name, metric) in enumerate(METRICS.items(), start=1):
        scale = {"s": 1e-5, "B": 999.0}.get(metric.unit, 0.001 if "share" in metric.unit else 37.0)
        values[name] = None if name.endswith("p99") else number * scale
    engine = ProcessResult(
        role="engine",
        policy="freeze+threshold:50000/20/20",
        state=GcState(
            enabled=True, thresholds=(50000, 20, 20), freeze_count=704282, tracked_objects=705310
        ),
        collections=(3023, 275, 4),
        collected=(10, 20, 30),
        pause_seconds=(0.012, 0.0034, 0.91),
        max_pause_seconds=0.237,
        full_pass_seconds=0.21,
    )
    worker = msgspec.structs.replace(
        engine,
        role="worker",
        policy="disabled",
        collections=(0, 0, 0),
        probe_dropped=1200,
        state=GcState(
            enabled=False, thresholds=(700, 10, 10), freeze_count=0, tracked_objects=90210
        ),
    )
    return TrialResult(
        cell=Cell(device="modelled", representation="list_of_lists", worker="process"),
        mode="timing",
        seed=3,
        metrics=values,
        processes=[engine, worker],
        tokens_sha256="cd" * 32,
        finish_sha256="ef" * 32,
        interpreter="CPython 3.11.7",
        code_root="/nowhere",
        code_commit="0123abc",
        steady_state=SteadySteps(first=211, after=4_801, num_steps=5_012),
        delivered=SentArrivals(
            asked={"gaps' CV": 1.0, "lag-1 correlation": 0.0, "dispersion": 1.0},
            found={"gaps' CV": 1.01, "lag-1 correlation": 0.01, "dispersion": 0.98},
            wrong=[],
            late_median=12e-6,
            late_max=310e-6,
            between_steps=False,
        ),
        wall_seconds=4.2,
        stage_seconds={"start": 0.41, "engine": 0.9, "warm_up": 0.05, "window": 2.6, "end": 0.2},
        invalid="modelled waits ran 1.7 % late, more than 1 %",
        messages=[
            Messages(
                direction="scheduler_output",
                count=300,
                every=7,
                num_compared=38,
                num_too_long=5,
                fields={f"requests.field_{n}": 900 - 50 * n for n in range(14)},
            ),
            Messages(
                direction="model_runner_output",
                count=300,
                every=1,
                num_compared=299,
                num_too_long=0,
                fields={"(names)": 355, "sampled_token_ids": 4_096},
            ),
        ],
    )


def markdown(result: ExperimentResult) -> str:
    return report_markdown(describe_experiment(result))


def test_experiment_on_a_terminal(experiment):
    assert_golden("experiment.txt", reported(experiment, details=True))


def test_the_short_report_says_the_answer_first(experiment):
    def screen(width: int) -> str:
        return reported(experiment, "gcbench report made-up --details", width)

    assert_golden_screens("compare", screen)
    assert screen(80).startswith("▲ Best: flat_arrays · default")


def test_where_nothing_is_compared_the_screen_says_what_was_left_out(experiment):
    why = "--axis front-end=async: is of engine vllm-hostpath; leave it out with builtin"
    note = f"Left out: {why}."

    def words(result: ExperimentResult) -> str:
        return " ".join(reported(result).split())

    several = msgspec.structs.replace(experiment, notes=[], left_out=[why])
    assert note not in words(several)
    without = msgspec.structs.replace(several, comparisons=[])  # of too few rounds, say
    assert note not in words(without)
    alone = words(msgspec.structs.replace(without, cells=experiment.cells[:1]))
    assert alone.startswith("Nothing is compared here.")
    assert note in alone
    assert "note" not in alone.rpartition("details")[2]


def test_the_main_job_fits_a_screen():
    main_job = load_experiment(PUBLISHED / "main-job.json")

    def screen(width: int) -> str:
        return reported(main_job, width=width)

    assert_golden_screens("main-job", screen)
    assert len(screen(80).splitlines()) <= 24


def test_every_published_result_fits_eighty_columns():
    for path in PUBLISHED.glob("*.json"):
        result = read_result(path)
        reported(result)
        reported(result, details=True)


def test_experiment_as_markdown(experiment):
    text = markdown(experiment)
    assert_golden("experiment.md", text)
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")


def test_trial_on_one_screen():
    ran = RunResult(name="run", trial=made_up_trial())
    for width in WIDTHS:
        screen = reported(ran, width=width, details=True)
        assert all(name in screen for name in METRICS)
    assert_golden("trial.txt", reported(ran, details=True))


def test_releases_with_a_process_or_two(experiment):
    def cell(release: str, gc: str, frozen: int, roles: tuple[str, ...]) -> CellResult:
        state = GcState(
            enabled=True, thresholds=(700, 10, 10), freeze_count=frozen, tracked_objects=525_588
        )
        processes = [
            ProcessResult(
                role=role,
                policy=gc,
                state=state,
                collections=(1962, 178, 16),
                collected=(9, 8, 7),
                pause_seconds=(0.03, 0.04, 0.2),
                max_pause_seconds=0.0128,
                full_pass_seconds=0.24,
            )
            for role in roles
        ]
        made = cell_result("", 0, 10.0, engine="vllm-hostpath", release=release, gc=gc)
        return msgspec.structs.replace(made, processes=processes)

    labels = {"0.11.2": "0.11.2", "/tree": "v0.33.0-12-gabcdef-dirty"}
    one = msgspec.structs.replace(
        experiment,
        failures=[],
        cells=[
            cell("0.11.2", "as_is", 525_580, ("engine",)),
            cell("0.11.2", "default", 0, ("engine",)),
            cell("/tree", "as_is", 0, ("engine",)),
        ],
    )
    assert roles_tables(one, labels) == []
    two = msgspec.structs.replace(
        one, cells=[cell("0.11.2", "as_is", 525_580, ("frontend", "engine", "worker"))]
    )
    (roles,) = roles_tables(two, labels)
    elsewhere = {**two.cells[0].metrics, "phase_schedule": samples("phase_schedule", 0.0)}
    apart = msgspec.structs.replace(
        one, cells=[one.cells[0], msgspec.structs.replace(one.cells[2], metrics=elsewhere)]
    )
    tables = (
        releases_table(one, labels),
        releases_table(apart, labels),
        costs_table(apart, labels),
        releases_table(two, labels),
        roles,
    )
    assert_golden("releases.txt", "".join(printed(print_table, table) for table in tables))


def test_smaller_tables():
    findings = [
        DoctorFinding("ok", "Python", "3.11.7"),
        DoctorFinding("warn", "load", "1.90 over the last minute, on 2 cores", "wait"),
        DoctorFinding("bad", "memory", "[bold]0.1[/bold] GiB available " * 5, "free memory"),
    ]
    assert_golden("doctor.txt", reported(DoctorResult(name="doctor", findings=findings)))
    rows = [
        ("engines", "builtin", "the built-in engine"),
        ("gc", "freeze", "after warm-up " * 12),
        ("engines", "vllm", "real vLLM in process"),
    ]
    assert_golden("list.txt", printed(list_table, rows))


def test_a_noise_floor_says_first_what_is_detected():
    quiet = OtherWork(seconds=60, cores=2, others=0.05, stolen=0.0)
    busy = msgspec.structs.replace(quiet, others=1.6, stolen=0.031)
    floors = [
        NoiseResult(
            name="noise",
            metric="host_time_per_step",
            cells=2,
            rounds=14,
            trial_cv=0.0213,
            sd_log_ratio=0.0187,
            mde={28: 0.009, 7: 0.031, 14: 0.0152},
            seconds_per_round=35.0,
            surroundings=Surroundings(before=quiet, during=during),
        )
        for during in (quiet, busy)
    ]

    def screens(width: int) -> str:
        return "\n".join(reported(floor, width=width) for floor in floors)

    assert_golden_screens("noise", screens)


def test_a_modelled_device_is_named_in_every_table(experiment):
    modelled = "on a modelled device"
    verdicts, tables = 2, 3
    text = reported(experiment, details=True)
    text = " ".join(text.split())
    assert text.count(modelled) == 2 * verdicts + tables
    assert markdown(experiment).count(modelled) == 2 * verdicts + 2
    on_null = [
        msgspec.structs.replace(cell, axes={**cell.axes, "device": "null"})
        for cell in experiment.cells
    ]
    real = msgspec.structs.replace(experiment, cells=on_null, failures=[])
    assert modelled not in reported(real, details=True)


def test_long_ids_wrap_and_lose_nothing(experiment):
    name = "flat_arrays_" * 8 + "end"
    cells = [msgspec.structs.replace(cell, id=name) for cell in experiment.cells[:1]]
    result = msgspec.structs.replace(experiment, cells=cells, comparisons=[])
    words = [line.split()[0] for line in reported(result, details=True).splitlines() if line]
    assert "".join(word for word in words if word in name) == 3 * name  # cells, phases and bars


def test_a_line_says_where_there_is_a_steady_state(experiment):
    def told(cell: CellResult, state: SteadyState, *shares: float | None) -> CellResult:
        metrics = cell.metrics | (
            {"steady_share": samples("steady_share", *shares)} if shares else {}
        )
        return msgspec.structs.replace(cell, steady_state=state, metrics=metrics)

    def caption(cells: list[CellResult]) -> str:
        return cells_table(msgspec.structs.replace(experiment, cells=cells)).caption

    first, second, third, *rest = experiment.cells
    grows = DriftingSteps(first=39, after=950, num_steps=1_000, drift=0.14)
    found = [
        told(first, SteadySteps(first=6, after=93, num_steps=100), 0.87, None),
        told(second, SteadySteps(first=0, after=9, num_steps=10), 0.9),
    ]
    assert caption(experiment.cells[:2]) == "Medians over rounds."
    assert caption([*found, third]) == (
        "Medians over rounds. A steady state was reached in 2 of 2 cells, for 87.0 % to 90.0 % of "
        "the steps."
    )
    without = [told(cell, grows) for cell in (third, rest[0])]
    assert caption([found[0], *without]) == (
        "Medians over rounds. A steady state was reached in 1 of 3 cells, for 87.0 % of the steps. "
        f"No steady state in {third.id} and 1 more: step time grows by 14% over steps 40 to 950 "
        "of 1,000."
    )
    assert f"No steady state in {third.id}: step time" in caption(without[:1])


def test_an_experiment_without_results_still_reports_its_failures(experiment):
    empty = msgspec.structs.replace(experiment, cells=[], comparisons=[])
    text = reported(empty, details=True)
    assert "timed out: no result after 300 s" in text


def test_markup_in_words_is_shown_as_it_stands(experiment):
    noted = msgspec.structs.replace(experiment, notes=["list[int] and [red]x[/red] | <b>"])
    assert "list[int] and [red]x[/red] | <b>" in reported(noted, details=True)
    assert r"list\[int\] and \[red\]x\[/red\] \| \<b\>" in report_markdown(
        describe_experiment(noted)
    )


def test_every_metric_has_a_subject():
    subjects = by_subject(dict.fromkeys(METRICS, 0.0))
    assert sorted(name for names in subjects.values() for name in names) == sorted(METRICS)
    assert by_subject({"tpot_median": 1.0, "new_thing": 2.0})["Other"] == ["new_thing"]


def test_the_page_of_metrics_is_the_table_of_metrics():
    assert_golden("../../docs/metrics.md", metrics_markdown())


def test_median_interval_takes_the_published_ranks():
    # Ranks of the two-sided 95 % interval for a median, as in any table of the sign test.
    for n, rank in ((6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (14, 3), (15, 4), (20, 6), (30, 10)):
        assert median_interval(list(map(float, range(1, n + 1)))) == (rank, n + 1 - rank)
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, None]) is None


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=40))
def test_bars_hold_their_width_and_show_the_median_once(values):
    middle = sorted(values)[len(values) // 2]
    top = max(values) or 1.0
    drawn = bar(middle, median_interval(values), top)
    assert len(drawn) <= BAR_WIDTH
    assert drawn.count("│") == 1
    assert drawn.index("│") == round(middle / top * (BAR_WIDTH - 1))
