// Percentiles of the last runs, at each run.

const WINDOW = 15;

/** The value that a share of sorted values does not exceed, between two neighbours where it lies there. */
function percentile(sorted, share) {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** p50, p95 and both ends of the middle half of the last runs; null where a run has no time. */
function rolling(times) {
  const curves = { p50: [], p95: [], low: [], high: [] };
  const recent = [];
  for (const time of times) {
    if (time !== null) {
      recent.push(time);
      if (recent.length > WINDOW) recent.shift();
    }
    const sorted = time === null ? null : [...recent].sort((a, b) => a - b);
    for (const [name, share] of [["p50", 0.5], ["p95", 0.95], ["low", 0.25], ["high", 0.75]]) {
      curves[name].push(sorted && percentile(sorted, share));
    }
  }
  return curves;
}
