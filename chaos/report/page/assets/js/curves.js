// Loss, global norm and step time over the steps: the run over its fault-free run, and their difference below.

const CURVES = [
  ["loss", "loss"],
  ["norm", "global norm"],
  ["step_seconds", "step time, s"],
];

function curvePlots(curves, parent) {
  if (!curves.steps.length) {
    parent.appendChild(element("p", "note", curves.note || "No step has recorded a value."));
    return;
  }
  parent.appendChild(curveNotes(curves));
  const grid = element("div", "plots");
  parent.appendChild(grid);
  const plots = [];
  for (const [key, name] of CURVES) {
    if (!curves.run[key].some((value) => value !== null)) continue;
    plots.push(new CurvePlot(curves, key, name, grid));
  }
  keepDrawn(plots, grid);
}

function curveNotes(curves) {
  const line = element("p", "facts");
  const difference = curves.first_difference;
  const names = { loss: "loss", norm: "global norm", step_seconds: "step time" };
  const text = difference
    ? `≠ The ${names[difference.curve] || difference.curve} differs from the fault-free run from step ${difference.step} on.`
    : curves.baseline
      ? equalText(curves)
      : "There is no fault-free run to compare with.";
  line.appendChild(element("span", "compared", text));
  for (const fault of curves.faults) line.appendChild(element("span", "fault-key", `▼ step ${fault.step}: ${fault.text}`));
  if (curves.note) line.appendChild(element("span", "", curves.note));
  return line;
}

/** That nothing differs, with what was compared: a run that ended early says nothing about the steps behind. */
function equalText({ compared, steps }) {
  if (!compared) return "? No step has a loss or a norm of both runs, so nothing is compared.";
  const part = compared < steps.length ? ` Only ${compared} of ${count(steps.length, "step")} can be compared.` : "";
  return `= No step differs from the fault-free run in loss or norm.${part}`;
}

/** Numbers for a plot: what is no finite number leaves a gap. */
function plottable(values) {
  return values.map((value) => (typeof value === "number" ? value : null));
}

function gapsOf(steps, values) {
  return steps.filter((_, index) => typeof values[index] === "string");
}

class CurvePlot extends KeyedPlot {
  constructor(curves, key, name, parent) {
    super(curves.steps, `${name} by step`);
    this.steps = curves.steps;
    this.run = plottable(curves.run[key]);
    this.other = curves.baseline ? plottable(curves.baseline[key]) : null;
    this.difference = this.other && this.run.map((value, i) => (value === null || this.other[i] === null ? null : value - this.other[i]));
    this.title(name);
    const strange = gapsOf(curves.steps, curves.run[key]);
    if (strange.length) this.root.appendChild(element("p", "fail", `✗ no finite number at ${count(strange.length, "step")}, first at step ${strange[0]}`));
    parent.appendChild(this.root);
    this.plots = [this.main(curves, key)];
    if (this.difference) this.addDifference(curves);
    this.read(null);
  }

  main(curves, key) {
    const series = [{}];
    const data = [this.steps];
    const points = { show: this.steps.length <= 40, size: 4 };
    if (this.other) {
      series.push({ stroke: () => theme.colour("curve-baseline"), width: 4, points: { show: false } });
      data.push(this.other);
    }
    series.push({ stroke: () => theme.colour("curve-run"), width: 1.25, points });
    data.push(this.run);
    return new uPlot(this.options(series, 170, plotLines(curves, key)), data, this.root);
  }

  addDifference(curves) {
    const known = this.difference.filter((value) => value !== null);
    const text = known.every((value) => value === 0) ? `difference: 0 at ${count(known.length, "step")}` : "difference";
    this.root.appendChild(element("p", "under", known.length ? text : "no step has both values"));
    if (!known.some((value) => value !== 0)) return;
    const series = [{}, { stroke: () => theme.colour("curve-difference"), width: 1.25, points: { show: this.steps.length <= 40, size: 4 } }];
    const plot = new uPlot(this.options(series, 90, plotLines(curves, "")), [this.steps, this.difference], this.root);
    this.plots.push(plot);
  }

  options(series, height, draw) {
    const axis = plotAxis();
    const whole = (_, values) => values.map((value) => (Number.isInteger(value) ? `${value}` : ""));
    return {
      width: Math.max(200, this.root.clientWidth || 380),
      height,
      series,
      legend: { show: false },
      scales: { x: { time: false } },
      axes: [{ ...axis, size: 24, values: whole, space: 40 }, { ...axis, size: 54, space: 18, values: (_, values) => values.map(short) }],
      cursor: { sync: { key: "steps" }, y: false, drag: { x: true, y: false } },
      hooks: { draw: [draw], setCursor: [(plot) => this.read(plot.cursor.idx)] },
    };
  }

  read(index) {
    if (index === null || index === undefined) {
      this.readout.textContent = this.other ? "run ━ over fault-free run ▬" : "run";
      return;
    }
    const parts = [`step ${this.steps[index]}: ${precise(this.run[index])}`];
    if (this.other) parts.push(`fault-free ${precise(this.other[index])}`);
    this.readout.textContent = parts.join(" · ");
  }
}
