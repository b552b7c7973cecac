"""The modelled H200 against the measured one, row by row, from the published files."""

import pytest
from msgspec.structs import replace

from benchmarks.modelled_gains import gains
from engines.builtin.device.profile import NO_HOST, load_profile

MEASURED = "opt-125m-h200-measured"


def off_by_points(found, measured) -> float:
    return 100 * abs(found - measured)


@pytest.fixture(scope="module")
def rows():
    return {row.cell: row for row in gains(load_profile(MEASURED))}


def test_every_modelled_gain_lies_in_the_measured_interval(rows):
    assert len(rows) == 4
    for row in rows.values():
        assert row.ci95[0] <= row.modelled <= row.ci95[1]


def test_a_row_is_off_by_more_than_ten_points_for_its_trials_speed_alone(rows):
    """Its five trials had a slow host: their launch, the same code in every cell, says so."""
    slow = rows.pop("flat_arrays · per_request")
    assert off_by_points(slow.modelled, slow.measured) == pytest.approx(10.4, abs=0.1)
    assert off_by_points(slow.modelled, slow.at_one_speed) < 3
    for row in rows.values():
        assert off_by_points(row.modelled, row.measured) <= 10


def test_neither_the_peaks_nor_a_device_without_a_launch_come_near():
    for profile in (load_profile("opt-125m-h200"), replace(load_profile(MEASURED), host=NO_HOST)):
        (*_, columns) = gains(profile)
        assert off_by_points(columns.modelled, columns.measured) > 30
