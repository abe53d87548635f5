// Rows and strips on a canvas.

const GUTTER = 156;

/** The kinds of spans that reach over others, thinner than those. */
const UNDERLINED = new Set(["handler"]);

class Painter {
  constructor(context, width, window) {
    this.context = context;
    this.width = width;
    this.window = window;
    this.scale = (width - GUTTER) / window.length;
  }

  x(t) {
    return GUTTER + (t - this.window.from) * this.scale;
  }

  /** Fill what lies between two times, at least a pixel wide, without going into the gutter. */
  fill(begin, end, y, height) {
    const left = Math.max(this.x(begin), GUTTER);
    const right = Math.min(Math.max(this.x(end), this.x(begin) + 1), this.width);
    if (right <= GUTTER || left >= this.width) return 0;
    this.context.fillRect(left, y, right - left, height);
    return right - left;
  }

  text(text, x, y, colour, room) {
    const context = this.context;
    context.fillStyle = colour;
    if (room === undefined) {
      context.fillText(text, x, y);
      return;
    }
    if (context.measureText(text).width <= room) context.fillText(text, x, y);
  }

  row(row, y) {
    row.processes.forEach((process, index) => {
      if (process.end < this.window.from || process.begin > this.window.to) return;
      this.process(process, y + row.lanes[index] * LANE + 3);
    });
    row.processes.forEach((process, index) => this.marks(process.marks, y + row.lanes[index] * LANE + 11));
  }

  process(process, y) {
    const { context } = this;
    context.fillStyle = theme.colour("alive");
    this.fill(process.begin, process.end, y, 16);
    this.steps(process.steps, y + 2, 12);
    const spans = [...process.spans].sort((a, b) => b.end - b.begin - (a.end - a.begin));
    for (const span of spans) {
      context.fillStyle = theme.colour(STATES.includes(span.kind) ? `state-${span.kind}` : "state-start");
      const thin = UNDERLINED.has(span.kind);
      const room = this.fill(span.begin, span.end, thin ? y + 13 : y + 2, thin ? 3 : 12);
      if (!thin && room > 30) this.label(span, y + 11);
    }
  }

  label(span, y) {
    const left = Math.max(this.x(span.begin), GUTTER);
    const right = Math.min(this.x(span.end), this.width);
    this.context.font = this.small;
    this.text(span.name, left + 4, y, theme.colour("on-state"), right - left - 8);
  }

  steps(steps, y, height) {
    const { context, window } = this;
    context.font = this.small;
    const shades = [theme.colour("state-step"), theme.colour("state-step-odd")];
    let filled = -1;
    for (let index = firstAfter(steps, window.from, (step) => step[3]); index < steps.length; index += 1) {
      const [first, last, begin, end] = steps[index];
      if (begin > window.to) break;
      const right = this.x(end);
      if (right - filled < 1) continue;
      context.fillStyle = shades[index % 2];
      const room = this.fill(begin, end, y, height);
      filled = right;
      if (room > 12) {
        const text = first === last ? `${first}` : `${first}–${last}`;
        const size = context.measureText(text).width;
        const left = Math.max(this.x(begin), GUTTER);
        if (size < room - 3) this.text(text, left + (room - size) / 2, y + height - 3, theme.colour("on-step"));
      }
    }
  }

  /** Marks by weight; of marks that would cover each other, the heaviest. */
  marks(marks, y) {
    const shown = [];
    for (const mark of [...marks].sort((a, b) => weight(b.kind) - weight(a.kind))) {
      if (mark.t < this.window.from || mark.t > this.window.to) continue;
      const x = this.x(mark.t);
      if (shown.some((other) => Math.abs(other - x) < 6)) continue;
      shown.push(x);
      drawMark(this.context, mark.kind, x, y);
    }
  }

  strip(group, y) {
    const columns = Math.max(1, Math.floor((this.width - GUTTER) / 2));
    const shares = sharesOf(group.rows, this.window.from, this.window.to, columns);
    const [ranks, top, height] = [group.rows.length, y + 3, GROUP_LINE - 6];
    this.alive(shares.alive, ranks, top, height, columns);
    for (let column = 0; column < columns; column += 1) {
      const values = STATES.map((state) => (shares[state] ? shares[state][column] : 0));
      const sum = Math.max(ranks, values.reduce((a, b) => a + b, 0));
      let bottom = top + height;
      values.forEach((value, index) => {
        if (!value) return;
        const part = (value / sum) * height;
        this.context.fillStyle = theme.colour(`state-${STATES[index]}`);
        this.context.fillRect(GUTTER + column * 2, bottom - part, 2, part);
        bottom -= part;
      });
    }
    this.marks(heavyMarks(group.rows), y + GROUP_LINE / 2);
  }

  alive(counts, ranks, top, height, columns) {
    this.context.fillStyle = theme.colour("alive");
    for (let column = 0; column < columns; column += 1) {
      const part = Math.min(1, counts[column] / ranks) * height;
      if (part) this.context.fillRect(GUTTER + column * 2, top + height - part, 2, part);
    }
  }
}

Painter.prototype.small = "10px ui-sans-serif, system-ui, sans-serif";

/** The marks that a closed group still shows. */
function heavyMarks(rows) {
  return rows.flatMap((row) =>
    row.processes.flatMap((process) => process.marks.filter((mark) => weight(mark.kind) >= weight("detection"))),
  );
}
