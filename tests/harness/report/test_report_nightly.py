"""What a night tells people: golden text, and nobody's markup but our own."""

import re
from collections.abc import Sequence

import msgspec
import pytest
from golden_text import NASTY, assert_golden, assert_golden_screens, reported
from markdown_it import MarkdownIt

from harness.cli.status import nightly_status
from harness.render.markdown import report_markdown
from harness.render.page import report_page
from harness.report.exports import Exported, exports
from harness.report.nightly import describe_nightly
from harness.report.nightly_image import nightly_image
from harness.report.nightly_words import failed_lines, nightly_headline
from harness.result.result import NotExportedError
from harness.tracking.nightly.result import (
    Alert,
    ChangedSeries,
    MeasuredCommit,
    NightlyResult,
    StepPoint,
    Suspect,
)
from harness.tracking.triage import load_triage

ONE, OTHER, THIRD = "1c3260f8" * 5, "078ebfa8" * 5, "2d0f94aa" * 5
FOURTH = "5be91c07" * 5


def changed(series: str, **other) -> ChangedSeries:
    usual = {
        "machine": "box",
        "environment": "py3.11",
        "unit": "s",
        "kind": "timing",
        "metric": series.partition("(")[0].rpartition("track_")[2],
        "verdict": "worse",
        "certainty": "found",
        "before": 1.1e-6,
        "after": 1.32e-6,
        "ratio": 1.2,
        "ci95": (1.17, 1.23),
        "status": "open",
        "reason": "",
    }
    about = usual | other
    usual |= {"stands": about["verdict"], "is_regression": about["verdict"] == "worse"}
    return ChangedSeries(series=series, **usual | other)


def near(before: Sequence[float], after: Sequence[float], between: Sequence[float] = ()):
    """Commits around a step, with an interval of 1 % each."""
    sides = [("before", value) for value in before] + [("open", value) for value in between]
    sides += [("after", value) for value in after]
    return [
        StepPoint(
            commit=f"{n:08x}" * 5, value=value, interval=(0.99 * value, 1.01 * value), side=side
        )
        for n, (side, value) in enumerate(sides)
    ]


GEN0 = changed(
    "collections.track_gc_collections_gen0('flat_arrays', 'default')",
    unit="collections",
    kind="exact",
    before=900,
    after=1260,
    ratio=1.4,
    ci95=(1.4, 1.4),
)
ITL = changed("serving.track_itl_p99", certainty="confirmed")
NONE = changed(
    "serving.track_num_preemptions",
    unit="preemptions",
    kind="exact",
    before=0,
    after=12,
    ratio=None,
    ci95=None,
)
FASTER = changed(
    "serving.track_request_throughput", unit="req/s", verdict="better", before=1800, after=2160
)
ALERT = Alert(
    commit=OTHER,
    subject="Keep a note of each request",
    last_before=ONE,
    plausible=[Suspect(commit=OTHER, subject="Keep a note of each request")],
    first_named=[],
    changes=[GEN0, ITL, NONE],
    environment=["os Linux 6.1 → Linux 6.12"],
    around=near([900.0] * 12, [1260.0] * 3),
    command=[
        "gcbench gate 1c3260f81c 078ebfa807",
        "asv --config asv.conf.json continuous --record-samples 1c3260f81c 078ebfa807",
    ],
)
ONE_OF_TWO = msgspec.structs.replace(
    ALERT,
    changes=[ITL],
    around=near([1.1e-6, 1.08e-6, 1.12e-6, 1.1e-6], [1.3e-6, 1.33e-6, 1.32e-6], [1.21e-6]),
    environment=[],
    plausible=[*ALERT.plausible, Suspect(commit=THIRD, subject="Type a local")],
    command=["gcbench gate 1c3260f81c 2d0f94aa2d", "gcbench gate 1c3260f81c 078ebfa807"],
)
ONE_OF_MANY = msgspec.structs.replace(
    ONE_OF_TWO,
    commit=FOURTH,
    first_named=[ONE, OTHER, THIRD],
    plausible=[*ONE_OF_TWO.plausible, Suspect(commit=FOURTH, subject="Fuse two loops")],
)
KNOWN = msgspec.structs.replace(
    ALERT,
    changes=[
        msgspec.structs.replace(ITL, status="acknowledged", reason="issue 12", is_regression=False),
        FASTER,
    ],
)
UNDONE = msgspec.structs.replace(
    ALERT, changes=[msgspec.structs.replace(GEN0, stands="same", is_regression=False)]
)
MEASURED = MeasuredCommit(commit=THIRD, subject="Type a local", seconds=91.4)
FAILED = MeasuredCommit(
    commit=OTHER,
    subject="",
    seconds=3.0,
    reason="no benchmark could be run: ImportError: No module named 'x'",
)


