"""Numbers as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import format as fmt

FINITE = st.floats(1e-12, 1e15)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.08213, "0.0821"),
        (0.35, "0.350"),
        (1.316, "1.32"),
        (9.996, "10.0"),
        (99.96, "100"),
        (131.6, "132"),
        (999.6, "1,000"),
        (1024, "1,024"),
        (-0.0123, "-0.0123"),
        (None, "–"),
    ],
)
def test_number_has_three_significant_digits(value, text):
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.32e-3, "1.32 ms"),
        (0.85e-6, "0.850 µs"),
        (82.1e-9, "82.1 ns"),
        (0, "0 s"),
        (12.04, "12.0 s"),
        (850e-6, "850 µs"),
        (-2e-3, "-2.00 ms"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_seconds_choose_their_unit(value, text):
    assert fmt.seconds(value) == text


def test_counts_shares_sizes_and_ratios():
    assert [fmt.count(n) for n in (1024, 1024.0, 1023.5, 12.5, 0.02, 0, None)] == [
        "1,024",
        "1,024",
        "1,023.5",
        "12.5",
        "0.0200",
        "0",
        "–",
    ]
    assert [fmt.percent(s) for s in (0.123, 0.0123, 0.0004, 0, None)] == [
        "12.3 %",
        "1.2 %",
        "0.04 %",
        "0.0 %",
        "–",
    ]
    assert fmt.percent(0.041, signed=True) == "+4.1 %"
    assert fmt.percent(-0.041, signed=True) == "-4.1 %"
    assert [fmt.bytes_(b) for b in (512, 4096, 3 << 20, 5 << 30, None)] == [
        "512 B",
        "4.00 KiB",
        "3.00 MiB",
        "5.00 GiB",
        "–",
    ]
    assert fmt.ratio(1.0341) == "×1.034"
    assert fmt.ratio(None) == "–"


def test_units_of_the_metrics():
    units = [(2e-3, "s"), (0.01, "share of wall"), (2048, "B"), (48.95, "req/s"), (3023, "steps")]
    shown = [fmt.with_unit(value, unit) for value, unit in units]
    assert shown == ["2.00 ms", "1.0 %", "2.00 KiB", "49.0 req/s", "3,023 steps"]
    assert fmt.with_unit(None, "s") == "–"


@given(FINITE)
def test_number_says_the_value_to_half_a_unit_of_the_third_digit(value):
    assert float(fmt.number(value).replace(",", "")) == pytest.approx(value, rel=0.00501)


@given(FINITE)
def test_seconds_say_the_value(value):
    shown, unit = fmt.seconds(value).split()
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(shown.replace(",", "")) * scale == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (3_900_892_239, "B/s", "3.90 GB/s"),
        (4.3e12, "B/s", "4.30 TB/s"),
        (999.4, "B/s", "999 B/s"),
        (999.6, "B/s", "1.00 kB/s"),
        (44_462_893_741, "FLOP/s", "44.5 GFLOP/s"),
        (1.2e16, "FLOP/s", "12,000 TFLOP/s"),
    ],
)
def test_rates_of_bytes_and_operations_go_by_thousands(value, unit, shown):
    assert fmt.with_unit(value, unit) == shown
