"""The chart of `gcbench releases --image`: what is drawn, of equal results the same."""

from xml.etree import ElementTree

import pytest
from release_results import along, cell, result

from harness.report.known_releases import known_releases
from harness.report.releases_image import releases_image

YOUNG = {"0.11.0": 2927, "0.11.1": 1962, "0.12.0": 1963, "0.17.1": 1529, "/src/vllm": 1500}


def words(svg: bytes) -> str:
    """What stands in a picture: matplotlib keeps each text beside its outlines, as a comment."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    return "\n".join(node.text for node in root.iter(ElementTree.Comment) if node.text)


def test_the_picture_names_releases_policies_and_what_came_in():
    said = words(releases_image(along(YOUNG), ".svg", {"/src/vllm": "my branch"}))
    for word in ("0.11.0", "0.17.1", "my branch", "as_is", "default", "#34944", "#24964 +8"):
        assert word in said
    assert "/src/vllm" not in said
    assert "#24830" not in said, "what the first release has, none is without"
    newest = known_releases("vllm-hostpath").change[-1]
    assert f"#{newest.pull}" not in said, "no release here has it yet"


def test_a_figure_that_is_not_there_is_a_gap():
    cells = [cell("0.11.0", 10), cell("0.12.0", 9), cell("0.12.0", 9, "freeze")]
    cells[0].metrics.pop("gc_collections_gen0")
    assert releases_image(result(cells), ".png").startswith(b"\x89PNG")


def test_equal_results_give_equal_pictures():
    assert releases_image(along(YOUNG), ".svg") == releases_image(along(YOUNG), ".svg")
    assert releases_image(along(YOUNG), ".png") == releases_image(along(YOUNG), ".png")


def test_without_a_count_there_is_nothing_to_draw():
    lone = cell("0.11.0", 1)
    lone.metrics.clear()
    with pytest.raises(ValueError, match="nothing to draw"):
        releases_image(result([lone]), ".png")
