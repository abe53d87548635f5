// The phases of each recovery against their budgets and the fault-free run, as a table with bars.

function waterfalls(recoveries, parent) {
  const withPhases = recoveries.filter((recovery) => recovery.phases.length);
  if (!recoveries.length) parent.appendChild(element("p", "note", "No recovery was measured in this run."));
  if (withPhases.length > 1) parent.appendChild(element("p", "note", "The last recovery decides: only its phases have budgets."));
  recoveries.forEach((recovery, index) => {
    const title = recoveryTitle(recovery, index, recoveries.length);
    const note = `${title ? `${title}: ` : "Not measured: "}${recovery.reason}.`;
    if (!recovery.phases.length) parent.appendChild(element("p", "note", note));
    else parent.appendChild(append(element("div", "scroll"), waterfall(recovery, title)));
  });
  if (withPhases.length) parent.appendChild(waterfallKey());
}

/** What a recovery is called: its mechanism and, where there are several, its faults. */
function recoveryTitle(recovery, index, number) {
  if (number === 1) return recovery.mechanism || "";
  return [`${index + 1} of ${number}`, recovery.mechanism, `after ${recovery.faults.join(", ")}`].filter(Boolean).join(" · ");
}

function waterfall(recovery, title) {
  const measured = recovery.phases.filter((phase) => phase.begin !== null && phase.seconds !== null);
  const first = Math.min(...measured.map((phase) => phase.begin));
  const last = Math.max(...measured.map((phase) => phase.begin + phase.seconds));
  const place = (t) => `${((t - first) / Math.max(last - first, 1e-9)) * 100}%`;
  const table = element("table", "waterfall");
  const columns = [title || "recovery", "", "took", "budget", "used", "fault-free"];
  table.appendChild(append(element("thead"), append(element("tr"), ...columns.map((name) => heading(name, "col")))));
  const body = element("tbody");
  for (const phase of recovery.phases) body.appendChild(phaseRow(phase, place));
  const total = { name: "total", begin: null, seconds: recovery.total, budget: recovery.budget, fault_free: null, reason: recovery.reason };
  const row = phaseRow(total, place);
  row.className = "total";
  append(body, row);
  if (recovery.rollback !== null || recovery.rollback_budget !== null) body.appendChild(rollbackRow(recovery));
  return append(table, body);
}

/** The steps that were trained again: a number of steps among the times, so it says so. */
function rollbackRow(recovery) {
  const phase = { seconds: recovery.rollback, budget: recovery.rollback_budget };
  const over = phase.seconds !== null && phase.budget !== null && phase.seconds > phase.budget;
  const cells = [phase.seconds, phase.budget].map((value) => element("td", "number", value === null ? "–" : `${value}`));
  const used = element("td", over ? "number fail" : "number", usedText(phase, over));
  const label = heading("steps trained again", "row");
  return append(element("tr"), label, element("td", "track"), ...cells, used, element("td", "number", "–"));
}

function phaseRow(phase, place) {
  const over = phase.seconds !== null && phase.budget !== null && phase.seconds > phase.budget;
  const track = element("td", "track");
  if (phase.begin !== null && phase.seconds !== null) {
    track.appendChild(bar(over ? "bar over" : "bar", place, phase.begin, phase.begin + phase.seconds));
    if (phase.fault_free !== null) track.appendChild(bar("bar fault-free", place, phase.begin, phase.begin + phase.fault_free));
    if (phase.budget !== null) track.appendChild(limit(place, phase.begin + phase.budget));
  } else if (phase.reason) {
    track.appendChild(element("span", "why", phase.reason));
  }
  const used = element("td", over ? "number fail" : "number", usedText(phase, over));
  const cells = [phase.seconds, phase.budget].map((value) => element("td", "number", seconds(value)));
  const name = heading(phase.name, "row");
  if (over) name.prepend(element("span", "fail", "✗ "));
  return append(element("tr"), name, track, ...cells, used, element("td", "number", seconds(phase.fault_free)));
}

function usedText(phase, over) {
  if (phase.seconds === null || !phase.budget) return "–";
  const percent = (phase.seconds / phase.budget) * 100;
  const text = percent < 1 && percent > 0 ? "<1 %" : `${percent.toFixed(0)} %`;
  return over ? `✗ ${text}, over` : text;
}

function bar(className, place, begin, end) {
  const node = element("i", className);
  node.style.left = place(begin);
  node.style.width = `max(2px, calc(${place(end)} - ${place(begin)}))`;
  return node;
}

/** The budget's end, where it lies in the picture at all. */
function limit(place, t) {
  const node = element("i", "limit");
  node.style.left = place(t);
  node.hidden = parseFloat(place(t)) > 100;
  return node;
}

function waterfallKey() {
  const item = (className, text) => append(element("li"), element("i", `key ${className}`), document.createTextNode(text));
  const items = [item("bar", "measured"), item("bar over", "over its budget"), item("bar fault-free", "fault-free run"), item("limit", "end of the budget")];
  return append(element("ul", "legend"), ...items);
}
