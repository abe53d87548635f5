// One phase over the runs of a cell: each passing run, with p50, p95 and the middle half of the last runs.

class PhasePlot extends KeyedPlot {
  constructor(cell, number, phase, parent) {
    super(cell.runs.map((_, index) => index), `${phase.phase} by run`, "Left and right choose a run, + and − zoom, 0 shows all, Enter opens the report of the run.");
    this.cell = cell;
    this.phase = phase;
    this.title(phase.phase);
    this.link = element("a", "report");
    this.link.hidden = true;
    this.root.querySelector("figcaption").appendChild(this.link);
    parent.appendChild(this.root);
    this.plots = [this.draw(number)];
    for (const point of phase.points) {
      const text = `▲ ${point.date}: ${seconds(point.before)} → ${seconds(point.now)}${change(point)}; ${point.changes}`;
      this.root.appendChild(element("p", "under", text));
    }
    this.root.addEventListener("pointerleave", () => tooltip.hide());
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === this.root && !this.link.hidden) this.link.click();
    });
    this.read(null);
  }

  draw(number) {
    const curves = rolling(this.phase.times);
    const line = (colour, width, dash) => ({ stroke: () => theme.colour(colour), width, dash, spanGaps: true, points: { show: false } });
    const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
    const dots = { stroke: () => theme.colour("dim"), paths: () => null, points: { show: true, size: 3.5, width: 0, fill: () => theme.colour("dim") } };
    const axis = plotAxis();
    const dates = (_, values) => values.map((value) => (Number.isInteger(value) && this.cell.runs[value] ? this.cell.runs[value].started.slice(0, 10) : ""));
    const options = {
      width: Math.max(200, this.root.clientWidth || 380),
      height: 190,
      series: [{}, edge, edge, dots, line("mark-detection", 1, [5, 4]), line("curve-run", 2)],
      bands: [{ series: [2, 1], fill: () => theme.colour("band-odd-strong") }],
      legend: { show: false },
      scales: { x: { time: false, range: (_, min, max) => (max > min ? [min, max] : [min - 1, max + 1]) } },
      axes: [{ ...axis, size: 24, values: dates, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, { ...axis, size: 54, space: 18, values: (_, values) => values.map(short) }],
      cursor: { sync: { key: `cell-${number}` }, y: false, drag: { x: true, y: false } },
      hooks: { draw: [phaseMarks(this.cell, this.phase)], setCursor: [(plot) => this.moved(plot)] },
    };
    const plot = new uPlot(options, [this.xs, curves.low, curves.high, this.phase.times, curves.p95, curves.p50], this.root);
    plot.over.addEventListener("click", () => this.read(plot.cursor.idx));
    this.curves = curves;
    return plot;
  }

  moved(plot) {
    this.read(plot.cursor.idx);
    if (plot.cursor.event && plot.cursor.idx !== null && plot.over.matches(":hover")) {
      const box = plot.over.getBoundingClientRect();
      tooltip.show(this.lines(plot.cursor.idx), box.left + plot.cursor.left, box.top + Math.max(0, plot.cursor.top));
    }
  }

  lines(index) {
    const run = this.cell.runs[index];
    const time = this.phase.times[index];
    const parts = [run.run, `${run.started.slice(0, 16).replace("T", " ")} · ${run.symbol} ${run.word}`];
    if (time !== null) parts.push(`${this.phase.phase} ${seconds(time)}; of the last ${WINDOW} runs p50 ${seconds(this.curves.p50[index])}, p95 ${seconds(this.curves.p95[index])}`);
    if (run.headline) parts.push(run.headline);
    return parts;
  }

  read(index) {
    if (index === null || index === undefined) {
      this.readout.textContent = `p50 ${seconds(this.phase.p50)} · p95 ${seconds(this.phase.p95)}`;
      return;
    }
    const run = this.cell.runs[index];
    const time = this.phase.times[index];
    this.readout.textContent = `${run.started.slice(0, 10)} ${run.symbol} ${time === null ? run.word : seconds(time)}`;
    this.link.hidden = run.report === null;
    if (run.report !== null) {
      this.link.href = run.report;
      this.link.textContent = "report";
      this.link.setAttribute("aria-label", `report of ${run.run}`);
    }
  }
}
