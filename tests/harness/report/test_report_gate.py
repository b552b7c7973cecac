"""What `gcbench gate` tells people: golden text, and nobody's markup but our own."""

import re

import msgspec
import pytest
from gate_results import ARRAYS, EXACT, LISTS, cell, exact, result, timing
from golden_text import NASTY, assert_golden, assert_golden_screens, reported
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.axes import Cell
from harness.cli.status import gate_status
from harness.explain.beneath import Beneath
from harness.explain.largest_changes import LargestChange
from harness.metrics import METRICS
from harness.render.markdown import report_markdown
from harness.render.markdown_escape import code_block, code_span, escaped
from harness.report.gate import describe_gate, exact_words
from harness.report.gate_tables import gate_tables
from harness.tracking.gate.result import GateCell, GateResult
from harness.tracking.gate.used_waivers import used_waivers
from harness.tracking.gate.waivers import Waiver
from harness.tracking.gate.words import conclude_gate
from harness.trial.spec import TrialFailure

AT_HEAD = Cell(workload="w", device="modelled", representation="list_of_lists", release="/out/head")

OBJECTS = exact(
    tracked_peak_per_step=3_085.0,
    tracked_survivors_per_step=1_025.0,
    tracked_allocations_per_step=4_126.0,
    gc_collections_per_1000_steps=1_594.0,
    bytecodes_per_request_step=127.5,
)
BYTECODES = exact(bytecodes_per_request_step=125.25, handoff_bytes=98_368.0)
ADMISSION = exact(
    bytecodes_per_add=403.0,
    bytecodes_per_finish=1_640.25,
    bytecodes_per_abort=397.0,
    allocations_per_add=8.0,
)
TRADE = exact(bytecodes_per_request_step=98.25, memory_peak_per_step=2_148.0)
ACCEPTED = [
    replace(change, verdict="accepted", accepts=4_096.0) if change.verdict == "worse" else change
    for change in TRADE
]
BEYOND = [
    replace(change, accepts=1_024.0) if change.verdict == "worse" else change for change in TRADE
]


def waiver(metric: str, most: float, place: str, **more: str) -> Waiver:
    asked = {"cell": "", "reason": "Keep the rows of a step", **more}
    return Waiver(metric=metric, most=most, is_share=False, place=place, **asked)


_COMMIT = "commit 0123456789"
WAIVERS = [
    waiver("memory_peak_per_step", 4_096.0, _COMMIT),
    waiver("bytecodes_per_add", 3.0, "gate-accepts.toml", cell=LISTS, reason="NASTY | *2*"),
    waiver("outputs", 0.0, _COMMIT),
]
_CHANGE = LargestChange(
    when="step",
    kind="paired",
    function="Scheduler.schedule",
    before="Scheduler.schedule",
    file="engines/builtin/scheduler.py",
    line=98,
    text="for _ in range(len(rows) + NASTY | *2*):",
    bytecodes=7.01,
    allocations=0.0,
)
FUNCTIONS = [
    _CHANGE,
    replace(
        _CHANGE,
        kind="new",
        function="Scheduler.schedule.<locals>.<listcomp>",
        before="",
        line=99,
        text="",
        bytecodes=3.0,
        allocations=1.0,
        beneath=(
            Beneath(
                function="Logger.isEnabledFor",
                file="logging/__init__.py",
                line=1_720,
                bytecodes=2.0,
                allocations=0.0,
            ),
            Beneath(
                function="an_unchanged_function_of_a_very_long_name",
                file="NASTY | *2*.py",
                line=7,
                bytecodes=0.0,
                allocations=1.0,
            ),
        ),
    ),
    replace(
        _CHANGE,
        kind="renamed",
        function="Scheduler._row",
        before="Scheduler._old_row",
        line=120,
        text="",
        bytecodes=-3.01,
        allocations=-0.25,
    ),
    replace(
        _CHANGE,
        kind="gone",
        function="NewRequestData(req_id, prompt_token_ids, params, n)",
        before="NewRequestData(req_id, prompt_token_ids, params, n)",
        file="<string>",
        line=1,
        text="",
        bytecodes=-0.5,
    ),
]
ADDED = [
    replace(
        _CHANGE,
        when="add",
        function="Scheduler.add",
        before="Scheduler.add",
        text="",
        bytecodes=12.0,
        allocations=1.0,
    )
]
SAME = timing(0.002, -0.001, "")


