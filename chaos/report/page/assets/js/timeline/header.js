// The head of the timeline: the ruler, the recoveries' phases, the SDK's states, faults as planned, the harness's marks.

const RULER = 22;
const HEAD_LINE = 20;

/** The lines of the head that there is something for, from top to bottom. */
function headLines(timeline) {
  const lines = [];
  if (timeline.phases.length) lines.push("phases");
  if (timeline.states.length) lines.push("SDK");
  if (timeline.planned.some((fault) => fault.t !== null)) lines.push("planned");
  if (timeline.harness.length) lines.push("harness");
  return lines.map((name, index) => ({ name, y: RULER + index * HEAD_LINE }));
}

function paintHead(painter, timeline, lines, height) {
  const { context, window } = painter;
  context.font = painter.small;
  for (const tick of ticks(window.from, window.to, painter.width - GUTTER)) {
    const x = painter.x(tick.t);
    if (x < GUTTER) continue;
    context.fillStyle = theme.colour("line");
    context.fillRect(Math.round(x), RULER - 5, 1, height);
    painter.text(tick.text, x + 4, RULER - 8, theme.colour("dim"), painter.width - x - 4);
  }
  for (const { name, y } of lines) {
    context.font = painter.small;
    painter.text(name, 8, y + 14, theme.colour("dim"));
    if (name === "phases") paintBands(painter, timeline.phases, y);
    if (name === "SDK") paintBands(painter, timeline.states, y);
    if (name === "harness") painter.marks(timeline.harness, y + 10);
    if (name !== "planned") continue;
    for (const fault of timeline.planned) {
      if (fault.t !== null && fault.t >= window.from && fault.t <= window.to) {
        drawPlanned(context, painter.x(fault.t), y + 10);
      }
    }
  }
}

/** Phases, or states, that follow each other, each with its name where there is room. */
function paintBands(painter, bands, y) {
  bands.forEach((band, index) => {
    painter.context.fillStyle = theme.colour(index % 2 ? "band-odd-strong" : "band-strong");
    const room = painter.fill(band.begin, band.end, y + 2, HEAD_LINE - 4);
    const left = Math.max(painter.x(band.begin), GUTTER);
    if (room > 20) painter.text(band.name, left + 4, y + 14, theme.colour("text"), room - 6);
  });
}

/** What lies behind the rows: the phases as bands, lines of the ruler, and where faults landed. */
function paintBack(painter, timeline, height) {
  const { context, window } = painter;
  timeline.phases.forEach((phase, index) => {
    context.fillStyle = theme.colour(index % 2 ? "band-odd" : "band");
    painter.fill(phase.begin, phase.end, 0, height);
  });
  context.fillStyle = theme.colour("line-weak");
  for (const tick of ticks(window.from, window.to, painter.width - GUTTER)) {
    const x = painter.x(tick.t);
    if (x >= GUTTER) context.fillRect(Math.round(x), 0, 1, height);
  }
}

function paintFaultLines(painter, timeline, height) {
  const { context, window } = painter;
  context.strokeStyle = theme.colour("mark-fault");
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  for (const fault of timeline.planned) {
    if (fault.t === null || fault.t < window.from || fault.t > window.to) continue;
    const x = Math.round(painter.x(fault.t)) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
  }
  context.setLineDash([]);
}
