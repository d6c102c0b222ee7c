// Helpers for elements, numbers and colours, used by all scripts of the page. Text from the data goes into text nodes only.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: properties are attributes; "on..." are listeners; children are elements or texts. */
function make(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same for SVG. */
function draw(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined)
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return element;
}

/** Calls `act` with the width within `element`, once it is shown and after each change. `act` may change sizes: it runs after the layout. */
function whenResized(element, act) {
  let width = -1;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    requestAnimationFrame(() => act(width));
  }).observe(element);
}

/** The next text for screen readers. */
function speak(text) {
  document.getElementById("spoken").textContent = text;
}

/** A value of the data: null for one that is not finite. */
function finite(value) {
  return typeof value === "number" ? value : null;
}

/** Five significant digits, without trailing zeros. */
function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(3).replace(/\.?0+e/, "e");
  if (Number.isInteger(value)) return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  return String(Number(value.toPrecision(5)));
}

/** "1 h 02 min", "3 min 07 s", "12.3 s", "4.5 ms", "6 µs" */
function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  const size = Math.abs(seconds);
  if (size > 0 && size < 1e-3) return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  if (size > 0 && size < 1) return number(Number((seconds * 1000).toPrecision(3))) + " ms";
  if (size < 60) return Number(seconds.toPrecision(3)) + " s";
  const whole = Math.round(seconds), two = value => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  const hours = Math.floor(whole / 3600), text = `${hours % 24} h ${two(Math.floor(whole % 3600 / 60))} min`;
  return hours < 24 ? text : `${Math.floor(hours / 24)} d ${text}`;
}

function bytes(count) {
  if (typeof count !== "number" || count < 0) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; count >= 1024 && unit + 1 < units.length; ++unit) count /= 1024;
  return `${Number(count.toPrecision(3))} ${units[unit]}`;
}

/** A date in UTC, so that the page does not depend on the time zone. */
function date(seconds) {
  return seconds > 0 ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "–";
}

function percent(share) {
  return typeof share === "number" && Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–";
}

/** A table. `rows`: cells are texts, elements, or numbers, which are right-aligned; `long`: columns of texts. */
function table(caption, head, rows, long = []) {
  const cell = (name, value, extra) =>
    make(name, { class: typeof value === "number" ? "number" : null, ...extra }, typeof value === "number" ? number(value) : value);
  return make("div", { class: "wide" }, make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, head.map(text => cell("th", text, { scope: "col" })))),
    make("tbody", {}, rows.map(row => make("tr", {}, row.map((value, i) => i === 0 ? cell("th", value, { scope: "row" }) : cell("td", value, long.includes(i) ? { class: "long" } : {})))))));
}

/** Colour and dashes of a run by its index; dashes distinguish runs without colour. */
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2 5 6", "1 4"];
function styleOfRun(index) {
  return { colour: `var(--run${index % 6})`, dash: DASHES[(index + Math.floor(index / 6)) % 6] };
}

function swatchOfRun(index) {
  const { colour, dash } = styleOfRun(index);
  return draw("svg", { width: 30, height: 10, "aria-hidden": "true" },
    draw("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash }));
}

/** Patterns over the colours of phases, so that neighbours differ without colour. */
const PHASES = ["data", "forward", "backward", "communication", "optimizer", "checkpoint", "validation", "replicas", "other"];
function colourOfPhase(name) {
  return PHASES.includes(name) ? `var(--${name})` : "var(--other)";
}

/** Definitions of the patterns, once in the page. */
function patterns() {
  const line = path => draw("path", { d: path, stroke: "var(--back)", "stroke-width": 1.6, fill: "none", opacity: .75 });
  const shapes = { forward: "", backward: "M0 8L8 0M-2 2L2 -2M6 10L10 6", communication: "M0 0L8 8M0 8L8 0", optimizer: "M0 2H8M0 6H8",
    data: "M2 0V8M6 0V8", checkpoint: "M0 4H8M4 0V8", validation: "M0 0L8 8M6 -2L10 2M-2 6L2 10", replicas: "M0 4L4 0L8 4L4 8Z", other: "M3 4H5" };
  return draw("svg", { width: 0, height: 0, "aria-hidden": "true", style: "position:absolute" }, draw("defs", {},
    PHASES.map(name => draw("pattern", { id: `fill-${name}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
      draw("rect", { width: 8, height: 8, fill: colourOfPhase(name) }), shapes[name] ? line(shapes[name]) : null)),
    draw("pattern", { id: "fill-waited", width: 5, height: 5, patternUnits: "userSpaceOnUse" },
      draw("rect", { width: 5, height: 5, fill: "var(--back)" }),
      draw("path", { d: "M0 5L5 0", stroke: "var(--communication)", "stroke-width": 1.2 }))));
}

function fillOfPhase(name) {
  return `url(#fill-${PHASES.includes(name) ? name : "other"})`;
}

function swatchOfFill(fill) {
  return draw("svg", { width: 18, height: 12, "aria-hidden": "true" }, draw("rect", { width: 18, height: 12, fill, stroke: "var(--line)" }));
}

/** Adds a section with its entry in the contents; returns the section. */
function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
  document.getElementById("contents").append(make("a", { href: `#${id}` }, title));
  const element = make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), children);
  document.getElementById("main").append(element);
  return element;
}