def of_waivers(cells: list[GateCell], *waivers: Waiver) -> GateResult:
    return replace(result(cells), waivers=used_waivers(waivers, cells))


MADE_UP = {
    "worse-exact": result(
        [
            cell(LISTS, "worse", OBJECTS, timing(0.071, 0.032, "both")),
            cell(ARRAYS, "worse", OBJECTS, timing(0.034, 0.033, "code")),
        ]
    ),
    "worse-bytecodes": result(
        [
            replace(cell(LISTS, "worse", BYTECODES, timing(0.011, 0.012, "")), functions=FUNCTIONS),
            cell(ARRAYS, "same", exact(), SAME),
        ],
        package="engines",
        outside=["README.md", *(f"{name}.py" for name in "abcdef")],
    ),
    "worse-admission": result(
        [
            replace(cell(shape, "worse", ADMISSION, SAME), functions=ADDED)
            for shape in (LISTS, ARRAYS)
        ]
    ),
    "trade": result([cell(LISTS, "trade", TRADE), cell(ARRAYS, "same", exact())]),
    "trade-beyond-its-waiver": of_waivers(
        [cell(LISTS, "trade", BEYOND), cell(ARRAYS, "same", exact())],
        waiver("memory_peak_per_step", 1_024.0, _COMMIT),
    ),
    "accepted": of_waivers(
        [cell(each, "accepted", ACCEPTED) for each in (LISTS, ARRAYS)], *WAIVERS
    ),
    "accepted-outputs": of_waivers(
        [
            replace(
                cell(each, "accepted", exact(), SAME),
                other_outputs="tokens (first in step 3, request 5, token 2: 17 in the place of 4)",
            )
            for each in (LISTS, ARRAYS)
        ],
        *WAIVERS[2:],
    ),
    "worse-c": result(
        [
            cell(LISTS, "worse", exact(), timing(0.052, 0.051, "code")),
            cell(ARRAYS, "worse", exact(), timing(0.049, 0.050, "code", rounds=12)),
        ]
    ),
    "worse-collector": result(
        [
            cell(
                LISTS,
                "worse",
                exact(gc_collections_per_1000_steps=2_125.0),
                timing(0.043, 0.001, "collector"),
            )
        ]
    ),
    "worse-untold": result(
        [
            cell(
                "freeze+threshold:50000/20/20 · list_of_lists · per_request · uniform:1:4",
                "worse",
                exact(),
                timing(0.039, 0.012, "untold", half_width=0.015),
            )
        ]
    ),
    "worse-stalls": result(
        [
            cell(LISTS, "same", exact(), SAME),
            cell(ARRAYS, "worse", exact(), timing(0.002, 0.231, "code", stalls=0.237)),
        ]
    ),
    "better": result(
        [
            cell(
                LISTS,
                "better",
                exact(tracked_peak_per_step=1_037.0, handoff_bytes=4_096.0),
                timing(-0.104, -0.098, "code"),
            ),
            cell(ARRAYS, "same", exact(), SAME),
        ]
    ),
    "same": result([cell(LISTS, "same", exact(), SAME), cell(ARRAYS, "same", exact(), SAME)]),
    "same-exact-only": result([cell(LISTS, "same", exact()), cell(ARRAYS, "same", exact())]),
    "same-but-moved": result(
        [
            cell(
                LISTS,
                "same",
                exact(tracked_peak_per_step=2_062.0, bytecodes_per_request_step=118.5),
            ),
            cell(ARRAYS, "same", exact()),
        ]
    ),
    "inconclusive": result(
        [
            cell(
                LISTS,
                "inconclusive",
                exact(),
                timing(0.016, 0.012, "", half_width=0.021, rounds=31),
            ),
            cell(ARRAYS, "same", exact(), SAME),
        ]
    ),
    "missing": result(
        [cell(LISTS, "same", exact())],
        missing=[f"{ARRAYS}: HEAD produces other tokens than BASE; different work has no ratio."],
    ),
    "interrupted": result(
        [cell(LISTS, "incomplete", exact()), cell(ARRAYS, "incomplete", exact(), SAME)],
        missing=[
            f"{LISTS}: fewer than 3 timed rounds.",
            "Interrupted before everything was measured.",
        ],
    ),
    "nothing": result(
        missing=[f"{LISTS}: fewer than 3 timed rounds.", f"{LISTS}: nothing could be counted."],
        failures=[
            TrialFailure(
                cell=AT_HEAD,
                mode=mode,
                seed=0,
                kind="crashed",
                reason="its process ended with status 1: ImportError: cannot import name 'x'",
            )
            for mode in ("counts", "counts", "tracked")
        ],
    ),
}

