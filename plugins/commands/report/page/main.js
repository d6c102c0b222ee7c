// Builds the page from its data.

function themeSwitch() {
  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const set = dark => {
    document.documentElement.classList.toggle("dark", dark);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  };
  let chosen = false;
  set(system.matches);
  system.addEventListener("change", event => { if (!chosen) set(event.matches); });
  button.addEventListener("click", () => { chosen = true; set(!document.documentElement.classList.contains("dark")); });
  let before = false;  // print in the light theme
  addEventListener("beforeprint", () => { before = document.documentElement.classList.contains("dark"); set(false); });
  addEventListener("afterprint", () => set(before));
}

function main() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.title = `Titan report: ${data.runs.map(run => run.name).join(", ")}`;
  themeSwitch();
  document.body.prepend(patterns());
  for (const part of [overviewSection, curvesSection, goodputSection, breakdownSection, timelineSection, memorySection,
                      configurationSection, environmentSection, checkpointsSection, undoneSection]) part(data);
}

main();
