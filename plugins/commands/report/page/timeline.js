// The timeline of each rank within a step, next to the plan of its pipeline's schedule.

/** "0F1" in "forward of stage 0, microbatch 1 (0F1)"; "" when there is none. */
function actionIn(name) {
  const found = /(?:^|\()(\d+[A-Z_]+\d+)\)?$/.exec(name);
  return found ? found[1] : "";
}

/** Seconds in which at least one of `spans` ([.., begin, end] at `at`) runs. */
function covered(spans, at) {
  let sum = 0, until = -Infinity;
  for (const span of [...spans].sort((a, b) => a[at] - b[at])) {
    sum += Math.max(0, span[at + 1] - Math.max(until, span[at]));
    until = Math.max(until, span[at + 1]);
  }
  return sum;
}

function timelineSection(data) {
  const runs = data.runs.filter(run => run.timeline && run.timeline.steps.length);
  if (!runs.length) return;
  const holder = make("div", {}), state = { run: 0, step: runs[0].timeline.steps.length - 1, zoom: 1 };
  const choose = (label, options, key, after) => make("label", {}, label, make("select", { onchange: event => {
    state[key] = Number(event.target.value);
    after();
  } }, options.map((text, i) => make("option", { value: i, selected: state[key] === i }, text))));
  const controls = make("div", { class: "controls" });
  const paint = () => {
    const { timeline, name } = runs[state.run];
    controls.replaceChildren(runs.length > 1 ? choose("Run", runs.map(run => run.name), "run", () => { state.step = runs[state.run].timeline.steps.length - 1; paint(); }) : "",
      choose("Step", timeline.steps.map(step => number(step.step)), "step", paint),
      choose("Zoom", ["whole width", "2 ×", "4 ×", "8 ×"], "zoomed", () => { state.zoom = 2 ** state.zoomed; paint(); }));
    const step = timeline.steps[state.step], left = timeline.num_steps - timeline.steps.length;
    holder.replaceChildren(timelineChart(timeline, step, state.zoom, name), timelineTable(timeline, step),
      make("p", { class: "note" }, left > 0 ? `${timeline.steps.length} of ${timeline.num_steps} recorded steps are in this file. ` : "",
        step.ranks.length < timeline.num_ranks ? `${step.ranks.length} of ${timeline.num_ranks} ranks are in this file. ` : ""));
  };
  const legend = ["data", "forward", "backward", "communication", "optimizer", "other"];
  section("Timeline", make("p", { class: "note" }, "The activities of each rank in one step, measured and planned. The plan is the pipeline's schedule ",
      "with the measured durations of actions and no waiting. Gaps are bubbles. The hatched part of a box is the time spent waiting in it, ",
      "drawn at its beginning. Clocks of hosts may differ."),
    controls, make("div", { class: "legend" }, legend.map(name => make("span", {}, swatchOfFill(fillOfPhase(name)), name)),
      make("span", {}, swatchOfFill("url(#fill-waited)"), "waiting"), make("span", {}, swatchOfFill("var(--panel)"), "bubble")), holder);
  state.zoomed = 0;
  paint();
}

function timelineChart(timeline, step, zoom, name) {
  const holder = make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Timeline of step ${step.step} of ${name}` });
  const length = Math.max(...step.ranks.flatMap(rank => rank.spans.map(span => span[3])), ...step.plan.flatMap(row => row.map(span => span[3])), 1e-9);
  const paint = () => {
    const left = 92, rowHeight = 24, room = Math.max(300, (holder.clientWidth || 800) - 4);
    const width = left + (room - left) * zoom, x = seconds => left + seconds / length * (width - left - 8);
    const heads = step.plan.length ? 2 : 1, height = (step.ranks.length + step.plan.length) * rowHeight + heads * 22 + 26;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", style: `width:${width}px;max-width:none`,
      "aria-label": `Step ${step.step}: measured${step.plan.length ? " and planned" : ""}, ${duration(length)}` });
    let top = 0;
    const head = text => { svg.append(draw("text", { x: 0, y: top + 15, "font-weight": 600 }, text)); top += 22; };
    const row = (label, spans) => {
      svg.append(draw("text", { x: 0, y: top + 16 }, label), draw("rect", { x: left, y: top + 2, width: width - left - 8, height: rowHeight - 4, fill: "var(--panel)", stroke: "var(--line)" }));
      for (const [phase, text, begin, end, waited] of [...spans].sort((a, b) => a[2] - b[2] || b[3] - a[3])) box(timeline.phases[phase], timeline.names[text], begin, end, waited || 0);
      top += rowHeight;
    };
    const box = (phase, text, begin, end, waited) => {
      const from = x(begin), size = Math.max(.7, x(end) - from), action = actionIn(text);
      const wait = Math.min(waited, end - begin), note = wait > 0 ? `, of it ${duration(wait)} waiting` : "";
      svg.append(draw("g", {}, draw("title", {}, `${text || phase}: ${duration(begin)} to ${duration(end)}, ${duration(end - begin)}${note}`),
        draw("rect", { x: from, y: top + 3, width: size, height: rowHeight - 6, fill: fillOfPhase(phase), stroke: "var(--back)", "stroke-width": .8 }),
        wait > 0 ? draw("rect", { x: from, y: top + 3, width: Math.max(0, x(begin + wait) - from), height: rowHeight - 6, fill: "url(#fill-waited)" }) : null,
        action && x(end) - x(begin + wait) > 3 + 6.5 * action.length ? draw("text", { x: (x(begin + wait) + x(end)) / 2, y: top + 16, "text-anchor": "middle",
          "pointer-events": "none", stroke: "var(--back)", "stroke-width": 3, "paint-order": "stroke" }, action) : null));
    };
    head("Measured");
    for (const rank of step.ranks) row(`rank ${rank.rank}`, rank.spans);
    if (step.plan.length) head(`Planned${timeline.schedule ? ` by ${timeline.schedule}` : ""}`);
    step.plan.forEach((spans, rank) => row(`rank ${rank}`, spans));
    for (const value of ticks(0, length, Math.max(2, Math.floor((width - left) / 110))))
      svg.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: top + 5 }),
        draw("text", { class: "faint", x: x(value), y: top + 18, "text-anchor": value === 0 ? "start" : "middle" }, duration(value)));
    holder.replaceChildren(svg);
  };
  whenResized(holder, paint);
  return holder;
}

function timelineTable(timeline, step) {
  const length = spans => Math.max(0, ...spans.map(span => span[3]));
  const all = Math.max(...step.ranks.map(rank => length(rank.spans)), 1e-9), planned = Math.max(...step.plan.map(length), 1e-9);
  const rows = step.ranks.map(rank => {
    const works = rank.spans.filter(span => timeline.phases[span[0]] !== "communication");
    const busy = Math.max(0, covered(works, 2) - works.reduce((sum, span) => sum + span[4], 0));
    const plan = step.plan[rank.row];
    return [`rank ${rank.rank}`, percent(busy / all), percent(1 - busy / all), ...(plan ? [percent(1 - covered(plan, 2) / planned)] : [])];
  });
  return table(`Step ${step.step}: ${duration(all)}${step.plan.length ? `, planned ${duration(planned)}` : ""}`,
    ["", "busy", "idle or in communication", ...(step.plan.length ? ["idle as planned"] : [])], rows);
}
