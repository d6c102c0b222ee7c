// One chart: lines of several runs over steps, with bands where a point represents several, zoom and a cursor.

/** At most about `most` round numbers within [low, high]. */
function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= raw * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** The same for a logarithmic axis: powers of ten, with 2 and 5 between when there are few. */
function logTicks(low, high, most) {
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  if (high / low < 4) return ticks(low, high, most).filter(value => value > 0);
  const every = Math.max(1, Math.ceil((to - from) / most)), found = [];
  for (let power = from; power <= to; power += every)
    for (const factor of to - from <= 2 ? [1, 2, 5] : [1]) found.push(Number((factor * 10 ** power).toPrecision(12)));
  return found.filter(value => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
}

/** Exponential moving average without bias at the start; `weight` in [0, 1). Null stays null and is skipped. */
function smoothed(values, weight) {
  let sum = 0, norm = 0;
  return values.map(value => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}

/** The index of the number in rising `list` that is nearest to `x`. */
function nearest(list, x) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - list[low - 1] <= list[low] - x ? low - 1 : low;
}

/** [lowest, highest] of the finite numbers in `lists` between the steps of `domain`; null when there is none. */
function extent(lines, domain, weight, onlyPositive) {
  let low = Infinity, high = -Infinity;
  const take = value => {
    if (value === null || (onlyPositive && value <= 0)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const line of lines)
    for (let i = 0; i < line.x.length; ++i) {
      if (line.end[i] < domain[0] || line.x[i] > domain[1]) continue;
      take(line.y[i]);
      if (line.low) take(line.low[i]), take(line.high[i]);
    }
  return low <= high ? [low, high] : null;
}

const PLOT = { left: 58, right: 12, top: 10, bottom: 24, height: 230 };

let numCharts = 0;

class Chart {
  /** `lines`: {run, name, x, end, y, low, high, odd}; `view`: state shared by all charts; `changed`: called after this chart changed it. */
  constructor(tag, lines, view, changed) {
    Object.assign(this, { tag, lines, view, changed, own: null, cursor: null, width: 420, id: ++numCharts });
    this.svg = draw("svg", { class: "plot", tabindex: 0, role: "img", height: PLOT.height, onkeydown: event => this.key(event),
      onpointermove: event => this.move(event), onpointerdown: event => this.press(event), onpointerup: event => this.release(event),
      onpointerleave: () => this.leave(), onpointercancel: () => this.leave(), ondblclick: () => this.zoom(null) });
    this.reading = make("p", { class: "reading" });
    this.element = make("figure", {}, make("figcaption", {}, tag), this.svg, this.reading);
    whenResized(this.svg, wide => {
      const width = Math.max(200, Math.round(wide));
      if (width !== this.width) this.width = width, this.render();
    });
  }

  shown() {
    return this.lines.filter(line => !this.view.hidden.has(line.run));
  }

  whole() {
    let low = Infinity, high = -Infinity;
    for (const line of this.lines) low = Math.min(low, line.x[0]), high = Math.max(high, line.end[line.end.length - 1]);
    return low < high ? [low, high] : [low - 1, high + 1];
  }

  domain() {
    const zoomed = this.view.linked ? this.view.domain : this.own, whole = this.whole();
    if (!zoomed) return this.view.logX ? [Math.max(1, whole[0]), Math.max(2, whole[1])] : whole;
    return zoomed;
  }

  /** Shows [from, to], or all of it. */
  zoom(domain) {
    if (domain && !(domain[1] - domain[0] >= 1e-9)) return;
    if (domain && this.view.logX) domain = [Math.max(1, domain[0]), Math.max(2, domain[1])];
    if (this.view.linked) this.view.domain = domain;
    else this.own = domain;
    if (this.view.linked) this.changed();
    else this.render();
  }

  scales() {
    const domain = this.domain(), lines = this.shown();
    let range = extent(lines, domain, 0, this.view.logY), logY = this.view.logY && range !== null;
    if (!range) range = extent(lines, domain, 0, false) || [0, 1];
    if (range[0] === range[1]) range = logY ? [range[0] / 2, range[0] * 2] : [range[0] - (Math.abs(range[0]) * .05 || 1), range[1] + (Math.abs(range[1]) * .05 || 1)];
    const scale = (from, to, log, start, end) => {
      const f = log ? Math.log : value => value;
      const a = f(from), size = f(to) - a;
      return { to: value => start + (f(value) - a) / size * (end - start),
               back: place => { const t = a + (place - start) / (end - start) * size; return log ? Math.exp(t) : t; } };
    };
    const pad = (range[1] - range[0]) * .04;
    if (!logY) range = [range[0] - pad, range[1] + pad];
    return { domain, range, logY, x: scale(...domain, this.view.logX, PLOT.left, this.width - PLOT.right),
             y: scale(...range, logY, PLOT.height - PLOT.bottom, PLOT.top) };
  }

  render() {
    this.placed = this.scales();
    const { domain, range, logY, x, y } = this.placed, right = this.width - PLOT.right, bottom = PLOT.height - PLOT.bottom;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${PLOT.height}`);
    this.svg.setAttribute("aria-label", this.summary());
    const clip = `clip-${this.id}`;
    const grid = draw("g", {});
    const most = Math.max(2, Math.floor(this.width / 90));
    for (const value of this.view.logX ? logTicks(...domain, most) : ticks(...domain, most))
      if (Number.isInteger(value) || domain[1] - domain[0] < 3)
        grid.append(draw("line", { class: "grid", x1: x.to(value), x2: x.to(value), y1: PLOT.top, y2: bottom }),
          draw("text", { class: "faint", x: x.to(value), y: bottom + 15, "text-anchor": x.to(value) > right - 22 ? "end" : "middle" }, number(value)));
    for (const value of logY ? logTicks(...range, 5) : ticks(...range, 5))
      grid.append(draw("line", { class: "grid", x1: PLOT.left, x2: right, y1: y.to(value), y2: y.to(value) }),
        draw("text", { class: "faint", x: PLOT.left - 5, y: y.to(value) + 4, "text-anchor": "end" }, number(value)));
    const lines = draw("g", { "clip-path": `url(#${clip})` }, this.shown().map(line => this.line(line)));
    this.mark = draw("g", { "pointer-events": "none" });
    this.svg.replaceChildren(draw("title", {}, this.summary()), draw("clipPath", { id: clip },
      draw("rect", { x: PLOT.left, y: PLOT.top - 8, width: right - PLOT.left, height: bottom - PLOT.top + 10 })),
      draw("rect", { x: PLOT.left, y: PLOT.top, width: right - PLOT.left, height: bottom - PLOT.top, fill: "transparent" }), grid, lines, this.mark);
    this.read();
  }

  line(line) {
    const { x, y, logY } = this.placed, { colour, dash } = styleOfRun(line.run), weight = this.view.smoothing;
    const can = value => value !== null && (!logY || value > 0);
    const middle = i => this.view.logX ? Math.max(1, (line.x[i] + line.end[i]) / 2) : (line.x[i] + line.end[i]) / 2;
    const path = values => {
      let text = "", pen = "M";
      values.forEach((value, i) => {
        if (!can(value)) return void (pen = "M");
        text += `${pen}${x.to(middle(i)).toFixed(1)} ${y.to(value).toFixed(1)}`;
        pen = "L";
      });
      return text;
    };
    const group = draw("g", { fill: "none", stroke: colour, "stroke-linejoin": "round" });
    if (line.low) {  // each bucket as a vertical box from its lowest to its highest value
      let band = "";
      line.low.forEach((low, i) => {
        if (!can(line.high[i])) return;
        const top = y.to(line.high[i]), foot = can(low) ? y.to(low) : PLOT.height - PLOT.bottom;
        const from = x.to(this.view.logX ? Math.max(1, line.x[i]) : line.x[i]), to = Math.max(from + .6, x.to(Math.max(1, line.end[i])));
        band += `M${from.toFixed(1)} ${top.toFixed(1)}H${to.toFixed(1)}V${foot.toFixed(1)}H${from.toFixed(1)}Z`;
      });
      group.append(draw("path", { d: band, fill: colour, stroke: colour, "stroke-width": .5, opacity: .28 }));
    }
    if (weight > 0) group.append(draw("path", { d: path(line.y), "stroke-width": 1, opacity: .35 }));
    group.append(draw("path", { d: path(weight > 0 ? smoothed(line.y, weight) : line.y), "stroke-width": 1.8, "stroke-dasharray": dash }));
    if (line.y.filter(value => value !== null).length === 1) {
      const i = line.y.findIndex(value => value !== null);
      if (can(line.y[i])) group.append(draw("circle", { cx: x.to(middle(i)), cy: y.to(line.y[i]), r: 3, fill: colour }));
    }
    for (const [step, value] of line.odd)
      group.append(draw("path", { d: `M${x.to(step) - 4} ${PLOT.top - 4}l8 8m0 -8l-8 8`, stroke: "var(--bad)", "stroke-width": 2 },
        draw("title", {}, `${line.name}: ${value} at step ${step}`)));
    return group;
  }

  summary() {
    const parts = this.shown().map(line => {
      const values = line.y.filter(value => value !== null);
      const odd = line.numOdd ? `, ${line.numOdd} not finite` : "";
      return values.length ? `${line.name}: from ${number(values[0])} to ${number(values[values.length - 1])}${odd}` : `${line.name}: no finite value`;
    });
    return `${this.tag} over steps. ${parts.join("; ")}`;
  }

  /** Shows the values at the cursor, or without a cursor the number of non-finite values. */
  read() {
    this.mark.replaceChildren();
    if (this.cursor === null) {
      const odd = this.shown().reduce((sum, line) => sum + line.numOdd, 0);
      this.reading.replaceChildren(odd ? make("span", { class: "bad" }, `${odd} values are not finite (crosses at the top)`) : "");
      return;
    }
    const { x, y, logY } = this.placed, texts = [];
    this.shown().forEach(line => {
      const i = nearest(line.x, this.cursor), value = line.y[i];
      const steps = line.end[i] > line.x[i] ? `steps ${number(line.x[i])} to ${number(line.end[i])}` : `step ${number(line.x[i])}`;
      const band = line.low && line.low[i] !== null ? ` (${number(line.low[i])} to ${number(line.high[i])})` : "";
      const smooth = this.view.smoothing > 0 && value !== null ? `, smoothed ${number(smoothed(line.y, this.view.smoothing)[i])}` : "";
      texts.push(`${line.name}, ${steps}: ${value === null ? line.text[i] || "not finite" : number(value)}${band}${smooth}`);
      const place = x.to(Math.max(this.view.logX ? 1 : -Infinity, (line.x[i] + line.end[i]) / 2));
      if (value !== null && (!logY || value > 0) && place >= PLOT.left && place <= this.width - PLOT.right)
        this.mark.append(draw("circle", { cx: place, cy: y.to(value), r: 4, fill: styleOfRun(line.run).colour, stroke: "var(--back)" }));
    });
    const place = x.to(this.cursor);
    this.mark.append(draw("line", { x1: place, x2: place, y1: PLOT.top, y2: PLOT.height - PLOT.bottom, stroke: "var(--faint)" }));
    this.reading.textContent = texts.join("; ");
  }

  stepAt(event) {
    const box = this.svg.getBoundingClientRect(), place = (event.clientX - box.left) * this.width / box.width;
    return this.placed.x.back(Math.min(this.width - PLOT.right, Math.max(PLOT.left, place)));
  }

  press(event) {
    if (event.button !== 0) return;
    this.pressed = this.stepAt(event);
    this.svg.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.placed) return;
    this.cursor = this.stepAt(event);
    this.read();
    if (this.pressed === undefined) return;
    const [a, b] = [this.pressed, this.cursor].map(this.placed.x.to).sort((one, other) => one - other);
    this.mark.append(draw("rect", { class: "zoom", x: a, width: b - a, y: PLOT.top, height: PLOT.height - PLOT.bottom - PLOT.top }));
  }

  release(event) {
    if (this.pressed === undefined) return;
    const ends = [this.pressed, this.stepAt(event)].sort((a, b) => a - b);
    this.pressed = undefined;
    if (Math.abs(this.placed.x.to(ends[1]) - this.placed.x.to(ends[0])) > 5) this.zoom(ends);
  }

  leave() {
    this.pressed = undefined;
    this.cursor = null;
    if (this.mark) this.read();
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [low, high] = this.domain(), size = high - low;
    const middle = this.cursor === null ? (low + high) / 2 : this.cursor;
    const around = factor => this.zoom([middle - (middle - low) * factor, middle + (high - middle) * factor]);
    const steps = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (steps && event.shiftKey) this.zoom([low + steps * size / 5, high + steps * size / 5]);
    else if (steps) this.moveCursor(steps);
    else if (event.key === "+" || event.key === "=") around(.5);
    else if (event.key === "-") around(2);
    else if (event.key === "0" || event.key === "Escape" || event.key === "Home") this.zoom(null);
    else return;
    event.preventDefault();
  }

  /** To the next point of the first line that is shown. */
  moveCursor(direction) {
    const line = this.shown()[0];
    if (!line) return;
    const [low, high] = this.domain();
    let i = this.cursor === null ? nearest(line.x, direction > 0 ? low : high) : nearest(line.x, this.cursor) + direction;
    i = Math.min(line.x.length - 1, Math.max(0, i));
    this.cursor = line.x[i];
    if (this.cursor < low || this.cursor > high) this.zoom([this.cursor - (high - low) / 2, this.cursor + (high - low) / 2]);
    this.read();
    speak(this.reading.textContent);
  }
}
