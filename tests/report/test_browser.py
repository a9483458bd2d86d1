"""The report in a real browser, opened from disk."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from d2cp.core.files import read_json
from d2cp.data import load_table
from d2cp.pipeline.corrections import load_corrections
from d2cp.report.build import write_report
from report_artifacts import HOSTILE_CLASSES, HOSTILE_FILE, write_run

pytestmark = pytest.mark.browser
Reports = Callable[[str], Path]
Open = Callable[..., Any]
KINDS = ("run", "audit", "many", "hostile", "compare")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_opens_without_complaint_request_or_overflow(
    open_page: Open, reports: Reports, kind: str, width: int, scheme: str
) -> None:
    file = reports(kind)
    opened = open_page(file, width=width, scheme=scheme)
    for fold in opened.page.query_selector_all("details > summary"):
        fold.click()
    assert opened.complaints == []
    assert opened.requests == [file.resolve().as_uri()]
    assert opened.overflow() <= 0
    broken = "[...document.images].filter(i => i.src && i.complete && !i.naturalWidth).length"
    assert opened.page.evaluate(broken) == 0
    shade = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", shade)[:3])
    assert brightness < 150 if scheme == "dark" else brightness > 700


def test_policy_stops_foreign_script_and_addresses(open_page: Open, reports: Reports) -> None:
    opened = open_page(reports("run"))
    opened.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "https://example.org/leak.png";
            document.body.append(image);
        }"""
    )
    opened.page.wait_for_timeout(200)
    assert opened.page.title() != "owned"
    assert sum("Content Security Policy" in text for text in opened.complaints) == 2


def _visible(page: Any) -> Any:
    return page.locator("#grid > li:not([hidden])")


def test_filters_leave_exactly_what_was_asked_for(open_page: Open, reports: Reports) -> None:
    page = open_page(reports("run")).page
    records = page.evaluate(
        "[...document.querySelectorAll('#grid > li')].map(i => ({...i.dataset}))"
    )
    assert len(records) == 400
    page.select_option("#filter-class", label="5-9")
    page.select_option("#filter-value", value="1")
    page.select_option("#filter-answer", value="wrong")
    wanted = [r for r in records if (r["class"], r["value"], r["answer"]) == ("1", "1", "wrong")]
    assert 0 < len(wanted) < 72
    assert page.text_content("#shown") == f"{len(wanted)} image{'s' * (len(wanted) != 1)}"
    shown = page.evaluate(
        "[...document.querySelectorAll('#grid > li:not([hidden])')].map(i => i.dataset.row)"
    )
    assert sorted(shown) == sorted(r["row"] for r in wanted)
    page.click("#filter-clear")
    assert _visible(page).count() == 72
    page.click("#more")
    assert _visible(page).count() == 144
    page.select_option("#filter-split", value="train")
    page.select_option("#filter-answer", value="right")
    assert page.is_visible("#empty") and _visible(page).count() == 0