def night(**other) -> NightlyResult:
    usual = {
        "asv_machine": "box",
        "measured": [],
        "alerts": [],
        "suspicious": [],
        "verdicts": {"no_change_shown": 57},
        "triaged": 0,
        "unsettled": 0,
        "reruns": 0,
        "dashboard": "results/nightly/site/index.html",
        "missing": [],
        "notes": [],
        "problems": [],
        "hardware": {},
        "command": "gcbench nightly",
        "started": "2026-01-02",
        "name": "night-2026-01-02",
    }
    return NightlyResult(**usual | other)


NIGHTS = {
    "regression": night(
        alerts=[ALERT],
        measured=[MEASURED],
        reruns=1,
        verdicts={"worse": 3, "better": 1, "no_change_shown": 1057},
    ),
    "one of two": night(alerts=[ONE_OF_TWO], verdicts={"worse": 1}, reruns=2),
    "one of many, and another": night(alerts=[ONE_OF_MANY, ALERT], verdicts={"worse": 4}),
    "known": night(
        alerts=[KNOWN], triaged=1, verdicts={"worse": 1, "better": 1, "no_change_shown": 57}
    ),
    "many series": night(
        alerts=[msgspec.structs.replace(ALERT, changes=[GEN0] * 14)], verdicts={"worse": 14}
    ),
    "undone": night(alerts=[UNDONE], verdicts={"same": 1, "no_change_shown": 57}),
    "unsettled": night(
        alerts=[
            msgspec.structs.replace(
                ALERT,
                changes=[msgspec.structs.replace(ITL, stands="inconclusive", is_regression=False)],
            )
        ],
        verdicts={"inconclusive": 1},
        unsettled=1,
    ),
    "quiet": night(),
    "suspicious": night(
        suspicious=[ITL],
        verdicts={"suspicious": 1, "no_change_shown": 56},
        notes=["2 more suspicions wait for a re-run (--reruns N)."],
    ),
    "young": night(verdicts={"insufficient": 2}, measured=[MEASURED]),
    "failed": night(
        measured=[FAILED, MEASURED],
        missing=["the disk is full"],
        problems=["results/box/1c3260f8-py3.11.json is cut short"],
    ),
    "nothing": night(verdicts={}, dashboard="", missing=["there is no folder results"]),
}


def terminal(of: NightlyResult, **how) -> str:
    return reported(of, status=nightly_status(of), **how)


def markdown(of: NightlyResult) -> str:
    return report_markdown(describe_nightly(of))


def screens(width: int, **how) -> str:
    return "".join(
        f"──── {name}\n{terminal(of, width=width, **how)}\n" for name, of in NIGHTS.items()
    )


def test_on_a_terminal():
    assert_golden_screens("nightly", screens)


def test_in_detail_on_a_terminal():
    assert_golden("nightly-details.txt", screens(80, details=True))


def test_on_a_page():
    text = "".join(f"<!-- {name} -->\n{markdown(of)}\n" for name, of in NIGHTS.items())
    assert_golden("nightly.md", text)


@pytest.mark.parametrize("name", NIGHTS)
def test_the_verdict_comes_first_and_the_json_says_it_all(name):
    of = NIGHTS[name]
    words = nightly_headline(of)
    assert markdown(of).startswith(f"### gcbench nightly: {words}\n")
    assert terminal(of).startswith(words[:60])
    assert words[0] == {
        "regression": "▼",
        "many series": "▼",
        "one of two": "▼",
        "one of many, and another": "▼",
        "young": "✗",
        "failed": "✗",
        "nothing": "✗",
        "unsettled": "✗",
    }.get(name, "·")
    assert msgspec.json.decode(msgspec.json.encode(of), type=NightlyResult) == of


