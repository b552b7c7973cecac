"""Pages of stored runs in Chromium, from the disk: no request, no fault, whole on a phone."""

import io

import pytest
from matplotlib.image import imread
from test_pages import GATE, MAIN_JOB
from test_report_nightly import NIGHTS

from harness.experiment.experiment_file import PartResult, PartsResult
from harness.experiment.store import load_experiment
from harness.render.page import report_page
from harness.report.kinds import describe_result
from harness.report.what_to_do import NOTHING_TO_DO

pytestmark = [
    pytest.mark.slow,
    # Playwright's own loop is closed after the last test; its sockets are not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SCREENS = (
    {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    job = load_experiment(MAIN_JOB)
    parts = [PartResult(title=title, published=[], result=job) for title in ("one", "another")]
    written = {
        "experiment": job,
        "parts": PartsResult(name="two", question="Which is best?", parts=parts, is_complete=True),
        "gate": GATE,
        "night": NIGHTS["one of many, and another"],
        "quiet night": NIGHTS["quiet"],
    }
    for name, result in written.items():
        (folder / f"{name}.html").write_bytes(report_page(describe_result(result)))
    return [folder / f"{name}.html" for name in written]


def test_pages_ask_nobody_fit_a_phone_and_have_no_fault(pages, browser):
    axe = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
    for screen in SCREENS:
        context = browser.new_context(**screen)
        for path in pages:
            page, asked = context.new_page(), []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(path.as_uri())
            assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= screen["viewport"]["width"], path.name
            page.evaluate(axe)
            faults = {
                each["id"]: [node["html"][:200] for node in each["nodes"][:3]]
                for each in page.evaluate("axe.run()")["violations"]
            }
            assert faults == {}, (path.name, screen)
        context.close()


def test_tables_and_pictures_are_whole_on_a_phone_and_dark_in_the_dark(pages, browser):
    context = browser.new_context(**SCREENS[1])
    for path in pages:
        page = context.new_page()
        page.goto(path.as_uri())
        cells = page.locator(".scroll td, .scroll th, figure img").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().right)"
        )
        assert max(cells, default=0) <= 390, path.name
        for place in range(page.locator("figure img").count()):
            image = page.locator("figure img").nth(place)
            assert image.evaluate("e => e.currentSrc !== e.src"), "the one for a phone"
            assert _brightness(image) < 80, path.name
    bright = browser.new_page(**SCREENS[0])
    bright.goto(pages[0].as_uri())
    image = bright.locator("figure img").first
    assert image.evaluate("e => e.currentSrc === e.src")
    assert _brightness(image) > 200
    context.close()


def test_a_page_says_what_to_do_before_anything_else(pages, browser):
    page = browser.new_page(**SCREENS[1])
    for path, begins in zip(
        pages,
        ("Take flat_arrays", None, "Do not merge", "Look first at", NOTHING_TO_DO),
        strict=True,
    ):
        page.goto(path.as_uri())
        after = page.locator("h1 + *")
        assert begins is None or after.inner_text().startswith(begins), path.name
    page.goto(pages[0].as_uri())
    page.get_by_role("button", name="Copy the tables as CSV").click()
    assert page.locator("#csv").text_content().splitlines()[1] == ",default,freeze"
    page.close()


def _brightness(image):
    """The mean of what is shown, 0 to 255."""
    pixels = imread(io.BytesIO(image.screenshot()))
    return 255 * float(pixels[..., :3].mean())