def test_grid_and_viewer_by_keyboard_alone(open_page: Open, reports: Reports) -> None:
    page = open_page(reports("run")).page
    page.focus("#filter-clear")
    page.keyboard.press("Tab")
    names = page.evaluate("[...document.querySelectorAll('#grid > li')].map(i => i.dataset.name)")
    focused = "document.activeElement.closest('li')?.dataset.name"
    assert page.evaluate(focused) == names[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == names[1]
    page.keyboard.press("ArrowDown")
    row = page.evaluate("getComputedStyle(byId('grid')).gridTemplateColumns.split(' ').length")
    assert page.evaluate(focused) == names[1 + row]
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.is_visible("#viewer") and page.text_content("#viewer-title") == names[0]
    page.keyboard.press("ArrowRight")
    assert page.text_content("#viewer-title") == names[1]
    assert page.locator("#flips li").count() == 0
    assert page.get_attribute("#viewer-image", "src").startswith("data:image/png")
    assert page.evaluate("byId('viewer-image').getBoundingClientRect().width") > 250
    page.keyboard.press("Escape")
    assert not page.is_visible("#viewer") and page.evaluate(focused) == names[1]
    page.keyboard.press("End")
    assert page.evaluate(focused) == names[-1]


def test_pictures_open_large_with_their_caption(open_page: Open, reports: Reports) -> None:
    page = open_page(reports("run")).page
    page.click("[data-picture] >> nth=0")
    assert page.is_visible("#picture")
    assert "Real images" in page.text_content("#picture-caption")
    page.click("#picture-close")
    assert not page.is_visible("#picture")


def test_saved_corrections_load_and_fit_the_run(
    open_page: Open, reports: Reports, tmp_path: Path
) -> None:
    file = reports("run")
    page = open_page(file).page
    page.click("#grid button >> nth=2")
    image = page.text_content("#viewer-title")
    other = page.locator("input[name=viewer-value]:not(:checked)")
    value = int(other.get_attribute("value"))
    other.check()
    assert "Corrected" in page.text_content("#viewer-hint")
    page.click("#viewer-next")
    page.locator("input[name=viewer-value]:not(:checked)").check()
    page.click("#viewer-close")
    page.check("input[name=concept][value='7']")
    assert page.text_content("#save") == "Save corrections (3)"
    page.click("#flips li:nth-child(2) button")
    assert page.locator("#grid li.flipped").count() == 1
    with page.expect_download() as waiting:
        page.click("#save")
    assert waiting.value.suggested_filename == "corrections.json"
    saved = tmp_path / "corrections.json"
    waiting.value.save_as(saved)
    corrections = load_corrections(saved)
    assert corrections.concepts_are_class == (7,) and dict(corrections.flip) == {image: value}
    run = file.parent
    with (run / "data" / "table.csv").open(encoding="utf-8", newline="") as table:
        ids = [row["id"] for row in csv.DictReader(table)]
    fingerprint = read_json(run / "run.json")["data"]["fingerprint"]
    corrections.check(fingerprint=fingerprint, ids=ids, concepts=20)


def test_review_list_is_a_csv(open_page: Open, reports: Reports, tmp_path: Path) -> None:
    page = open_page(reports("hostile")).page
    with page.expect_download() as waiting:
        page.click("#review")
    waiting.value.save_as(tmp_path / "review.csv")
    with (tmp_path / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and {row["image"][2:] for row in rows} == {HOSTILE_FILE}
    assert {row["class"] for row in rows} <= set(HOSTILE_CLASSES)


def test_hostile_names_are_text(open_page: Open, reports: Reports) -> None:
    opened = open_page(reports("hostile"))
    page = opened.page
    for name in HOSTILE_CLASSES:
        assert page.locator("#grid .tag bdi", has_text=name).count() > 0
        assert page.locator("#filter-class option", has_text=name).count() == 1
    page.click("#grid button >> nth=0")
    title = page.text_content("#viewer-title")
    assert "[U+202E]" in title and "<b onmouseover=alert(3)>&amp; {{ 7 * 7 }}" in title
    page.hover("#viewer-title")
    page.keyboard.press("Escape")
    assert page.locator("#grid b, main img:not([src^='data:']), main i").count() == 0
    assert page.evaluate("document.scripts.length") == 2
    assert opened.complaints == []
    assert "\u202e" not in page.inner_text("body")


def test_hostile_image_ids_survive_the_round_trip(
    open_page: Open, reports: Reports, tmp_path: Path
) -> None:
    page = open_page(reports("hostile")).page
    page.click("#grid button >> nth=0")
    page.locator("input[name=viewer-value]:not(:checked)").check()
    page.click("#viewer-close")
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(tmp_path / "corrections.json")
    (name,) = load_corrections(tmp_path / "corrections.json").flip
    assert name.endswith(HOSTILE_FILE)


def test_comparison_sorts_by_any_column(open_page: Open, reports: Reports) -> None:
    page = open_page(reports("compare")).page
    first = "table[data-sortable] >> nth=0"

    def order() -> list[str]:
        return page.locator(first).locator("tbody th").all_text_contents()

    assert order() == ["group_dro", "d2cp", "xrm", "jtt", "erm"]
    heads = page.locator(first).locator("thead button")
    heads.get_by_text("Mean", exact=True).click()
    assert order()[0] == "erm"
    heads.get_by_text("Mean", exact=True).click()
    assert order()[-1] == "erm"
    sorted_by = page.locator(first).locator("th[aria-sort]")
    assert sorted_by.get_attribute("aria-sort") == "ascending"
    heads.get_by_text("Method").focus()
    page.keyboard.press("Enter")
    assert order() == sorted(order(), reverse=True)
    heads.get_by_text("Paper: mean").click()
    assert order()[-1] == "erm", "what the paper does not give stays last"


def test_every_control_and_picture_has_a_name(open_page: Open, reports: Reports) -> None:
    page = open_page(reports("run")).page
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input")].filter(e =>
            !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).length"""
    )
    assert nameless == 0
    assert page.locator("img:not([alt])").count() == 0
    assert page.locator("main svg[role=img]:not(:has(title))").count() == 0
    assert page.locator("figure:not(:has(figcaption))").count() == 0
    levels = page.evaluate(
        "[...document.querySelectorAll('main h2,main h3,main h4')].map(h => +h.tagName[1])"
    )
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_eighty_thousand_images_make_a_small_file_of_few_parts(
    open_page: Open, tmp_path: Path
) -> None:
    """What bounds the time to open it: bytes to read, elements to lay out, pictures to decode."""
    file = write_report(write_run(tmp_path / "run", load_table("cmnist")))
    assert file.stat().st_size < 5_000_000
    opened = open_page(file)
    assert opened.complaints == []
    assert opened.page.evaluate("document.querySelectorAll('*').length") < 6000
    assert opened.page.locator("img").count() < 500
    assert "400 of 80,000 images" in opened.page.inner_text("#images")
    assert json.loads(opened.page.text_content("#payload"))["data"]