AT_HEAD = Cell(workload="w", device="modelled", representation="list_of_lists", release="/out/head")


def terminal(of, **how) -> str:
    more = "gcbench report made-up --details"
    return reported(of, more, status=gate_status(of), **how)


def markdown(of) -> str:
    return report_markdown(describe_gate(of))


def screens(width: int, **how) -> str:
    return "".join(
        f"──── {name}\n{terminal(of, width=width, **how)}\n" for name, of in MADE_UP.items()
    )


def test_on_a_terminal():
    assert_golden_screens("gate", screens)


def test_in_detail_on_a_terminal():
    assert_golden("gate-details.txt", screens(80, details=True))


def test_in_a_pull_request():
    text = "".join(f"<!-- {name} -->\n{markdown(of)}\n" for name, of in MADE_UP.items())
    assert_golden("gate.md", text)


@pytest.mark.parametrize("name", MADE_UP)
def test_the_verdict_comes_first_and_every_change_has_its_sentence(name):
    of = MADE_UP[name]
    report = describe_gate(of)
    words = report.answer
    assert report.sentences or of.missing
    assert terminal(of).startswith(words[0]), "the first thing on a terminal"
    signs = {"worse": "▼", "trade": "⇅", "accepted": "✓", "better": "▲", "same": "="}
    signs |= {"inconclusive": "?"}
    assert words[0] == ("✗" if of.missing else signs[of.verdict])


PER_REQUEST = ["allocations_per_finish", "allocations_per_abort"]
MOVES = [
    *EXACT,
    *PER_REQUEST,
    "gc_collections_gen0",
    "gc_collections_gen2",
    "wire_bytes_per_step",
    *(metric.name for metric in METRICS.values() if metric.mode in ("memory", "leaks")),
]
VALUES = st.floats(10, 10_000)


@given(st.dictionaries(st.sampled_from(MOVES), VALUES, min_size=1))
@example({"leaked_bytes_per_step": 10.0})
def test_no_exact_change_goes_without_a_sentence(after):
    """A verdict of ``worse`` that no sentence explains would send people looking."""
    changes = exact(**after)
    for change in changes:
        alone = cell(LISTS, change.verdict, [change])
        said = conclude_gate([alone])
        assert said
        beginnings = ("Nothing changed: ", f"{LISTS}: changed by too little to act upon: ")
        is_moved = change.verdict == "same" and change.before != change.after
        assert (change.verdict == "same") == said[0].startswith(beginnings)
        assert is_moved == said[0].startswith(beginnings[1])
    moved = [change for change in changes if change.verdict != "same"]
    verdicts = {change.verdict for change in moved}
    said = " ".join(conclude_gate([cell(LISTS, "worse", changes)]))
    for verdict in verdicts:
        rises = [change for change in moved if change.verdict == verdict]
        word = {
            "worse": ("more", "instead of", "is worse", ": +"),
            "better": ("fewer", "instead of", "is better", ": -"),
        }[verdict]
        assert any(each in said for each in word), (rises, said)


def test_what_a_request_costs_more_is_one_sentence_over_add_finish_and_abort():
    def said(**after: float) -> list[str]:
        return conclude_gate([cell(LISTS, "worse", exact(**after))])

    assert said(bytecodes_per_add=403.0) == [
        f"{LISTS}: a request costs 12 more bytecodes to add (+3.1 %, 391 → 403)."
    ]
    assert said(bytecodes_per_add=403.0, bytecodes_per_abort=390.0) == [
        f"{LISTS}: a request costs 12 more bytecodes to add (+3.1 %, 391 → 403) and 10 fewer to "
        "abort (-2.5 %, 400 → 390)."
    ]
    assert said(bytecodes_per_finish=1_660.25, allocations_per_add=8.0) == [
        f"{LISTS}: a request costs 8 more bytecodes to admit and finish (+0.48 %, 1,652.2 → "
        "1,660.2).",
        f"{LISTS}: a request costs 1 more tracked object to add (+14.3 %, 7 → 8).",
    ]


