// The part of the run's time that the timeline shows.

class TimeWindow {
  constructor(first, last) {
    const edge = Math.max((last - first) * 0.01, 1e-6);
    this.first = first - edge;
    this.last = last + edge;
    this.least = Math.max((this.last - this.first) / 200000, 1e-5);
    this.fit();
  }

  get length() {
    return this.to - this.from;
  }

  fit() {
    this.from = this.first;
    this.to = this.last;
  }

  show(from, to) {
    const length = Math.min(Math.max(to - from, this.least), this.last - this.first);
    const start = Math.min(Math.max(from, this.first), this.last - length);
    this.from = start;
    this.to = start + length;
  }

  /** Make the window `factor` times as long; the moment `t` keeps its place. */
  zoom(factor, t) {
    const length = Math.min(Math.max(this.length * factor, this.least), this.last - this.first);
    const share = (t - this.from) / this.length;
    this.show(t - share * length, t - share * length + length);
  }

  pan(part) {
    const by = part * this.length;
    this.show(this.from + by, this.to + by);
  }
}

/** Round times for a ruler of some pixels, each with its text. */
function ticks(from, to, pixels) {
  const rough = ((to - from) / Math.max(pixels, 1)) * 90;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const list = [];
  for (let index = Math.ceil(from / step); index * step <= to; index += 1) {
    if (index >= 0) list.push({ t: index * step, text: `${(index * step).toFixed(digits)} s` });
  }
  return list;
}
