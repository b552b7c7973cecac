"""Tables fit the width that they are given and lose nothing of what they hold."""

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.render.table import PlainTable
from harness.render.table_layout import table_lines

NAMES = st.lists(
    st.sampled_from(["list_of_lists", "per_request", "freeze+threshold:1/2/3", "a"]),
    min_size=1,
    max_size=4,
).map(" · ".join)
FIGURES = st.text("0123456789,.", min_size=1, max_size=12)


def shown(table: PlainTable, width: int) -> list[str]:
    return ["".join(text for text, _ in line) for line in table_lines(table, width)]


@st.composite
def tables(draw) -> PlainTable:
    columns = draw(st.integers(2, 12))
    row = st.tuples(NAMES, *[FIGURES] * (columns - 1))
    groups = draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=3))
    return PlainTable("title", tuple(f"c{n}" for n in range(columns)), groups)


@given(tables(), st.integers(30, 120))
@example(PlainTable("", ("", ""), [[("flat_arrays_" * 9, "1")]]), 80)
def test_no_line_is_wider_and_every_figure_is_there(table, width):
    lines = shown(table, width)
    assert max(map(cell_len, lines)) <= width
    said = " ".join(lines).split()
    for group in table.groups:
        for _, *figures in group:
            assert set(figures) <= set(said)


@given(tables())
def test_names_are_whole_wherever_they_stand(table):
    text = "".join("".join(shown(table, 60)).split())
    for group in table.groups:
        for name, *_ in group:
            assert all(part.replace(" ", "") in text for part in name.split(" · "))


def test_what_fits_stands_on_one_line_and_what_is_shared_above_its_rows():
    rows = [("lists · per_request · default", "1"), ("lists · per_request · freeze", "2")]
    table = PlainTable("", ("cell", "n"), [rows])
    assert shown(table, 80)[2:] == [
        "lists · per_request · default   1",
        "lists · per_request · freeze    2",
    ]
    assert shown(table, 20)[2:] == ["lists · per_request", "  default  1", "  freeze   2"]


def test_columns_without_room_follow_below():
    table = PlainTable("", ("cell", "first", "second"), [[("lists", "1" * 20, "2" * 20)]])
    text = shown(table, 40)
    assert [line.split() for line in text if "lists" in line] == [
        ["lists", "1" * 20],
        ["lists", "2" * 20],
    ]
