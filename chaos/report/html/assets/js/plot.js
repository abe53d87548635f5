// Plots of uPlot that the keyboard reads as well: what all of them have in common.

/** An axis in the colours of the theme. */
function plotAxis() {
  const grid = { stroke: () => theme.colour("line-weak"), width: 1 };
  return { stroke: () => theme.colour("dim"), grid, ticks: { show: false }, font: "10px system-ui, sans-serif" };
}

/** Draw the plots anew when their place or the theme changes. */
function keepDrawn(plots, place) {
  new ResizeObserver(() => plots.forEach((plot) => plot.resize())).observe(place);
  theme.listeners.push(() => {
    for (const plot of plots) {
      plot.resize();
      plot.redraw();
    }
  });
}

/** A figure with one or more plots over the same values of x, which rise. `read(index)` of a subclass says a value. */
class KeyedPlot {
  constructor(xs, label, keys = "Left and right choose a step, + and − zoom, 0 shows all.") {
    this.xs = xs;
    this.plots = [];
    this.root = element("figure", "plot");
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-label", `${label}. ${keys}`);
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  title(name) {
    this.readout = element("output");
    append(this.root, append(element("figcaption"), element("b", "", name), this.readout));
  }

  key(event) {
    const [plot] = this.plots;
    const { min, max } = plot.scales.x;
    const zoom = (factor) => {
      const at = plot.cursor.idx === null || plot.cursor.idx === undefined ? (min + max) / 2 : this.xs[plot.cursor.idx];
      this.range(at - (at - min) * factor, at + (max - at) * factor);
    };
    const acts = {
      ArrowLeft: () => this.choose(-1),
      ArrowRight: () => this.choose(1),
      "+": () => zoom(0.6),
      "=": () => zoom(0.6),
      "-": () => zoom(1 / 0.6),
      0: () => this.range(this.xs[0], this.xs[this.xs.length - 1]),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  choose(by) {
    const [plot] = this.plots;
    const index = Math.min(this.xs.length - 1, Math.max(0, (plot.cursor.idx ?? -1) + by));
    const left = plot.valToPos(this.xs[index], "x");
    for (const each of this.plots) each.setCursor({ left, top: 10 });
    this.read(index);
  }

  range(min, max) {
    const first = Math.max(this.xs[0], min);
    const last = Math.min(this.xs[this.xs.length - 1], max);
    if (last - first < 1) return;
    for (const plot of this.plots) plot.setScale("x", { min: first, max: last });
  }

  resize() {
    for (const plot of this.plots) plot.setSize({ width: Math.max(200, this.root.clientWidth), height: plot.height });
  }

  redraw() {
    for (const plot of this.plots) plot.redraw(false, true);
  }
}

function precise(value) {
  return value === null ? "–" : `${Number(value.toPrecision(8))}`;
}

function short(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(0) : `${Number(value.toPrecision(4))}`;
}
