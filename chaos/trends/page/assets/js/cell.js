// A cell: a sign for each run, a plot for each phase, and all times as a table.

function drawCell(cell, number, parent) {
  parent.appendChild(verdictStrip(cell));
  const grid = element("div", "plots");
  parent.appendChild(grid);
  const plots = cell.phases.map((phase) => new PhasePlot(cell, number, phase, grid));
  keepDrawn(plots, grid);
  if (!plots.length) parent.appendChild(element("p", "note", "No passing run has measured a phase."));
  parent.appendChild(timesTable(cell));
}

function verdictStrip(cell) {
  const strip = element("div", "strip");
  strip.setAttribute("role", "list");
  strip.setAttribute("aria-label", `verdicts of ${cell.name}, the oldest first`);
  const flips = new Set(cell.flips.map((flip) => flip.at));
  cell.runs.forEach((run, index) => {
    const sign = element(run.report === null ? "span" : "a", run.word, run.symbol);
    if (run.report !== null) sign.href = run.report;
    if (flips.has(index)) sign.classList.add("flip");
    sign.title = `${run.run}: ${run.word}${run.headline ? `: ${run.headline}` : ""}`;
    const item = append(element("span"), sign);
    item.setAttribute("role", "listitem");
    strip.appendChild(item);
  });
  return strip;
}

function timesTable(cell) {
  const details = element("details", "more");
  details.appendChild(element("summary", "", `all times of ${cell.name} as a table`));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const table = element("table", "facts-table");
    const head = element("tr");
    for (const name of ["run", "started", "verdict", ...cell.phases.map((phase) => `${phase.phase}, s`)]) {
      const column = element("th", "", name);
      column.scope = "col";
      head.appendChild(column);
    }
    const body = element("tbody");
    cell.runs.forEach((run, index) => {
      const name = element("th");
      name.scope = "row";
      const text = element(run.report === null ? "span" : "a", "", run.run);
      if (run.report !== null) text.href = run.report;
      const row = append(element("tr"), append(name, text), element("td", "", run.started.slice(0, 16).replace("T", " ")), element("td", run.word, `${run.symbol} ${run.word}`));
      for (const phase of cell.phases) row.appendChild(element("td", "number", phase.times[index] === null ? "–" : phase.times[index].toFixed(2)));
      body.appendChild(row);
    });
    append(details, append(element("div", "all-times"), append(table, append(element("thead"), head), body)));
  });
  return details;
}
