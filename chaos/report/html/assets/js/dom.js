// Elements, and numbers in words. Text is only ever set as text.

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function append(parent, ...children) {
  for (const child of children) parent.appendChild(child);
  return parent;
}

function button(text, label, act) {
  const node = element("button", "quiet", text);
  node.type = "button";
  if (label) node.setAttribute("aria-label", label);
  node.addEventListener("click", act);
  return node;
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 600) return `${value.toFixed(0)} s`;
  if (size >= 10) return `${value.toFixed(1)} s`;
  if (size >= 1) return `${value.toFixed(2)} s`;
  return size === 0 ? "0 s" : `${Number((value * 1000).toPrecision(3))} ms`;
}

/** A time of the run, to the millisecond: marks are told apart by it. */
function moment(value) {
  return `${value.toFixed(3)} s`;
}

/** Whole numbers as ranges: 0-3, 7. */
function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts[parts.length - 1];
    if (last && last[1] + 1 === number) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(", ");
}

function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