def test_nothing_of_a_commit_or_a_machine_becomes_markup():
    nasty = msgspec.structs.replace(ITL, reason=NASTY, status="expected", machine=NASTY)
    alert = msgspec.structs.replace(
        ALERT, subject=NASTY, environment=[NASTY], command=[NASTY], changes=[nasty, GEN0]
    )
    of = night(
        alerts=[alert],
        asv_machine=NASTY,
        notes=[NASTY],
        problems=[NASTY],
        missing=[NASTY],
        measured=[msgspec.structs.replace(FAILED, subject=NASTY, reason=NASTY)],
        command=NASTY,
        dashboard=NASTY,
    )
    text = markdown(of)
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = [inner for token in parser.parse(text) for inner in (token, *(token.children or []))]
    kinds = {token.type for token in tokens}
    assert not {kind for kind in kinds if kind.startswith(("link", "image", "em_", "s_"))}
    html = {token.content for token in tokens if token.type.startswith("html")}
    assert html == {"<details><summary>All figures</summary>\n", "</details>\n"}
    prose = "".join(token.content for token in tokens if token.type == "text")
    assert prose.count("onerror=alert(1)") == 9
    assert not re.search(r"[@#]\w|://|www\.", prose), "a mention or a link, where it is no code"
    assert NASTY in " ".join(terminal(of, details=True).split())


def test_long_words_of_a_commit_do_not_widen_the_terminal():
    alert = msgspec.structs.replace(ALERT, subject="word " * 60)
    assert "word word" in terminal(night(alerts=[alert]))


def test_commits_that_fail_alike_are_told_in_one_line():
    alike = [msgspec.structs.replace(FAILED, commit=f"{n}" * 40) for n in range(5)]
    other = msgspec.structs.replace(FAILED, reason="it cannot be installed")
    assert failed_lines(night(measured=[*alike, MEASURED, other])) == [
        f"0000000000; 1111111111; 2222222222; and 2 more: {FAILED.reason}",
        "078ebfa807: it cannot be installed",
    ]


def test_the_picture_shows_each_step_and_there_is_none_without_one():
    image = nightly_image(NIGHTS["one of many, and another"], ".png")
    assert image.startswith(b"\x89PNG")
    nasty = msgspec.structs.replace(ONE_OF_TWO, subject=f"{NASTY} \u4e2d\u6587 \x1b[31m")
    assert b"<svg" in nightly_image(night(alerts=[nasty]), ".svg")
    tiny = msgspec.structs.replace(ALERT, around=near([5e-324] * 3, [0.0]))
    assert nightly_image(night(alerts=[tiny]), ".png").startswith(b"\x89PNG")
    beyond = msgspec.structs.replace(ALERT, around=near([1e308] * 3, [-1e308]))
    wide = [msgspec.structs.replace(ALERT.around[0], interval=(-1e308, 1e308)), *ALERT.around[1:]]
    wide = msgspec.structs.replace(ALERT, around=wide)
    old = msgspec.structs.replace(ALERT, around=[])
    for alerts in ([], [beyond], [wide], [old]):
        of = night(alerts=alerts, suspicious=[ITL])
        with pytest.raises(ValueError, match="no step, so there is no picture"):
            nightly_image(of, ".png")


def html(of: NightlyResult) -> str:
    return report_page(describe_nightly(of)).decode()


def test_the_page_of_a_night_has_a_picture_where_there_is_a_step():
    page = html(NIGHTS["one of many, and another"])
    assert page.count("<figure>") == 1
    assert page.count("data:image/svg+xml;base64,") == 2, "one is for a phone"
    assert "2 commits made something worse" in page
    assert "<figure>" not in html(NIGHTS["quiet"])
    assert "<h2>All figures" not in html(NIGHTS["quiet"])
    nasty = msgspec.structs.replace(ALERT, subject=NASTY, command=[NASTY])
    assert "<img src=x" not in html(night(alerts=[nasty], command=NASTY))


def triage(of: NightlyResult) -> bytes:
    return exports(NightlyResult)["triage"](Exported(of, describe_nightly(of), ""))


def test_entries_that_speak_of_each_regression_go_to_the_end_of_a_triage_file(tmp_path):
    path = tmp_path / "triage.toml"
    path.write_text('[[reset]]\nseries = "a*"\ncommit = "abcdef12"\nreason = "hardware"')
    with path.open("ab") as file:
        file.write(triage(night(alerts=[KNOWN, ONE_OF_MANY, ALERT])))
    found = load_triage(path)
    assert len(found.reset) == 1
    assert [(each.commit, each.series, each.metric) for each in found.acknowledged] == [
        (FOURTH[:12], "", ITL.metric),
        *((OTHER[:12], "", each.metric) for each in (GEN0, ITL, NONE)),
    ]


def test_there_is_no_entry_where_nothing_is_left_to_speak_of():
    with pytest.raises(NotExportedError, match="no regression is left"):
        triage(night(alerts=[KNOWN, UNDONE]))
