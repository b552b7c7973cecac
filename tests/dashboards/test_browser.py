"""The site in Chromium, opened from the disk: quick, quiet, by keyboard, by the same rules."""

import csv
import json
import random
import re
import shutil
import time
from math import isnan

import pytest
from examples import every
from planted import BENCHMARKS, MESSAGES, SENTENCE, morning, plant
from processes import HANG_SECONDS

from dashboards.site import build_site
from harness import format as fmt
from harness.tracking.changes import changes
from harness.tracking.history import load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.triage import NOTHING_SAID

pytestmark = [
    pytest.mark.slow,
    # Playwright's own loop is closed after the last test; its sockets are not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ILLEGIBLE = """() => {
  const s = c => { const v = c / 255; return v <= .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 };
  const rgb = t => t.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => .2126 * s(r) + .7152 * s(g) + .0722 * s(b);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = {};
  for (const e of document.querySelectorAll('body *')) {
    const words = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!e.offsetParent || !words) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad[e.tagName + '.' + e.className] = ratio;
  }
  return bad;
}"""

PHONE = {"width": 390, "height": 844}
BUILD_SECONDS, OPEN_SECONDS = 20, 2


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """200 commits of 60 series, published results, a timeline; CPU seconds that the build took."""
    from test_site import PUBLISHED, raw_trial

    folder = tmp_path_factory.mktemp("large")
    planted = plant(folder)
    (planted.results / "published").symlink_to(PUBLISHED)
    raw_trial(planted.results / "runs")
    raw_trial(planted.results / "runs", number=1, gc="freeze")
    began = time.process_time()
    built = build_site(
        planted.results, folder / "site", repository=planted.repository, now=morning(planted)
    )
    seconds = time.process_time() - began
    assert built.sentence.partition(": ")[2] == SENTENCE.partition(": ")[2]
    return planted, folder / "site", seconds


class Tab:
    """A page that keeps what it complained of and what it asked for."""

    def __init__(self, browser, **context):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on(
            "console",
            lambda said: said.type in ("error", "warning") and self.complaints.append(said.text),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.context.route(
            lambda url: not url.startswith(("file:", "data:")), lambda route: route.abort()
        )

    def open(self, path, fragment=""):
        """Seconds until it is loaded and drawn."""
        began = time.perf_counter()
        # Of two addresses that differ in their fragment the second would be no new page.
        if self.page.url.split("#")[0] == path.as_uri():
            self.page.goto("about:blank")
        self.page.goto(path.as_uri() + fragment)
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
        return time.perf_counter() - began

    def readout(self):
        return self.page.locator("#readout").inner_text()

    def extent(self):
        """The first and the last place that the chart shows."""
        low, high = map(float, self.page.locator("#chart").get_attribute("data-x").split())
        return low, high

    def until(self, holds):
        """Wait until that is so: what a key does is drawn in a frame, when there is time.

        Asked from outside: in the page the content security policy forbids to evaluate a string.
        """
        end = time.monotonic() + HANG_SECONDS
        while not holds():
            assert time.monotonic() < end, "waited for in vain"
            self.page.wait_for_timeout(10)

    def shows(self, low, high, within=1e-6):
        """Whether the chart shows just that much."""
        return self.extent() == (pytest.approx(low, abs=within), pytest.approx(high, abs=within))


@pytest.fixture
def tab(browser):
    made = []

    def make(**context):
        made.append(Tab(browser, **context))
        return made[-1]

    yield make
    for each in made:
        each.context.close()


def one_of_each(site):
    """A page of each kind."""
    inner = [
        next(iter(sorted((site / kind).iterdir())))
        for kind in ("metric", "commit", "experiment", "timeline")
    ]
    return [*sorted(site.glob("*.html")), *inner]


def test_two_hundred_commits_of_sixty_series_have_a_page_each(large):
    _, site, _ = large
    assert len(list((site / "commit").iterdir())) == 200


# Caches and cores that other programs share make the CPU's time of the same work two times as long.
@pytest.mark.flaky(reruns=2)
def test_two_hundred_commits_of_sixty_series_build_in_time(large):
    _, _, seconds = large
    assert seconds < BUILD_SECONDS


# A browser has several processes, which other programs keep from their cores.
@pytest.mark.flaky(reruns=2)
def test_a_page_of_each_kind_opens_in_time(large, tab):
    _, site, _ = large
    here = tab()
    for path in one_of_each(site):
        assert min(here.open(path) for _ in range(5)) < OPEN_SECONDS, path.name


def test_every_page_opens_without_a_complaint_or_the_network(large, tab):
    _, site, _ = large
    here = tab()
    for path in sorted(site.rglob("*.html"))[:: every()]:
        here.open(path)
        assert here.page.locator("h1").is_visible()
    assert here.complaints == []
    assert all(url.startswith(("file:", "data:", "about:")) for url in here.requests)
    assert len(here.requests) > 1000 // every()


def test_nothing_hostile_runs(hostile, tmp_path, tab):
    site = tmp_path / "site"
    build_site(hostile.results, site, repository=hostile.repository, now=morning(hostile))
    here = tab()
    for path in sorted(site.rglob("*.html")):
        here.open(path)
        assert here.page.evaluate("document.images.length") == 0
    assert here.complaints == []
    # The chart's readout is made by a script; the message stands there as it is.
    here.open(next((site / "metric").iterdir()))
    assert "<script>alert(1)</script>" in here.readout()


def test_a_chart_is_read_zoomed_and_left_by_keyboard(large, tab):
    planted, site, _ = large
    here = tab()
    here.open(next(path for path in (site / "metric").iterdir() if "host_time" in path.name))
    page = here.page
    assert planted.hashes[-1][:8] in here.readout()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "chart":
            break
    assert page.evaluate("document.activeElement.id") == "chart", "Tab comes to the chart"
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    here.until(lambda: planted.hashes[-2][:8] in here.readout())
    assert "Change number 198" in here.readout()
    page.keyboard.press("Home")
    here.until(lambda: planted.hashes[0][:8] in here.readout())

    first, last = here.extent()
    page.keyboard.press("+")
    half = pytest.approx((last - first) / 2)
    here.until(lambda: here.extent()[1] - here.extent()[0] == half)
    page.keyboard.press("0")
    here.until(lambda: here.shows(first, last))
    page.keyboard.press("End")
    here.until(lambda: planted.hashes[-1][:8] in here.readout())
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/commit/{planted.hashes[-1][:12]}.html")
    assert here.complaints == []


def test_a_chart_is_hovered_zoomed_by_dragging_and_drawn_by_logarithm(large, tab):
    _, site, _ = large
    here = tab()
    path = next(path for path in (site / "metric").iterdir() if "gen0" in path.name)
    here.open(path, "#s=0,2")
    page = here.page
    assert page.locator("[data-series]:checked").count() == 2
    box = page.locator("#chart .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    here.until(lambda: re.search("Change number (99|100)", here.readout()))
    assert re.search("Change number (99|100)", page.locator(".tip").inner_text())
    assert page.locator("#readout li").count() == 2
    whole = here.extent()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=5)
    page.mouse.up()
    here.until(lambda: here.shows(99.5, 149.5, within=2))
    page.get_by_role("button", name="Log scale").click()
    assert page.locator("#log").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="All commits").click()
    here.until(lambda: here.shows(*whole))
    page.get_by_role("button", name="Each = 1.00").click()
    page.locator("#chart").focus()
    page.keyboard.press("End")
    # The one that was 1,080 is 756 since a planted 0.7, the other stands where it began.
    here.until(lambda: "756 collections = 0.70" in here.readout())
    page.locator("[data-series='5']").check()
    assert page.url.endswith("#s=0,2,5")
    assert page.locator("#readout li").count() == 3
    assert here.complaints == []


def test_an_exact_change_is_told_at_its_commit(large, tab):
    _, site, _ = large
    here = tab()
    here.open(next(path for path in (site / "metric").iterdir() if "gen0" in path.name), "#s=0,2")
    assert "▼ worse +40.0 %" in here.readout()
    here.page.locator("#chart").focus()
    here.page.keyboard.press("End")
    for _ in range(5):
        here.page.keyboard.press("Shift+ArrowLeft")
    for _ in range(9):
        here.page.keyboard.press("ArrowLeft")
    here.until(lambda: MESSAGES[60] in here.readout())
    assert "▲ better -30.0 %" in here.readout()


def test_two_commits_compare_as_python_compares_them(large, tab):
    planted, site, _ = large
    read = load_history(planted.results)
    figures = read.figures
    verdicts = judge_all(figures, {}, NOTHING_SAID, morning(planted).date()).verdicts
    here = tab()
    for one, other in ((0, 199), (198, 199), (120, 80), (10, 11)):
        table = changes(figures, verdicts, planted.hashes[one], planted.hashes[other])
        here.open(site / "compare.html", f"#{planted.hashes[one]}..{planted.hashes[other]}")
        here.page.wait_for_selector("tr[data-number]", state="attached")
        found = here.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('tr[data-number]')].map("
            "r => [r.querySelector('a').textContent, [r.dataset.verdict, "
            "...[...r.querySelectorAll('td.number')].map("
            "td => (td.querySelector('.value') || td).textContent)]]))"
        )
        assert len(found) == len(table) == 60
        for row in table.join(read.parameters, on="series").to_dict("records"):
            title = " · ".join((row["metric"], row["handoff"], row["gc"]))
            assert found[title] == [
                row["verdict"],
                fmt.percent(row["ratio"] - 1, signed=True),
                fmt.bare(row["before"], row["unit"]),
                fmt.bare(row["after"], row["unit"]),
            ]
    sentence = here.page.locator("#sentence").inner_text()
    here.page.locator("#swap").click()
    here.until(lambda: here.page.url.endswith(f"#{planted.hashes[11]}..{planted.hashes[10]}"))
    assert sentence.endswith("with no change shown.")
    assert here.page.locator("tr[data-number]:visible").count() == 0, "nothing differs"
    here.page.locator("summary").click()
    assert here.page.locator("tr[data-number]:visible").count() == 60
    assert re.search(r"[\d.]+ µs to [\d.]+ µs", here.page.locator("#table").inner_text())
    assert here.complaints == []


def test_a_commits_page_says_what_python_says(large, tab):
    planted, site, _ = large
    figures = load_history(planted.results).figures
    verdicts = judge_all(figures, {}, NOTHING_SAID, morning(planted).date()).verdicts
    here = tab()
    for place in (60, 140, 199):
        table = changes(figures, verdicts, planted.hashes[place - 1], planted.hashes[place])
        here.open(site / "commit" / f"{planted.hashes[place][:12]}.html")
        here.page.wait_for_selector("tr[data-number]", state="attached")
        words = here.page.locator("tr[data-number]").evaluate_all(
            "rows => rows.map(row => row.dataset.verdict)"
        )
        assert sorted(words) == sorted(table["verdict"])
    assert here.complaints == []


def test_numbers_read_as_in_the_terminal(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "compare.html")
    random_ = random.Random(5)
    values = [random_.choice([1, -1]) * 10 ** random_.uniform(-10, 9) for _ in range(300)]
    values += [0.0, 1.0, 999.4, 999.6, 1000.0, 1023.5, 1e-7, 1e-3, 0.00995, 12_345.0, 100.04]
    units = ["s", "B", "share of wall", "req/s", "collections", ""]
    asked = [[value, unit] for value in values for unit in units]
    found = here.page.evaluate(
        "rows => rows.map(([v, u]) => gcbenchFormat.withUnit(v, u))", json.loads(json.dumps(asked))
    )
    different = [
        (value, unit, mine, fmt.with_unit(value, unit).strip())
        for (value, unit), mine in zip(asked, found, strict=True)
        if mine != fmt.with_unit(value, unit).strip()
    ]
    assert different == []
    assert here.page.evaluate("gcbenchFormat.withUnit(NaN, 's')") == fmt.with_unit(
        float("nan"), "s"
    )
    ratios = [random_.uniform(0, 3) for _ in range(100)] + [1.0, 0.999, 1.0098, 1.01, 8.296]
    assert here.page.evaluate("rows => rows.map(gcbenchFormat.change)", ratios) == [
        fmt.percent(ratio - 1, signed=True) for ratio in ratios
    ]
    assert not any(isnan(value) for value in values)


@pytest.mark.landing
def test_a_timeline_is_read_step_by_step(large, tab):
    _, site, _ = large
    here = tab()
    here.open(next((site / "timeline").iterdir()))
    here.page.locator("#chart").focus()
    here.page.keyboard.press("Home")
    here.page.keyboard.press("ArrowRight")
    here.until(lambda: "Step 1," in here.readout())
    assert "6.00 ms, 4 requests; schedule 1.00 ms" in here.readout()
    assert "Collections: g2 3.00 ms." in here.readout()
    here.page.locator("#other").select_option(index=1)
    here.until(lambda: here.page.locator("#readout p").count() == 2)
    assert re.search(
        r"default: Step 0(?s:.*)freeze: Step 0|freeze: Step 0(?s:.*)default: Step 0", here.readout()
    )
    assert here.page.locator("#overlaid").is_visible()
    assert here.complaints == []


@pytest.mark.landing
def test_commits_are_found_by_message_author_and_marks(large, tab):
    planted, site, _ = large
    here = tab()
    here.open(site / "commits.html")
    rows = here.page.locator("#commits tbody tr:visible")
    assert rows.count() == 200
    here.page.locator("[name=text]").fill("BLOCK IDS")
    here.until(lambda: rows.count() == 1)
    assert planted.hashes[-60][:8] in rows.inner_text()
    here.page.locator("[name=text]").fill("bo example")
    here.until(lambda: "shown" in here.page.locator("[data-filter] [role=status]").inner_text())
    assert rows.count() == 67
    here.page.locator("[name=text]").fill("")
    here.page.locator("[name=marked]").check()
    here.until(lambda: rows.count() < 30)
    assert "▼ worse 1" in rows.first.text_content()
    assert here.complaints == []


def test_the_overview_says_what_to_do_on_a_phones_first_screen(large, tab):
    planted, site, _ = large
    here = tab(viewport=PHONE)
    here.open(site / "index.html")
    advice = here.page.locator(".advice")
    words = " ".join(advice.inner_text().split())
    assert words == (
        f"Look first at {planted.hashes[-1][:8]} {MESSAGES[1]} by Bo Example: it made "
        "gc_collections_gen0 worse, +40.0 %. That is certain: the count is exact."
    )
    box = advice.bounding_box()
    assert box["y"] + box["height"] < PHONE["height"] / 2
    worse = " ".join(here.page.locator(".summary tbody tr").first.inner_text().split())
    assert worse == "▼ worse 2 34.9 % +29.8 to +40.0 %", "how many, the mean and the range"
    edges = here.page.locator(".summary td").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().right)"
    )
    assert len(edges) == 3 * 3
    assert max(edges) <= PHONE["width"]
    loud = here.page.locator(".strip span").evaluate_all(
        "all => all.map(each => [getComputedStyle(each).color, getComputedStyle(each).fontWeight])"
    )
    assert len({tuple(each) for each in loud}) == 1, "no age is louder than the rest"


def test_changes_are_narrowed_and_what_is_left_is_saved(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "index.html")
    page, rows = here.page, here.page.locator("#changes [data-row]:visible")
    assert rows.count() == 4
    page.locator("[name=verdict]").select_option("better")
    here.until(lambda: rows.count() == 1)
    assert page.locator("article:visible").count() == 1, "a commit without a row is not shown"
    assert "1 of 4 shown" in page.locator("[data-filter] [role=status]").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    head, row = csv.reader(saved.value.path().read_text().splitlines())
    assert head[:3] == ["Verdict", "Series", "Change (95 %)"]
    assert row[1].startswith("request_throughput list_of_arrays/per_request")
    assert row[3:5] == ["1,464", "1,827"], "the unit is in the series' cell"
    page.locator("[name=verdict]").select_option("")
    page.locator("[name=text]").fill("sort the hand-off")
    here.until(lambda: rows.count() == 2)
    assert here.complaints == []


def test_many_variants_of_a_benchmark_are_one_row_that_opens(small, tmp_path, tab):
    folder = shutil.copytree(small.results, tmp_path / "results")
    for path in (folder / "asv" / "box").glob("*-py3.11.json"):
        content = json.loads(path.read_text())
        row = content["results"][BENCHMARKS[0].name]
        if content["commit_hash"] in small.hashes[-2:]:
            row[0] = [10 * value for value in row[0]]
        path.write_text(json.dumps(content))
    build_site(folder, tmp_path / "site", repository=small.repository, now=morning(small))
    here = tab()
    here.open(tmp_path / "site" / "index.html")
    group = here.page.locator("details.variants")
    summary = " ".join(group.first.locator("summary").inner_text().split())
    assert re.fullmatch(r"▼ worse gc_collections_gen0 \+900\.0 % in 15 variants", summary)
    rows = group.first.locator("[data-row]:visible")
    assert rows.count() == 0
    group.first.locator("summary").click()
    assert rows.count() == 15
    assert "collections" not in rows.first.inner_text().replace("gc_collections_gen0", "")
    assert here.complaints == []


def test_releases_are_read_by_keyboard_and_lead_to_their_row(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "releases.html")
    page = here.page
    charts, drawn = (
        page.locator("[data-chart]:visible"),
        page.locator("[data-chart]:visible canvas"),
    )
    here.until(lambda: drawn.count() == charts.count() == 10)
    costs = [page.locator(".readout:visible").nth(place).inner_text() for place in (0, 1)]
    assert "as_is 1,904.2 bytecodes" in costs[0]
    assert re.search(r"as_is 55\.\d µs", costs[1]), "bytecodes and time lead"
    page.locator(".choose select").first.select_option(label="vLLM: vllm-releases")
    here.until(lambda: drawn.count() == charts.count() == 9)
    chart, readout = charts.nth(1), page.locator(".readout:visible").nth(1)
    assert "0.33.0 2026-11-02" in readout.inner_text()
    chart.focus()
    page.keyboard.press("Home")
    here.until(lambda: "0.10.2 2025-09-13" in readout.inner_text())
    assert "as_is 2,929 collections" in readout.inner_text()
    page.keyboard.press("ArrowRight")
    here.until(lambda: "0.11.0 2025-10-04" in readout.inner_text())
    page.keyboard.press("ArrowRight")
    here.until(lambda: "0.11.1 2025-11-19 #24964" in readout.inner_text())
    for word in ("as_is 1,962 collections", "default 1,949"):
        assert word in readout.inner_text()
    low, high = map(float, chart.get_attribute("data-x").split())
    page.keyboard.press("+")
    here.until(lambda: float(chart.get_attribute("data-x").split()[1]) < high)
    page.keyboard.press("0")
    here.until(lambda: chart.get_attribute("data-x") == f"{low:g} {high:g}")
    page.keyboard.press("Enter")
    here.until(lambda: page.evaluate("document.activeElement.id") == "release-1-2")
    assert page.locator("#release-1-2").inner_text().startswith("0.11.1")
    assert here.complaints == []


def test_releases_are_hovered_with_the_spread_of_what_was_timed(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "releases.html")
    page = here.page
    page.locator(".choose select").first.select_option(label="vLLM: vllm-releases")
    box = page.locator("[data-chart]", has=page.locator("canvas")).filter(visible=True).first
    readout = page.locator(".readout:visible").first
    box.scroll_into_view_if_needed()
    over = box.locator(".u-over")
    size = over.bounding_box()
    over.hover(position={"x": size["width"] / 60, "y": 20})
    here.until(lambda: "0.10.2" in readout.inner_text())
    assert re.search(r"as_is 18\.1 µs \([\d.]+ µs to [\d.]+ µs\)", readout.inner_text())
    here.page.locator("#theme").click()
    assert "0.10.2" in readout.inner_text(), "another theme leaves what was read"
    assert here.complaints == []


def test_the_charts_of_another_summary_are_drawn_when_it_is_chosen(tmp_path, tab):
    import msgspec
    from release_results import along

    folder = tmp_path / "results" / "published"
    folder.mkdir(parents=True)
    for name, releases in (("most", ("0.11.0", "0.12.0", "0.13.0")), ("few", ("0.12.0", "0.13.0"))):
        summary = along(dict.fromkeys(releases, 9))
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(summary))
    build_site(tmp_path / "results", tmp_path / "site")
    here = tab()
    here.open(tmp_path / "site" / "releases.html")
    page = here.page
    drawn = page.locator("[data-chart]:visible canvas")

    def widths():
        # In one call: between two a chart that is drawn anew can be gone.
        return drawn.evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")

    here.until(lambda: len(widths()) == 10)
    page.set_viewport_size({"width": 700, "height": 800})
    page.locator(".choose select").first.select_option(label="vLLM: few")
    here.until(lambda: len(found := widths()) == 10 and min(found) > 600)
    page.set_viewport_size({"width": 390, "height": 800})
    page.locator(".choose select").first.select_option(label="vLLM: most")
    here.until(lambda: len(found := widths()) == 10 and max(found) < 390)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert here.complaints == []


def test_one_metric_is_shown_at_a_time_and_chosen_by_keyboard(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "index.html")
    shown = here.page.locator("section[data-choice]:visible")
    assert shown.count() == 1
    before = shown.inner_text()
    here.page.locator(".choose select").focus()
    here.page.keyboard.press("ArrowDown")
    here.until(lambda: shown.count() == 1 and shown.inner_text() != before)
    assert shown.count() == 1


def test_the_first_tab_skips_to_the_content(large, tab):
    _, site, _ = large
    here = tab()
    here.open(site / "index.html")
    here.page.keyboard.press("Tab")
    assert here.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    here.page.keyboard.press("Enter")
    here.until(lambda: here.page.url.endswith("#main"))
    here.page.keyboard.press("Tab")
    assert here.page.evaluate("document.activeElement.closest('main') !== null")


def test_dark_follows_the_system_and_the_reader(large, tab):
    _, site, _ = large
    for scheme, word in (("dark", "Light"), ("light", "Dark")):
        here = tab(color_scheme=scheme)

        def background(here=here):
            return here.page.evaluate("getComputedStyle(document.body).backgroundColor")

        here.open(site / "index.html")
        before = background()
        assert (before == "rgb(255, 255, 255)") == (scheme == "light")
        button = here.page.locator("#theme")
        assert button.inner_text() == word
        button.click()
        assert background() != before
        chosen = background()
        for path in one_of_each(site):
            here.open(path)
            assert background() == chosen, "the choice goes with the reader"
        assert here.complaints == []


def test_text_is_legible_in_both(large, tab):
    """WCAG's 4.5 for words, of every colour that words have, on what lies behind them."""
    _, site, _ = large
    for scheme in ("light", "dark"):
        here = tab(color_scheme=scheme)
        for path in one_of_each(site):
            here.open(path)
            assert here.page.evaluate(ILLEGIBLE) == {}, (scheme, path.name)


