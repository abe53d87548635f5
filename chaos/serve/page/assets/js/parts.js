// Parts that are filled again and again. What has not changed is not touched, so that a reader keeps place and focus.

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setClass(node, name) {
  if (node.className !== name) node.className = name;
}

/** Make the children of a node those of a list, each known by its key. Returns nothing that is not needed. */
function keyed(parent, items, key, make, fill) {
  const known = parent.keyed || (parent.keyed = new Map());
  const wanted = new Set(items.map(key));
  for (const [name, node] of known) {
    if (wanted.has(name)) continue;
    node.remove();
    known.delete(name);
  }
  items.forEach((item, index) => {
    const name = key(item);
    if (!known.has(name)) known.set(name, make(item));
    const node = known.get(name);
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] || null);
    fill(node, item);
  });
}

/** Cells of a row: texts, each with its class. */
function fillRow(row, cells) {
  while (row.children.length < cells.length) row.appendChild(element(row.children.length ? "td" : "th"));
  row.children[0].scope = "row";
  cells.forEach(([text, name], index) => {
    setText(row.children[index], text);
    setClass(row.children[index], name || "");
  });
}

/** A table with a body that is filled later. */
function table(columns) {
  const node = element("table", "table");
  const heads = columns.map(([name, className]) => {
    const head = element("th", className || "", name);
    head.scope = "col";
    return head;
  });
  node.body = element("tbody");
  return append(node, append(element("thead"), append(element("tr"), ...heads)), node.body);
}

/** A line of text over a bar. */
function measure() {
  const node = element("div", "measure");
  node.words = element("span");
  node.bar = element("i");
  node.track = append(element("span", "track"), node.bar);
  return append(node, node.words, node.track);
}

function fillMeasure(node, text, value, limit) {
  setText(node.words, text);
  const share = limit > 0 && value !== null ? Math.min(1, Math.max(0, value / limit)) : 0;
  node.bar.style.width = `${(share * 100).toFixed(1)}%`;
  node.track.hidden = !(limit > 0) || value === null;
  setClass(node.track, limit > 0 && value > limit ? "track over" : "track");
}

/** A part with a heading. */
function part(title, ...children) {
  return append(element("div", "part"), element("h3", "", title), ...children);
}
