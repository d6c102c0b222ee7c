#!/usr/bin/env python3
"""A long check (docs/results/long_checks.md): the page of titan report in headless Chromium. It must have no errors, not use the
network, fit into 400 and 1400 px, react to keys and the mouse, have enough contrast and print. Writes pictures for inspection to the
named folder.

    TITAN_SOURCE_DIR=. TITAN_PROGRAM=build/release/bin/titan tests/end_to_end/report_page_check.py PICTURES [RUN...]

Needs chromium, and the Python packages websocket-client, html5lib and pandas. Without runs it uses made-up ones."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from browser import Browser
from made_up_run import MadeUpRun, CONFIG

CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = colour => rgb(colour).slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const back = element => { for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor; if (rgb(colour)[3] > 0 && !colour.endsWith(", 0)")) return colour; } return "white"; };
  const bad = [];
  for (const element of document.querySelectorAll("p,a,th,td,h1,h2,h3,button,label,figcaption,summary,caption,svg text")) {
    if (!element.textContent.trim()) continue;
    const own = getComputedStyle(element), colour = element instanceof SVGElement ? own.fill : own.color;
    const [a, b] = [light(colour), light(back(element))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) bad.push([element.tagName, element.textContent.trim().slice(0, 30), colour, back(element), ratio.toFixed(2)]);
  }
  return bad;
})()"""

NAMELESS = """[...document.querySelectorAll("button,a,input,select,[role=img],[role=region]")].filter(element =>
  !(element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.length)).map(element => element.outerHTML.slice(0, 100))"""

TICKS = """[...document.querySelectorAll("figure svg")[0].querySelectorAll("text")].map(text => text.textContent).join(" ")"""


def require(holds, text):
    print("ok  " if holds else "FAIL", text, flush=True)
    require.failed |= not holds


require.failed = False


def made_up(folder):
    other = json.loads(json.dumps(CONFIG))
    other["optimizer"]["lr"] = 4e-4
    first, second = MadeUpRun(folder / "llama3-8b_warmup-2000_lr-3e-4_seed-42"), MadeUpRun(folder / "second", seed=2, config=other)
    first.session(0, 65, "killed").session(50, 133, "failed", hang=40, error="rank 2 gave no sign of life").session(100, 200, "finished")
    second.session(0, 200, "finished")
    return [first.folder, second.folder]


def look(page, pictures, width, dark):
    name = f"{width}_{'dark' if dark else 'light'}"
    with Browser(width, 900, dark) as browser:
        browser.open(page)
        browser.picture(pictures / f"report_{name}.png")
        require(browser.script("document.documentElement.scrollWidth") <= width, f"{name}: fits into the width")
        letters = browser.script("Math.max(0, ...[...document.querySelectorAll('th .legend > *')].map(e => e.getBoundingClientRect().height))")
        require(letters < 120, f"{name}: names of runs are broken between words, not letters ({letters} px high)")
        bad = browser.script(CONTRAST)
        require(not bad, f"{name}: contrast of texts is 4.5 at least {bad[:5]}")
        require(not (nameless := browser.script(NAMELESS)), f"{name}: everything that can be used has a name {nameless[:3]}")
        require(not browser.complaints, f"{name}: no complaint and no request {browser.complaints[:3]}")


def compute(browser):
    import numpy
    import pandas
    values = numpy.random.default_rng(1).normal(size=200)
    for weight in (0, .6, .99):
        own = browser.script(f"smoothed({values.tolist()}, {weight})")
        numpy.testing.assert_allclose(own, pandas.Series(values).ewm(alpha=1 - weight, adjust=True).mean(), rtol=1e-9)
    require(True, "smoothing is what pandas calls ewm(adjust=True)")
    require(browser.script("ticks(0.13, 9.9, 5)") == [2, 4, 6, 8], "ticks are round")
    require(browser.script("logTicks(0.02, 3000, 6)") == [.1, 1, 10, 100, 1000], "logarithmic ticks are powers of ten")
    require(browser.script("[0, 5.6, 6, 99].map(x => nearest([1, 5, 6, 7], x))") == [0, 2, 2, 3], "the nearest point is found")
    require(browser.script("covered([[0, 1], [0.5, 2], [3, 4]], 0)") == 3, "what overlaps counts once")


