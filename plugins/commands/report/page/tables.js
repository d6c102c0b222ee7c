// Tables of the page: runs, configuration, environment, checkpoints, skipped and repeated steps, memory.

function overviewSection(data) {
  const last = run => run.sessions[run.sessions.length - 1];
  const lastValue = (run, tag) => {
    const line = lineOf(run, 0, tag);
    const values = line ? line.y.filter(value => value !== null) : [];
    return values.length ? values[values.length - 1] : "–";
  };
  section("Runs", table("", ["", "description", "last step", "loss", "goodput", "ended"], data.runs.map((run, i) => [
    make("span", { class: "legend" }, make("span", {}, swatchOfRun(i), make("bdi", {}, run.name))), text(run.config["job.description"]),
    last(run) ? last(run).last : "–", lastValue(run, "loss_metrics/global_avg_loss"),
    run.sessions.length ? percent(run.goodput.productive / run.goodput.total) : "–",
    last(run) ? last(run).outcome : "no history"])),
    data.runs.flatMap(run => run.problems.map(problem => make("p", { class: "bad" }, `${run.name}: ${problem}`))));
}

/** A value of the configuration (JSON) as text for people. */
function text(json) {
  if (json === undefined) return "–";
  try {
    const value = JSON.parse(json);
    return typeof value === "string" ? value : json;
  } catch {
    return json;
  }
}

function configurationSection(data) {
  const keys = [...new Set(data.runs.flatMap(run => Object.keys(run.config)))].sort();
  if (!keys.length) return;
  const differing = keys.filter(key => new Set(data.runs.map(run => run.config[key])).size > 1);
  const names = data.runs.map(run => run.name), code = json => make("code", {}, text(json));
  section("Configuration", data.runs.length > 1 ? differing.length
      ? table(`What differs: ${differing.length} of ${keys.length} keys`, ["key", ...names],
          differing.map(key => [make("code", {}, key), ...data.runs.map(run => code(run.config[key]))]))
      : make("p", {}, `The runs have the same ${keys.length} keys with the same values.`) : null,
    data.runs.map(run => make("details", {}, make("summary", {}, `All of ${run.name}`),
      table("", ["key", "value"], Object.keys(run.config).sort().map(key => [make("code", {}, key), code(run.config[key])])))));
}

function environmentSection(data) {
  const runs = data.runs.filter(run => run.sessions.length);
  if (!runs.length) return;
  section("Environment", runs.map(run => {
    const keys = [...new Set(run.sessions.flatMap(session => Object.keys(session.environment)))];
    return table(`Of ${run.name}, by session`, ["", ...run.sessions.map((session, i) => `session ${i + 1}`)],
      [["started", ...run.sessions.map(session => date(session.begin))], ...keys.map(key => [key, ...run.sessions.map(session => session.environment[key] || "–")])]);
  }));
}

function checkpointsSection(data) {
  const runs = data.runs.filter(run => run.checkpoints.length);
  if (!runs.length) return;
  section("Checkpoints", runs.map(run => table(`Of ${run.name}`, ["step", "saved", "size", "files", "contents"],
    run.checkpoints.map(saved => [number(saved.step), date(saved.time), saved.bytes > 0 ? bytes(saved.bytes) : "–", saved.files,
      make("span", { class: saved.complete ? null : "bad" }, saved.contents)]))));
}

function undoneSection(data) {
  const runs = data.runs.filter(run => run.undone.length);
  if (!runs.length) return;
  section("Skipped and repeated steps", runs.map(run => table(`Of ${run.name}`, ["step", "attempt", "time", "verdict", "reason"],
    run.undone.map(undone => [number(undone.step), undone.attempt, date(undone.time), undone.skipped ? "skipped" : "repeated",
      make("bdi", {}, undone.reason || "see the log of the ranks")]))));
}

function memorySection(data) {
  const runs = data.runs.filter(run => run.ranks.some(rank => finite(rank.memory) > 0));
  if (!runs.length) return;
  section("Memory", runs.map(run => {
    const most = Math.max(...run.ranks.map(rank => finite(rank.memory) || 0));
    const bar = rank => make("span", { class: "bar", style: `width:${(100 * (finite(rank.memory) || 0) / most).toFixed(1)}px`, "aria-hidden": "true" });
    return make("details", { open: run.ranks.length <= 16 }, make("summary", {}, `By rank of ${run.name}: at most ${bytes(most)}`),
      table("Last status of each rank", ["rank", "host", "memory", "", "of the device", "step", "state"], run.ranks.map(rank => [String(rank.rank), rank.host,
        bytes(rank.memory), bar(rank), finite(rank.total) > 0 ? percent(rank.memory / rank.total) : "–", rank.step, rank.state])));
  }));
}
