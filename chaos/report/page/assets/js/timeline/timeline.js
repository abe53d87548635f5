// The timeline of a run: its parts put together, and what is chosen in it.

/** With more rows than this, groups begin closed, but for those of a rank that was hit. */
const MANY_ROWS = 48;

class Timeline {
  constructor(data, parent) {
    this.data = data;
    this.window = new TimeWindow(...extent(data));
    this.head = headLines(data);
    this.events = eventsOf(data);
    this.cursor = null;
    this.current = -1;
    this.pending = false;
    const nodes = new Set(data.rows.map((row) => row.node));
    this.build(parent);
    this.groupBy(nodes.size > 1 ? "node" : "group");
    theme.listeners.push((printing) => this.print(printing));
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  build(parent) {
    this.root = element("div", "timeline");
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-label", `Timeline. ${KEYS}`);
    this.headCanvas = element("canvas", "head");
    this.scroller = element("div", "scroller");
    this.canvas = element("canvas", "rows");
    this.spacer = element("div", "spacer");
    this.labels = element("div", "labels");
    append(this.scroller, this.canvas, this.spacer, this.labels);
    append(this.root, this.headCanvas, this.scroller);
    this.said = element("p", "hidden");
    this.said.setAttribute("aria-live", "polite");
    append(parent, this.tools(), this.root, this.legend(), this.said);
    if (this.data.planned.length) parent.appendChild(plannedTable(this.data.planned, (fault) => this.show(fault)));
    parent.appendChild(eventTable(this.events, (event) => this.show(event)));
    controlByPointer(this, this.canvas, (x, y) => this.hit(x, y));
    controlByPointer(this, this.headCanvas, (x, y) => headAt(this.data, this.head, this.painter, x, y));
    for (const surface of [this.canvas, this.headCanvas]) controlByWheel(this, surface);
    controlByKeyboard(this, this.root);
    this.scroller.addEventListener("scroll", () => this.draw());
  }

  tools() {
    const bar = element("div", "tools");
    const select = element("select");
    select.setAttribute("aria-label", "Group ranks by");
    for (const [value, text] of [["node", "by node"], ["group", "by replica group"]]) {
      const option = element("option", "", text);
      option.value = value;
      select.appendChild(option);
    }
    select.addEventListener("change", () => this.groupBy(select.value));
    this.select = select;
    const change = (act) => () => {
      act();
      this.draw();
    };
    append(
      bar,
      select,
      button("close all", "Close all groups", change(() => this.openAll(false))),
      button("open all", "Open all groups", change(() => this.openAll(true))),
      button("−", "Zoom out", change(() => this.window.zoom(2, (this.window.from + this.window.to) / 2))),
      button("+", "Zoom in", change(() => this.window.zoom(0.5, (this.window.from + this.window.to) / 2))),
      button("fit", "Show the whole run", change(() => this.window.fit())),
    );
    if (this.data.phases.length) bar.appendChild(button("recovery", "Show the recovery", change(() => this.showRecovery())));
    bar.appendChild(element("span", "hint", "drag moves · Ctrl+wheel zooms · keys: ← → + − 0 ↑ ↓ Enter n p"));
    return bar;
  }

  legend() {
    const states = new Set(["step"]);
    const kinds = new Set(this.events.map((event) => event.kind));
    for (const row of this.data.rows) {
      for (const process of row.processes) for (const span of process.spans) states.add(span.kind);
    }
    const glyphs = [...MARKS].reverse().filter((kind) => kinds.has(kind));
    if (this.data.planned.length) glyphs.unshift("planned");
    return legendOf(STATES.filter((state) => states.has(state)), glyphs);
  }

  groupBy(key) {
    this.select.value = key;
    this.groups = groupsOf(this.data.rows, key);
    const hit = new Set(this.data.planned.flatMap((fault) => fault.ranks));
    if (this.data.rows.length > MANY_ROWS) {
      let left = MANY_ROWS;
      for (const group of this.groups) {
        group.open = left > 0 && group.rows.some((row) => hit.has(row.rank));
        if (group.open) left -= group.rows.length;
      }
    }
    this.current = -1;
    this.labels.replaceChildren(...this.groups.map((group) => this.labelOf(group)));
    this.layOut();
    const first = this.groups.find((group) => group.open);
    if (this.data.rows.length > MANY_ROWS && first) this.scroller.scrollTop = first.y - 2 * GROUP_LINE;
  }

  labelOf(group) {
    const node = element("button", "group-label");
    node.type = "button";
    node.tabIndex = this.groups.length > 12 ? -1 : 0;
    node.addEventListener("click", () => this.toggle(group));
    group.button = node;
    return node;
  }

  layOut() {
    const { lines, height } = linesOf(this.groups);
    this.lines = lines;
    this.height = height;
    for (const line of lines) {
      if (line.row) continue;
      line.group.y = line.y;
      const { button: label } = line.group;
      label.textContent = `${line.group.open ? "▾" : "▸"} ${line.group.label} (${line.group.rows.length})`;
      label.setAttribute("aria-expanded", String(line.group.open));
      label.style.top = `${line.y}px`;
    }
    this.draw();
  }

  toggle(group) {
    group.open = !group.open;
    this.say(`${group.label} ${group.open ? "opened" : "closed"}`);
    this.layOut();
    this.current = this.lines.findIndex((line) => line.group === group && !line.row);
  }

  toggleCurrent() {
    if (this.current >= 0) this.toggle(this.lines[this.current].group);
  }

  openAll(open) {
    for (const group of this.groups) group.open = open;
    this.current = -1;
    this.layOut();
  }

  choose(by) {
    this.current = Math.min(this.lines.length - 1, Math.max(0, this.current + by));
    const line = this.lines[this.current];
    if (!line) return;
    const { scrollTop, clientHeight } = this.scroller;
    if (line.y < scrollTop) this.scroller.scrollTop = line.y;
    else if (line.y + line.height > scrollTop + clientHeight) this.scroller.scrollTop = line.y + line.height - clientHeight;
    this.say(line.row ? line.row.label : `${line.group.label}, ${line.group.open ? "open" : "closed"}`);
  }

  /** Go to the next or previous event: of the chosen line, or of all. */
  goToEvent(direction) {
    const line = this.lines[this.current];
    const rows = line && (line.row ? [line.row] : line.group.rows);
    const events = rows ? this.events.filter((event) => rows.includes(event.row)) : this.events;
    const at = this.cursor ?? (direction > 0 ? -Infinity : Infinity);
    const later = (event) => event.t > at + 1e-9;
    const next = direction > 0 ? events.find(later) : events.filter((event) => event.t < at - 1e-9).pop();
    if (next) this.show(next);
  }

  /** Bring a moment into view, with the tooltip of its event. */
  show(event) {
    this.cursor = event.t;
    const { window } = this;
    if (event.t < window.from || event.t > window.to) window.pan((event.t - (window.from + window.to) / 2) / window.length);
    this.paint();
    const box = this.headCanvas.getBoundingClientRect();
    if (box.top < 0 || box.bottom > innerHeight) this.root.scrollIntoView({ block: "nearest" });
    const lines = event.owner ? markLines(event.owner, event) : [`planned: ${event.text}`, event.seen || "not seen"];
    const { left, bottom } = this.headCanvas.getBoundingClientRect();
    tooltip.show(lines, left + this.painter.x(event.t), bottom);
    this.say(lines.join(", "));
  }

  showRecovery() {
    const { phases } = this.data;
    const begin = Math.min(...phases.map((phase) => phase.begin));
    const end = Math.max(...phases.map((phase) => phase.end));
    this.window.show(begin - (end - begin) * 0.15, end + (end - begin) * 0.15);
  }

  dropCursor() {
    this.cursor = null;
    tooltip.hide();
  }

  say(text) {
    this.said.textContent = text;
  }

  timeOf(event) {
    return timeAt(this.painter, event.clientX - this.canvas.getBoundingClientRect().left);
  }

  hit(x, y) {
    const line = this.lineAt(y + this.scroller.scrollTop);
    if (!line || x < GUTTER) return line && line.row ? rowTitle(line.row) : null;
    return line.row
      ? rowAt(line.row, this.painter, x, y + this.scroller.scrollTop - line.y)
      : groupAt(line.group, this.painter, x);
  }

  lineAt(y) {
    return this.lines.find((line) => y >= line.y && y < line.y + line.height);
  }

  print(printing) {
    this.root.classList.toggle("whole", printing);
    this.paint();
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  paint() {
    const began = performance.now();
    const width = this.root.clientWidth;
    if (!width) return;
    const headHeight = RULER + this.head.length * HEAD_LINE + 2;
    const room = this.root.classList.contains("whole") ? 900 : Math.max(180, Math.min(innerHeight * 0.62, 640));
    const height = Math.max(GROUP_LINE, Math.min(this.height, room));
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${Math.max(0, this.height - height)}px`;
    const head = new Painter(sized(this.headCanvas, width, headHeight), width, this.window);
    paintHead(head, this.data, this.head, headHeight);
    this.paintCursor(head, headHeight);
    this.painter = new Painter(sized(this.canvas, width, height), width, this.window);
    this.paintRows(height);
    const { from, to } = this.window;
    Object.assign(this.root.dataset, { from, to, lines: this.lines.length, ms: (performance.now() - began).toFixed(1) });
  }

  paintRows(height) {
    const { painter, scroller } = this;
    const { context } = painter;
    const top = scroller.scrollTop;
    paintBack(painter, this.data, height);
    const start = Math.max(0, firstAfter(this.lines, top, (line) => line.y + line.height));
    for (let index = start; index < this.lines.length && this.lines[index].y < top + height; index += 1) {
      const line = this.lines[index];
      const y = line.y - top;
      if (index === this.current) {
        context.fillStyle = theme.colour("chosen");
        context.fillRect(0, y, painter.width, line.height);
      }
      if (line.row) this.paintRow(line, y);
      else this.paintGroup(line, y);
    }
    paintFaultLines(painter, this.data, height);
    this.paintCursor(painter, height);
  }

  paintRow(line, y) {
    const { painter } = this;
    painter.context.font = "11px ui-sans-serif, system-ui, sans-serif";
    painter.text(line.row.label, 22, y + 15, theme.colour("text"));
    painter.row(line.row, y);
  }

  paintGroup(line, y) {
    const { painter } = this;
    painter.context.fillStyle = theme.colour("line");
    painter.context.fillRect(0, y, painter.width, 1);
    if (!line.group.open) painter.strip(line.group, y);
  }

  paintCursor(painter, height) {
    if (this.cursor === null) return;
    painter.context.fillStyle = theme.colour("accent");
    painter.context.fillRect(Math.round(painter.x(this.cursor)), 0, 1, height);
  }
}

function rowTitle(row) {
  const group = row.group === null ? "" : ` · replica group ${row.group}`;
  const number = row.processes.length;
  return [row.label, `node ${row.node}${group}`, `${number} process${number === 1 ? "" : "es"}`];
}

/** The first and the last moment of the timeline. */
function extent(timeline) {
  let [first, last] = [Infinity, -Infinity];
  const reach = (begin, end) => {
    first = Math.min(first, begin);
    last = Math.max(last, end);
  };
  for (const row of timeline.rows) for (const process of row.processes) reach(process.begin, process.end);
  for (const mark of timeline.harness) reach(mark.t, mark.t);
  for (const phase of timeline.phases) reach(phase.begin, phase.end);
  if (first > last) return [0, 1]; // nothing was recorded
  return [first, last > first ? last : first + 1];
}
