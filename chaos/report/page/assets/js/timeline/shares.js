// A closed group as one strip: how many of its ranks do what, for each column of pixels.

/** States by their place in a strip, from the bottom. */
const STATES = ["step", "start", "load", "compile", "save", "held", "pause", "handler", "stop", "repair"];

const STATE_NAMES = {
  step: "training",
  start: "start",
  load: "load",
  compile: "compile",
  save: "save",
  held: "held at a barrier",
  pause: "paused by the SDK",
  handler: "in a handler",
  stop: "stop",
  repair: "repair",
  alive: "alive",
};

/** Counts for each column: `alive`, and one array for each state. */
function sharesOf(rows, from, to, columns) {
  const scale = columns / (to - from);
  const shares = { alive: new Float32Array(columns + 1) };
  const add = (state, begin, end) => {
    if (end < from || begin > to) return;
    if (!shares[state]) shares[state] = new Float32Array(columns + 1);
    const first = Math.max(0, Math.floor((begin - from) * scale));
    const last = Math.min(columns, Math.max(first + 1, Math.round((end - from) * scale)));
    if (first >= columns) return;
    shares[state][first] += 1;
    shares[state][last] -= 1;
  };
  for (const row of rows) {
    for (const process of row.processes) {
      if (process.end < from || process.begin > to) continue;
      add("alive", process.begin, process.end);
      addSteps(process.steps, from, to, scale, add);
      for (const span of process.spans) add(span.kind, span.begin, span.end);
    }
  }
  for (const counts of Object.values(shares)) {
    for (let column = 1; column < columns; column += 1) counts[column] += counts[column - 1];
  }
  return shares;
}

/** Steps that follow each other without a pixel between them count as one. */
function addSteps(steps, from, to, scale, add) {
  let begin = null;
  let end = null;
  for (let index = firstAfter(steps, from, (step) => step[3]); index < steps.length; index += 1) {
    const step = steps[index];
    if (step[2] > to) break;
    if (begin !== null && (step[2] - end) * scale < 1) {
      end = step[3];
      continue;
    }
    if (begin !== null) add("step", begin, end);
    [begin, end] = [step[2], step[3]];
  }
  if (begin !== null) add("step", begin, end);
}

/** What the ranks of a group do at a column, in words. */
function shareText(shares, column, ranks) {
  const parts = [];
  for (const state of STATES) {
    const number = shares[state] ? Math.round(shares[state][column]) : 0;
    if (number) parts.push(`${number} ${STATE_NAMES[state]}`);
  }
  const alive = Math.min(ranks, Math.round(shares.alive[column]));
  return [`${alive} of ${count(ranks, "rank")} alive`, ...parts];
}
