// Rows of the timeline: ranks in groups, which can be closed, each line with its place.

const LANE = 20;
const GROUP_LINE = 24;

/** Groups of ranks by `node` or by `group`, the replica group. */
function groupsOf(rows, key) {
  const names = { node: "node", group: "replica group" };
  const groups = new Map();
  for (const row of rows) {
    const number = row[key];
    if (!groups.has(number)) {
      const label = number === null ? `no ${names[key]}` : `${names[key]} ${number}`;
      groups.set(number, { label, rows: [], open: true });
    }
    groups.get(number).rows.push(row);
  }
  return [...groups.values()];
}

/** Which lane each process of a row stands in: those that overlap stand below each other. */
function lanesOf(row) {
  if (row.lanes) return row.lanes;
  const ends = [];
  row.lanes = row.processes.map((process) => {
    let lane = ends.findIndex((end) => end <= process.begin);
    if (lane < 0) lane = ends.length;
    ends[lane] = process.end;
    return lane;
  });
  row.laneCount = Math.max(1, ends.length);
  return row.lanes;
}

/** Every line that is to be seen, from top to bottom, with its place in pixels. */
function linesOf(groups) {
  const lines = [];
  let y = 0;
  for (const group of groups) {
    const title = { group, row: null, y, height: GROUP_LINE };
    lines.push(title);
    y += title.height;
    for (const row of group.open ? group.rows : []) {
      lanesOf(row);
      const line = { group, row, y, height: row.laneCount * LANE + 2 };
      lines.push(line);
      y += line.height;
    }
  }
  return { lines, height: y };
}

/** The index of the first item whose end, by `end`, lies after `t`; items are in order of time. */
function firstAfter(items, t, end) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end(items[middle]) > t) high = middle;
    else low = middle + 1;
  }
  return low;
}
