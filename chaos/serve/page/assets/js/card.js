// A run in progress. The card stays the same node as long as the run is shown.

function makeCard() {
  const node = element("article", "card");
  node.badge = element("span", "badge");
  node.heading = element("h2");
  node.cell = element("span", "note");
  node.clock = element("span", "clock");
  node.run = element("p", "run");
  node.course = coursePart();
  node.ends = element("p", "note");
  node.problems = element("ul", "problems");
  node.report = element("p");
  const head = append(element("header"), node.badge, node.heading, node.cell, node.clock);
  return append(node, head, node.run, node.report, node.course, node.ends, node.problems);
}

function fillCard(node, state) {
  const [sign, word] = stageWords(state);
  const verdict = VERDICTS[state.verdict] ? state.verdict : "";
  setClass(node, `card ${verdict}${state.baseline_of ? " aside" : ""}`.trim());
  setClass(node.badge, `badge ${verdict}`.trim());
  setText(node.badge, `${sign} ${word}`);
  setText(node.heading, `${state.scenario || state.run}${state.cell ? ` [${state.cell}]` : ""}`);
  setText(node.cell, cellText(state));
  setText(node.clock, `${running(state.elapsed)}${state.limit === null ? "" : ` of at most ${running(state.limit)}`}`);
  setText(node.run, state.run);
  fillReport(node.report, state);
  fillCourse(node.course, state);
  setText(node.ends, endsText(state));
  keyed(node.problems, state.problems, (text) => text, () => element("li"), setText);
}

function cellText(state) {
  const parts = [];
  if (state.baseline_of) parts.push("fault-free run for another run");
  if (state.cell_number !== null && state.cell_count !== null) parts.push(`cell ${state.cell_number} of ${state.cell_count}`);
  return parts.join(" · ");
}

function endsText(state) {
  const { planned, unplanned } = state.ends;
  const bad = unplanned ? `✗ ${unplanned} unplanned` : "none unplanned";
  const cores = state.cores.held.length ? ` · cores ${ranges(state.cores.held)}` : "";
  return `${count(planned + unplanned, "process")} ended: ${planned} as planned, ${bad}${cores}`.replace("processs", "processes");
}

/** The link to the page of the run, once there is one. */
function fillReport(node, state) {
  const done = state.stage === "ended" || state.stage === "broken off";
  node.hidden = !done || state.baseline_of;
  if (node.hidden || node.firstChild) return;
  const link = element("a", "", "The page of this run");
  link.href = `../run/${state.link}/`;
  node.appendChild(link);
}
