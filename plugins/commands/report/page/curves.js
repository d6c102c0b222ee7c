// The section of curves: selects scalars and draws their charts.

const FIRST = ["loss_metrics/global_avg_loss", "validation_metrics/loss", "grad_norm", "lr", "throughput_of_job(tps)",
               "throughput(tps)", "goodput(%)", "memory/max_reserved(GiB)", "memory/max_active(GiB)"];

/** The line of a run's curve; null when it has none. */
function lineOf(run, index, tag) {
  const curve = Object.hasOwn(run.metrics.curves, tag) ? run.metrics.curves[tag] : null;
  if (!curve) return null;
  const x = run.metrics.steps[curve.s], end = curve.e === undefined ? x : run.metrics.steps[curve.e];
  const odd = curve.odd || x.flatMap((step, i) => !curve.lo && typeof curve.v[i] === "string" ? [[step, curve.v[i]]] : []);
  return { run: index, name: run.name, x, end, y: curve.v.map(finite), low: curve.lo ? curve.lo.map(finite) : null,
           high: curve.hi ? curve.hi.map(finite) : null, odd: odd.slice(0, 50), numOdd: curve.num_odd || odd.length,
           text: curve.v.map(value => typeof value === "string" ? value : "") };
}

function curvesSection(data) {
  const tags = [...new Set(data.runs.flatMap(run => Object.keys(run.metrics.curves)))].filter(tag => tag !== "wall_time").sort();
  if (!tags.length) return;
  const view = { smoothing: 0, logX: false, logY: false, linked: true, domain: null, hidden: new Set() };
  const charts = new Map(), grid = make("div", { class: "charts" });
  const first = FIRST.filter(tag => tags.includes(tag)), memory = tags.find(tag => tag.startsWith("memory/"));
  if (first.length && memory && !first.some(tag => tag.startsWith("memory/"))) first.push(memory);
  const chosen = new Set(first.length ? first : tags.slice(0, 6));
  const renderAll = () => charts.forEach(chart => chart.render());
  const arrange = () => {
    const order = [...chosen].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    for (const tag of order)
      if (!charts.has(tag))
        charts.set(tag, new Chart(tag, data.runs.map((run, i) => lineOf(run, i, tag)).filter(Boolean), view, renderAll));
    for (const tag of charts.keys()) if (!chosen.has(tag)) charts.delete(tag);
    grid.replaceChildren(...order.map(tag => charts.get(tag).element));
    renderAll();
  };
  const rank = tag => FIRST.includes(tag) ? FIRST.indexOf(tag) : FIRST.length;
  section("Curves", curveControls(view, renderAll), data.runs.length > 1 ? runLegend(data, view, renderAll) : null,
    make("p", { class: "note hint" }, "Drag across a chart to zoom, double click to see all. With the keyboard: arrows move the cursor, ",
      "shift and arrows the view, + and − zoom, 0 shows all. Where a run has more points than fit, the line is their mean and the band ",
      "is their range."),
    grid, tagChoice(tags, chosen, arrange));
  arrange();
}

function curveControls(view, render) {
  const check = (text, key) => make("label", {}, make("input", { type: "checkbox", checked: view[key],
    onchange: event => { view[key] = event.target.checked; view.domain = null; render(); } }), text);
  const shown = make("output", {}, "0");
  const slider = make("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0, "aria-label": "Smoothing",
    oninput: event => { view.smoothing = Number(event.target.value); shown.textContent = view.smoothing.toFixed(2); render(); } });
  return make("div", { class: "controls" }, make("label", {}, "Smoothing", slider, shown), check("Log steps", "logX"),
    check("Log values", "logY"), check("Zoom all together", "linked"),
    make("button", { type: "button", onclick: () => { view.domain = null; render(); } }, "Show all steps"));
}

function runLegend(data, view, render) {
  return make("div", { class: "legend", role: "group", "aria-label": "Runs" }, data.runs.map((run, i) =>
    make("button", { type: "button", "aria-pressed": "true", onclick: event => {
      if (!view.hidden.delete(i)) view.hidden.add(i);
      event.currentTarget.setAttribute("aria-pressed", String(!view.hidden.has(i)));
      render();
    } }, swatchOfRun(i), " ", make("bdi", {}, run.name))));
}

function tagChoice(tags, chosen, arrange) {
  const labels = tags.map(tag => make("label", {}, make("input", { type: "checkbox", checked: chosen.has(tag), onchange: event => {
    if (event.target.checked) chosen.add(tag);
    else chosen.delete(tag);
    arrange();
  } }), " ", make("bdi", {}, tag)));
  const filter = make("input", { type: "search", placeholder: "part of a name", "aria-label": "Find a scalar", oninput: event => {
    const part = event.target.value.toLowerCase();
    labels.forEach((label, i) => { label.hidden = !tags[i].toLowerCase().includes(part); label.style.display = label.hidden ? "none" : ""; });
  } });
  return make("details", {}, make("summary", {}, `All ${tags.length} scalars`), make("p", {}, filter), make("div", { class: "tags" }, labels));
}
