// What the timeline shows at a place, in words.

const NEAR = 7;

/** The heaviest mark near a place, then the nearest. */
function markAt(marks, painter, x) {
  let best = null;
  for (const mark of marks) {
    const away = Math.abs(painter.x(mark.t) - x);
    if (away > NEAR) continue;
    const heavier = best && weight(mark.kind) - weight(best.mark.kind);
    if (!best || heavier > 0 || (heavier === 0 && away < best.away)) best = { mark, away };
  }
  return best && best.mark;
}

function markLines(title, mark) {
  return [title, mark.text, `${kindName(mark.kind)} at ${moment(mark.t)}`];
}

function lasted(begin, end) {
  return `${moment(begin)} – ${moment(end)} · ${seconds(end - begin)}`;
}

function rowAt(row, painter, x, y) {
  const t = timeAt(painter, x);
  const lane = Math.min(row.laneCount - 1, Math.max(0, Math.floor((y - 2) / LANE)));
  const processes = row.processes.filter((_, index) => row.lanes[index] === lane);
  const owner = (mark) => processes.find((process) => process.marks.includes(mark));
  const mark = markAt(processes.flatMap((process) => process.marks), painter, x);
  if (mark) return markLines(processTitle(row, owner(mark)), mark);
  const slack = 1.5 / painter.scale;
  const process = processes.find((item) => item.begin - slack <= t && t <= item.end + slack);
  if (!process) return null;
  const span = spanAt(process, t, slack, y - lane * LANE);
  if (span) return [processTitle(row, process), span.text, `${STATE_NAMES[span.kind] || span.kind} · ${lasted(span.begin, span.end)}`];
  const step = process.steps[firstAfter(process.steps, t, (item) => item[3])];
  if (step && step[2] <= t) {
    const [first, last, begin, end] = step;
    const name = first === last ? `step ${first}` : `steps ${first}–${last}, ${seconds((end - begin) / (last - first + 1))} each`;
    return [processTitle(row, process), name, lasted(begin, end)];
  }
  const exit = process.exit === null ? "its exit is not known" : `exit: ${process.exit}`;
  return [processTitle(row, process), exit, lasted(process.begin, process.end)];
}

/** The shortest span at a time; one that is drawn as a line below only where the pointer is on it. */
function spanAt(process, t, slack, y) {
  let best = null;
  for (const span of process.spans) {
    if (t < span.begin - slack || t > span.end + slack) continue;
    if (UNDERLINED.has(span.kind) && y < 15 && process.spans.length > 1 && best) continue;
    if (!best || span.end - span.begin < best.end - best.begin || UNDERLINED.has(best.kind)) best = span;
  }
  return best;
}

function processTitle(row, process) {
  return `${row.label} · ${process.attempt} · pid ${process.pid}`;
}

function groupAt(group, painter, x) {
  const marks = heavyMarks(group.rows).filter((mark) => Math.abs(painter.x(mark.t) - x) <= NEAR);
  const mark = markAt(marks, painter, x);
  const columns = Math.max(1, Math.floor((painter.width - GUTTER) / 2));
  const shares = sharesOf(group.rows, painter.window.from, painter.window.to, columns);
  const column = Math.min(columns - 1, Math.max(0, Math.floor((x - GUTTER) / 2)));
  const lines = [group.label, ...shareText(shares, column, group.rows.length), `at ${moment(timeAt(painter, x))}`];
  if (mark) lines.splice(1, 0, marks.length > 1 ? `${mark.text} (and ${marks.length - 1} more marks here)` : mark.text);
  return lines;
}

function headAt(timeline, lines, painter, x, y) {
  const line = lines.find((item) => y >= item.y && y < item.y + HEAD_LINE);
  if (!line) return null;
  if (line.name === "harness") {
    const mark = markAt(timeline.harness, painter, x);
    return mark && markLines("harness", mark);
  }
  if (line.name === "planned") {
    const planned = timeline.planned.filter((fault) => fault.t !== null && Math.abs(painter.x(fault.t) - x) <= NEAR);
    return planned.length ? planned.flatMap((fault) => [`planned: ${fault.text}`, fault.seen || "it was not seen"]) : null;
  }
  if (line.name === "SDK") {
    const state = bandAt(timeline.states, painter, x);
    return state && [`the SDK's controller: ${state.name}`, state.text, lasted(state.begin, state.end)];
  }
  const phase = bandAt(timeline.phases, painter, x);
  return phase && [`phase: ${phase.name}`, lasted(phase.begin, phase.end)];
}

/** The band at a place: the shortest of those within a pixel, so that a short one is found too. */
function bandAt(bands, painter, x) {
  const t = timeAt(painter, x);
  const slack = 1 / painter.scale;
  const near = bands.filter((band) => band.begin - slack <= t && t <= band.end + slack);
  return near.sort((a, b) => a.end - a.begin - (b.end - b.begin))[0] || null;
}

function timeAt(painter, x) {
  return painter.window.from + (x - GUTTER) / painter.scale;
}