def test_no_page_has_a_serious_fault_that_axe_finds(large, tab):
    """Axe-core's rules, WCAG 2.2's size of targets among them; see what is found in the failure."""
    axe = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
    _, site, _ = large
    asked = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    contexts = {"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}
    in_turn = min(every(), len(contexts))  # CI shows each page in one of them
    for nth, context in enumerate(contexts):
        here = tab(**context)
        for path in one_of_each(site)[nth % in_turn :: in_turn]:
            here.open(path)
            here.page.evaluate(axe)
            found = here.page.evaluate("asked => axe.run(document, asked)", asked)
            grave = {
                each["id"]: [node["html"][:200] for node in each["nodes"][:3]]
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            }
            assert grave == {}, (path.name, context)


def test_the_phones_menu_is_opened_and_closed_by_keyboard(large, tab):
    _, site, _ = large
    here = tab(viewport=PHONE)
    here.open(site / "index.html")
    button, link = here.page.locator("#menu"), here.page.locator("#pages a[href='commits.html']")
    assert not link.is_visible()
    button.focus()
    here.page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    here.page.keyboard.press("Tab")
    assert here.page.evaluate("document.activeElement.textContent") == "Overview"
    here.page.keyboard.press("Escape")
    assert not link.is_visible()
    assert here.page.evaluate("document.activeElement.id") == "menu"
    button.click()
    link.click()
    here.page.wait_for_url("**/commits.html")
    assert here.complaints == []


def test_nothing_is_wider_than_a_phone(large, tab):
    _, site, _ = large
    here = tab(viewport=PHONE, has_touch=True, is_mobile=True)
    for path in one_of_each(site):
        here.open(path)
        assert here.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        small = here.page.evaluate(
            "[...document.querySelectorAll('button, select')].filter(e => e.offsetParent && "
            "e.getBoundingClientRect().height < 32).length"
        )
        assert small == 0, "what is touched is large enough"
        cut = "e => e.getBoundingClientRect().right > innerWidth && !e.closest('[hidden]')"
        cells = ".grid td, .stack td, .changes td, .summary td, .intervals td, .commits td"
        assert not here.page.evaluate(f"[...document.querySelectorAll('{cells}')].some({cut})"), (
            path
        )
    assert here.complaints == []