def test_what_holds_for_several_cells_is_said_once():
    cells = [cell(name, "worse", BYTECODES) for name in ("a", "b", "c")]
    assert [sentence.split(":")[0] for sentence in conclude_gate(cells)] == ["Every cell"]
    of = result([*cells, cell("d", "same", exact())])
    (first, rest) = of.conclusions
    assert first.startswith("a; b; c: a request costs 7 more bytecodes")
    assert rest == "Nothing changed in 1 of 4: d."
    (table,) = gate_tables(of)
    assert table.title == "Exact metrics of a; b; c"
    assert len(table.groups[0]) == 2


def test_long_names_of_cells_lose_nothing():
    name = "flat_arrays_" * 7 + "end"
    of = result([cell(name, "worse", OBJECTS, timing(0.05, 0.05, "code"))])
    text = "".join(terminal(of, details=True).split())
    assert text.count(name) >= 3


def test_nothing_of_a_commit_becomes_markup():
    failure = TrialFailure(
        cell=AT_HEAD, mode="counts", seed=0, kind="crashed", reason=f"its process ended: {NASTY}"
    )
    plain = MADE_UP["worse-exact"]
    head = msgspec.structs.replace(plain.head, subject=NASTY, asked="feat/`x`|<b>")
    of = msgspec.structs.replace(
        plain, head=head, failures=[failure], notes=[NASTY], command=f"gcbench gate '{NASTY}'"
    )
    text = markdown(of)
    # What is left once code and escaped characters are gone is ours alone.
    bare = re.sub(r"(?ms)^(`{3,})\n.*?\n\1$", "", text)
    bare = re.sub(r"(?<!\\)(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", bare)
    bare = re.sub(r"\\.", "", bare)
    assert set(re.findall(r"<[^>]*>", bare)) == {
        "<details>",
        "<summary>",
        "</summary>",
        "</details>",
        "<sub>",
        "</sub>",
    }
    assert bare.count("</details>") == 1
    assert not re.search(r"[@#]\w|://|www\.|\]\(|!\[", bare)
    assert "`" not in bare
    assert NASTY in text  # and in code it stands as it was written
    assert NASTY in " ".join(terminal(of).split())


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))))
def test_code_spans_hold_their_text_whatever_it_is(text):
    text = " ".join(text.split())
    span = code_span(text)
    if not text:
        assert span == ""
        return
    fence = re.match("`+", span)[0]
    # The span must end at its own end and no earlier: no run of that length inside.
    inside = span[len(fence) : -len(fence)]
    assert len(fence) not in {len(run) for run in re.findall("`+", inside)}
    assert (inside[1:-1] if inside != text else inside) == text
    block = code_block([text, text]).splitlines()
    assert block[1:3] == [text, text]
    assert not any(line.startswith(block[0]) for line in block[1:-1])


@example("1__")
@given(st.text(st.sampled_from("`*_[]<>&|~$\\@#:/-+=1.)w a")))
def test_literal_text_has_nothing_left_that_means_something(text):
    made = escaped(text)
    assert re.sub("\u2060", "", re.sub(r"\\(.)", r"\1", made)) == " ".join(text.split())
    rest = re.sub(r"\\.", "", made)
    assert not set(rest) & set("`*[]<>&|~$\\")
    assert not re.search(r"[@#]\w|://|www\.|(?<!\w)_|_(?!\w)", made.replace("\\_", ""))
    assert not re.match(r"[-+=#]|\d+[.)]", made)


def test_rows_of_markdown_tables_are_whole():
    for of in MADE_UP.values():
        rows = [line for line in markdown(of).splitlines() if line.startswith("|")]
        assert all(row.endswith("|") for row in rows)


@given(st.sampled_from(MOVES), st.floats(-0.4, 0.4).filter(lambda change: abs(change) > 1e-6))
def test_a_count_that_has_moved_is_never_said_to_have_moved_by_nothing(name, change):
    (moved,) = (each for each in exact(**{name: 10.0}) if each.metric == name)
    moved = replace(moved, before=10.0, after=10.0 + change)
    said = exact_words(cell(LISTS, "same", [moved]))
    assert not re.match(r"[+-]0(\.0*)? ", said), said


def test_what_is_worse_is_said_before_what_is_a_trade():
    changes = exact(bytecodes_per_request_step=150.0)
    both = result([cell(LISTS, "trade", TRADE), cell(ARRAYS, "worse", changes)])
    first, *_ = both.conclusions
    assert first.startswith(f"{ARRAYS}: a request costs ")
    assert any("a trade, " in sentence for sentence in both.conclusions)