def use(page, pictures):
    with Browser() as browser:
        browser.open(page)
        compute(browser)
        whole = browser.script(TICKS)
        browser.script("document.querySelector('figure svg').focus()")
        browser.press("+")
        zoomed = browser.script(TICKS)
        require(zoomed != whole, f"+ zooms: {zoomed}")
        browser.press("ArrowRight", modifiers=8)
        require(browser.script(TICKS) != zoomed, "shift and an arrow move the view")
        browser.press("0")
        require(browser.script(TICKS) == whole, "0 shows all")
        browser.press("ArrowRight")
        said = browser.script("document.getElementById('spoken').textContent")
        require("step" in said, f"an arrow reads a value: {said}")
        browser.script("document.querySelector('figure svg').scrollIntoView({block: 'center', behavior: 'instant'})")
        box = browser.script("(b => [b.left, b.right, b.top])(document.querySelector('figure svg').getBoundingClientRect())")
        browser.drag(box[0] + 100, box[0] + 160, box[2] + 90)
        require(browser.script(TICKS) != whole, "a drag zooms")
        browser.script("document.querySelector('figure svg').dispatchEvent(new MouseEvent('dblclick'))")
        require(browser.script(TICKS) == whole, "a double click shows all")
        before = browser.script("document.querySelectorAll('figure').length")
        browser.script("document.querySelector('.tags input:not(:checked)').click()")
        require(browser.script("document.querySelectorAll('figure').length") == before + 1, "a scalar can be chosen")
        for control in ("[type=range]", "[type=checkbox]"):
            browser.script(f"(e => {{ e.value = .9; e.click(); e.dispatchEvent(new Event('input')) }})(document.querySelector('.controls {control}'))")
        require("NaN" not in browser.script("document.querySelector('.charts').innerHTML"), "smoothed and logarithmic curves have places")
        browser.script("document.querySelector('#theme').click()")
        require(browser.script("document.documentElement.classList.contains('dark')"), "the switch makes it dark")
        buttons = browser.script("document.querySelectorAll('.legend button').length")
        if buttons:
            lines = browser.script("document.querySelectorAll('figure svg path').length")
            browser.script("document.querySelector('.legend button').click()")
            require(browser.script("document.querySelectorAll('figure svg path').length") < lines, "a run can be hidden")
        steps = browser.script("[...document.querySelectorAll('#timeline select')].map(select => select.options.length)")
        if steps:
            browser.script("(s => { s.value = 0; s.dispatchEvent(new Event('change')) })([...document.querySelectorAll('#timeline select')].at(-2))")
            browser.settle()
            require(browser.script("document.querySelectorAll('#timeline svg rect').length") > 10, "another step can be chosen")
        browser.picture(pictures / "report_used.png", whole=False)
        browser.pdf(pictures / "report.pdf")
        require(not browser.complaints, f"used: no complaint and no request {browser.complaints[:3]}")


def main():
    import html5lib
    pictures = pathlib.Path(sys.argv[1])
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = sys.argv[2:] or made_up(pathlib.Path(folder))
        page = pictures / "report.html"
        subprocess.run([os.environ["TITAN_PROGRAM"], "report", *runs, "--out", page], check=True)
    require(page.stat().st_size < 2_000_000, f"{page.stat().st_size} bytes are fewer than 2 MB")
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(page.read_text(encoding="utf-8"))
    require(not parser.errors, f"html5lib finds no error {parser.errors[:5]}")
    for width in (400, 1400):
        for dark in (False, True):
            look(page, pictures, width, dark)
    use(page, pictures)
    sys.exit(require.failed)


if __name__ == "__main__":
    main()
