"""Pages of stored runs in Chromium, from the disk: no request, no serious fault, on a phone too."""

import pytest
from test_pages import GATE, MAIN_JOB
from test_report_nightly import NIGHTS

from harness.experiment.experiment_file import PartResult, PartsResult
from harness.experiment.store import load_experiment
from harness.render.page import report_page
from harness.report.kinds import describe_result

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


def test_pages_ask_nobody_fit_a_phone_and_have_no_serious_fault(pages, browser):
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
            grave = {
                each["id"]: [node["html"][:200] for node in each["nodes"][:3]]
                for each in page.evaluate("axe.run()")["violations"]
                if each["impact"] in ("serious", "critical")
            }
            assert grave == {}, (path.name, screen)
        context.close()
