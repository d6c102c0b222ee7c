// The sections on time: goodput of the whole run, and the phases of a step over time.

function goodputSection(data) {
  if (!data.runs.some(run => run.sessions.length)) return;
  const causes = data.causes.filter((cause, i) => data.runs.some(run => run.goodput.lost[i] > 0));
  const rows = [["goodput", ...data.runs.map(run => make("b", {}, run.sessions.length ? percent(run.goodput.productive / run.goodput.total) : "–"))],
    ["kept steps", ...data.runs.map(run => duration(run.goodput.productive))],
    ...causes.map(cause => [cause, ...data.runs.map(run => {
      const lost = run.goodput.lost[data.causes.indexOf(cause)];
      return lost > 0 ? `${duration(lost)} (${percent(lost / run.goodput.total)})` : "–";
    })]),
    ["in all", ...data.runs.map(run => duration(run.goodput.total))]];
  section("Goodput", make("p", { class: "note" }, "The share of the time, from the first start to the last event, that was spent on training ",
      "steps that were kept. The table gives the causes of lost time."),
    table("Time by cause", ["", ...data.runs.map(run => run.name)], rows),
    data.runs.map(run => run.sessions.length ? [make("h3", {}, `Sessions of ${run.name}`), sessionTable(data, run)] : null),
    data.runs.map(run => run.failures.length ? [make("h3", {}, `Failures of ${run.name}`), failureTable(run)] : null));
}

function failureTable(run) {
  return table("The rank that failed first, as titan launch saw it", ["", "when", "rank", "step", "cause", "how", "error", "then", "log"],
    run.failures.map((failure, i) => [String(i + 1), date(failure.time), `${failure.rank} of ${failure.ranks}`,
      failure.step === null ? "–" : failure.step, failure.kind, failure.how, failure.error || "–", failure.response, failure.log]), [6, 8]);
}

function sessionTable(data, run) {
  const lost = session => {
    const parts = data.causes.flatMap((cause, i) => session.seconds.lost[i] > session.seconds.total / 2000 ? [`${cause} ${duration(session.seconds.lost[i])}`] : []);
    return parts.join(", ") || "nothing";
  };
  const outcome = session => make("span", { class: session.outcome === "failed" ? "bad" : session.outcome === "finished" ? "good" : null },
    session.outcome + (session.error ? `: ${session.error}` : ""));
  return table("From one start of the program to its end", ["", "started", "steps", "took", "kept steps", "lost", "ended"],
    run.sessions.map((session, i) => [String(i + 1), date(session.begin), `${number(session.resumed + 1)} to ${number(session.last)}`,
      duration(session.end - session.begin), duration(session.seconds.productive), lost(session), outcome(session)]), [5]);
}

function breakdownSection(data) {
  const runs = data.runs.filter(run => run.breakdown.bars.length);
  if (!runs.length) return;
  const longest = Math.max(...runs.flatMap(run => run.breakdown.bars.map(bar => bar.slice(3).reduce((a, b) => a + b, 0))));
  const phases = [...new Set(runs.flatMap(run => run.breakdown.phases.filter((name, i) => run.breakdown.bars.some(bar => bar[3 + i] > 0))))];
  section("Steps", make("p", { class: "note" }, "Seconds per step by activity, on rank 0. Each bar is the mean of the steps between two logged ",
      "ones. A thin vertical line marks a restart of the program."),
    make("div", { class: "legend" }, phases.map(name => make("span", {}, swatchOfFill(fillOfPhase(name)), name))),
    runs.map(run => [make("h3", {}, run.name), breakdownChart(run, longest), breakdownTable(run)]));
}

function breakdownChart(run, longest) {
  const holder = make("div", { class: "wide" }), height = 210, left = 58, top = 8, bottom = height - 24;
  const { phases, bars } = run.breakdown, place = name => PHASES.includes(name) ? PHASES.indexOf(name) : PHASES.length;
  const order = phases.map((_, i) => i).sort((a, b) => place(phases[a]) - place(phases[b]));
  const paint = () => {
    const width = Math.max(280, holder.clientWidth || 800), each = (width - left - 8) / bars.length;
    const y = seconds => bottom - seconds / longest * (bottom - top);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `Seconds of a step by phase of ${run.name}` });
    for (const value of ticks(0, longest, 4))
      svg.append(draw("line", { class: "grid", x1: left, x2: width, y1: y(value), y2: y(value) }),
        draw("text", { class: "faint", x: left - 5, y: y(value) + 4, "text-anchor": "end" }, duration(value)));
    bars.forEach((bar, i) => {
      const x = left + i * each;
      let sum = 0;
      if (i > 0 && bars[i - 1][0] !== bar[0]) svg.append(draw("line", { x1: x, x2: x, y1: top, y2: bottom + 6, stroke: "var(--text)" }));
      order.forEach(p => {
        const name = phases[p], seconds = bar[3 + p];
        if (!(seconds > 0)) return;
        svg.append(draw("rect", { x: x + each * .04, width: each * .92, y: y(sum + seconds), height: y(sum) - y(sum + seconds), fill: fillOfPhase(name) },
          draw("title", {}, `steps ${bar[1]} to ${bar[2]}: ${name} ${duration(seconds)}`)));
        sum += seconds;
      });
    });
    const every = Math.max(1, Math.ceil(bars.length / Math.max(1, Math.floor((width - left) / 70))));
    bars.forEach((bar, i) => {
      if (i % every === 0) svg.append(draw("text", { class: "faint", x: left + i * each, y: height - 8 }, number(bar[2])));
    });
    holder.replaceChildren(svg);
  };
  whenResized(holder, paint);
  return holder;
}

function breakdownTable(run) {
  const { phases, bars } = run.breakdown, steps = bar => bar[2] - bar[1] + 1;
  const all = bars.reduce((sum, bar) => sum + steps(bar), 0);
  const means = phases.map((name, i) => bars.reduce((sum, bar) => sum + bar[3 + i] * steps(bar), 0) / all);
  const total = means.reduce((a, b) => a + b, 0);
  return make("details", {}, make("summary", {}, "As numbers"), table(`Mean over ${number(all)} steps`, ["phase", "seconds per step", "share"],
    [...phases.map((name, i) => [name, duration(means[i]), percent(means[i] / total)]), ["in all", duration(total), percent(1)]]));
}
