// The checkpoint map: which rank saved which step, what became of the file, and who loaded it.

const CELL_SIGNS = { saved: "✓", damaged: "✗", lost: "∅", "cut off": "✂", failing: "✗", missing: "–" };

/** With more ranks than this, replica groups begin closed. */
const MANY_RANKS = 48;

function checkpointMap(map, parent) {
  if (!map.cells.length) {
    parent.appendChild(element("p", "note", map.note || "No rank has saved a checkpoint."));
    return;
  }
  if (map.note) parent.appendChild(element("p", "note", map.note));
  const byPlace = new Map();
  for (const cell of map.cells) {
    const key = `${cell.rank}/${cell.step}`;
    if (!byPlace.has(key)) byPlace.set(key, []);
    byPlace.get(key).push(cell);
  }
  const table = element("table", "map");
  const head = append(element("tr"), heading("", "col"), ...map.steps.map((step) => heading(`step ${step}`, "col")));
  table.appendChild(append(element("thead"), head));
  for (const group of checkpointGroups(map)) table.appendChild(groupBody(group, map, byPlace));
  moveByArrows(table);
  parent.append(append(element("div", "map-frame"), table), cellKey());
}

/** The replica groups with their ranks in the map; ranks of no group come last. */
function checkpointGroups(map) {
  const known = new Set(map.ranks);
  const grouped = new Set(map.groups.flat());
  const groups = map.groups.map((ranks, index) => ({
    label: `replica group ${index}`,
    ranks: ranks.filter((rank) => known.has(rank)),
  }));
  groups.push({ label: "no replica group", ranks: map.ranks.filter((rank) => !grouped.has(rank)) });
  return groups.filter((group) => group.ranks.length);
}

function groupBody(group, map, byPlace) {
  const body = element("tbody");
  const title = element("tr", "group");
  const label = button("", "", () => toggle());
  const cells = (step) => group.ranks.flatMap((rank) => byPlace.get(`${rank}/${step}`) || []);
  title.appendChild(append(heading("", "row"), label));
  for (const step of map.steps) title.appendChild(element("td", "sum", summary(cells(step))));
  body.appendChild(title);
  const toggle = (open = label.getAttribute("aria-expanded") !== "true") => {
    label.setAttribute("aria-expanded", String(open));
    label.textContent = `${open ? "▾" : "▸"} ${group.label} (${group.ranks.length})`;
    while (body.children.length > 1) body.lastChild.remove();
    if (!open) return;
    for (const rank of group.ranks) body.appendChild(rankRow(rank, map.steps, byPlace));
  };
  toggle(map.ranks.length <= MANY_RANKS);
  return body;
}

function summary(cells) {
  const counts = new Map();
  for (const cell of cells) counts.set(cell.state, (counts.get(cell.state) || 0) + 1);
  return [...counts].map(([state, number]) => `${number} ${state}`).join(", ");
}

function rankRow(rank, steps, byPlace) {
  const row = append(element("tr"), heading(`rank ${rank}`, "row"));
  for (const step of steps) {
    const place = element("td");
    for (const cell of byPlace.get(`${rank}/${step}`) || []) place.appendChild(cellNode(cell));
    row.appendChild(place);
  }
  return row;
}

function cellNode(cell) {
  const node = element("span", `cell ${cell.state.replace(" ", "-")}${cell.planned ? " planned" : ""}`);
  node.tabIndex = -1;
  node.setAttribute("role", "img");
  const tried = cell.tried_by.length ? ` ⇢ ${ranges(cell.tried_by)}` : "";
  const loaded = (cell.loaded_by.length ? ` → ${ranges(cell.loaded_by)}` : "") + tried;
  node.textContent = `${CELL_SIGNS[cell.state] || "?"} ${cell.state === "saved" ? (cell.kind === "periodic" ? "" : cell.kind) : cell.state}${loaded}`.trimEnd();
  const lines = [cell.text, cell.file];
  if (cell.loaded_by.length) lines.push(`loaded by ${cell.loaded_by.length > 1 ? "ranks" : "rank"} ${ranges(cell.loaded_by)}`);
  if (cell.tried_by.length) lines.push(`${ranges(cell.tried_by)} began to load it, and did not end`);
  if (cell.planned) lines.push("the plan expects this save");
  node.setAttribute("aria-label", lines.join(", "));
  node.addEventListener("pointermove", (event) => tooltip.show(lines, event.clientX, event.clientY));
  node.addEventListener("pointerleave", () => tooltip.hide());
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    tooltip.show(lines, box.left, box.bottom);
  });
  node.addEventListener("blur", () => tooltip.hide());
  return node;
}

/** One stop for the tab key; the arrows go from cell to cell. */
function moveByArrows(table) {
  const first = table.querySelector(".cell");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !event.target.classList.contains("cell")) return;
    const cells = [...table.querySelectorAll(".cell")];
    const next = cells[cells.indexOf(event.target) + by];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

function cellKey() {
  const list = element("ul", "legend");
  for (const [state, sign] of Object.entries(CELL_SIGNS)) {
    list.appendChild(append(element("li"), element("span", `cell ${state.replace(" ", "-")}`, sign), document.createTextNode(state)));
  }
  list.appendChild(element("li", "", "→ ranks that loaded it"));
  list.appendChild(element("li", "", "⇢ ranks that began to load it"));
  return append(list, append(element("li"), element("span", "cell planned", "✓"), document.createTextNode("planned")));
}
