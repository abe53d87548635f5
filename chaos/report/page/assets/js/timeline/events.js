// The events of the timeline as text: for the keyboard, for search in the page and for screen readers.

const MOST_EVENTS = 2000;

/** All marks, and the beginnings of what lasted, with their owner, in order of time. */
function eventsOf(timeline) {
  const events = timeline.harness.map((mark) => ({ ...mark, owner: "harness", row: null }));
  for (const state of timeline.states) events.push({ ...begun(state), kind: "sdk", owner: "the SDK's controller", row: null });
  for (const row of timeline.rows) {
    for (const process of row.processes) {
      const owner = `${row.label} · ${process.attempt}`;
      for (const mark of process.marks) events.push({ ...mark, owner, row });
      for (const span of process.spans) events.push({ ...begun(span), kind: span.kind, owner, row });
    }
  }
  return events.sort((a, b) => a.t - b.t);
}

/** The beginning of what lasted, with its length. */
function begun(span) {
  return { t: span.begin, text: `${span.text} · ${seconds(span.end - span.begin)}` };
}

/** The name of an event's kind: that of its state, or of its mark. */
function kindName(kind) {
  return STATE_NAMES[kind] || MARK_NAMES[kind] || kind;
}

function eventTable(events, show) {
  const details = element("details", "more");
  const summary = element("summary", "", `${count(events.length, "event")} as a table`);
  details.appendChild(summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const table = element("table", "facts-table");
    const head = append(element("tr"), ...["time", "kind", "of", "event"].map((name) => heading(name, "col")));
    table.appendChild(append(element("thead"), head));
    const body = element("tbody");
    for (const event of events.slice(0, MOST_EVENTS)) body.appendChild(eventRow(event, show));
    table.appendChild(body);
    details.appendChild(append(element("div", "scroll events"), table));
    if (events.length > MOST_EVENTS) {
      details.appendChild(element("p", "note", `The first ${count(MOST_EVENTS, "event")} are listed.`));
    }
  });
  return details;
}

function eventRow(event, show) {
  const time = element("td", "number");
  time.appendChild(button(moment(event.t), `Show ${moment(event.t)} in the timeline`, () => show(event)));
  const cells = [kindName(event.kind), event.owner, event.text].map((text) => element("td", "", text));
  return append(element("tr"), time, ...cells);
}

function heading(text, scope) {
  const node = element("th", "", text);
  node.scope = scope;
  return node;
}

/** Each planned fault beside what was seen of it. */
function plannedTable(planned, show) {
  const table = element("table", "facts-table planned");
  const head = append(element("tr"), ...["planned", "seen"].map((name) => heading(name, "col")));
  const body = element("tbody");
  for (const fault of planned) {
    const seen = element("td", fault.seen === null ? "fail" : "");
    seen.appendChild(element("span", "word", fault.seen === null ? "✗ " : "✓ "));
    seen.appendChild(document.createTextNode(fault.seen === null ? "not seen" : fault.seen));
    if (fault.t !== null) seen.append(" ", button("show", "Show it in the timeline", () => show(fault)));
    body.appendChild(append(element("tr"), element("td", "", fault.text), seen));
  }
  return append(table, append(element("thead"), head), body);
}
