// The ranks of a run: a strip of states, or groups when there are many, with a table of what is known of each.

const MOST_SINGLE = 64;

function stateClass(name) {
  return Object.hasOwn(letters, name) ? `is-${name.replaceAll(" ", "-")}` : "";
}

function letter(name) {
  return Object.hasOwn(letters, name) ? letters[name] : "?";
}

function ranksPart() {
  const node = part("Ranks");
  node.strip = element("ol", "strip");
  node.groups = element("ul", "groups");
  node.legend = element("ul", "legend");
  node.table = table([["rank"], ["node"], ["group"], ["state"], ["step", "number"], ["where"], ["loss", "number"], ["process"], ["end"]]);
  node.more = append(element("details", "more"), element("summary", "", "Ranks as a table"), append(element("div", "scroll"), node.table));
  return append(node, node.strip, node.groups, node.legend, node.more);
}

function fillRanks(node, state) {
  const single = state.ranks <= MOST_SINGLE;
  node.hidden = state.ranks === 0;
  node.strip.hidden = !single;
  node.groups.hidden = single;
  keyed(node.strip, single ? state.rank : [], (rank) => rank.rank, makeRank, fillRank);
  keyed(node.groups, single ? [] : state.groups, (group) => group.name, makeGroup, fillGroup);
  keyed(node.legend, Object.entries(state.states), ([name]) => name, makeKey, fillKey);
  node.more.hidden = state.rank.length === 0;
  const some = state.rank.length < state.ranks ? ` (${state.rank.length} of ${state.ranks}: those that stand out)` : "";
  setText(node.more.querySelector("summary"), `Ranks as a table${some}`);
  keyed(node.table.body, state.rank, (rank) => rank.rank, () => element("tr"), fillRankRow);
}

function makeRank() {
  const node = element("li");
  node.letter = element("b");
  node.number = element("span");
  return append(node, node.letter, node.number);
}

function fillRank(node, rank) {
  setClass(node, stateClass(rank.state));
  setText(node.letter, letter(rank.state));
  setText(node.number, String(rank.rank));
  const about = `rank ${rank.rank}: ${[rank.state, rank.detail, rank.step === null ? "" : `step ${rank.step}`, rank.end ? rank.end.how : ""].filter(Boolean).join(", ")}`;
  if (node.title !== about) {
    node.title = about;
    node.setAttribute("aria-label", about);
  }
}

function fillRankRow(row, rank) {
  const planned = rank.end && { true: ", planned", false: ", unplanned", null: "" }[rank.end.planned];
  fillRow(row, [
    [String(rank.rank)],
    [String(rank.node)],
    [rank.group === null ? "–" : String(rank.group)],
    [`${letter(rank.state)} ${rank.state}`, "word"],
    [rank.step === null ? "–" : String(rank.step), "number"],
    [rank.detail],
    [lossText(rank.loss), "number"],
    [`${rank.pid === null ? "–" : rank.pid}${rank.processes > 1 ? ` (the ${rank.processes}. of this rank)` : ""}`],
    [rank.end ? `${rank.end.how}${planned}` : ""],
  ]);
}

function makeGroup() {
  const node = element("li");
  node.words = element("span");
  node.bar = element("div", "bar");
  node.bar.setAttribute("aria-hidden", "true");
  return append(node, node.words, node.bar);
}

function fillGroup(node, group) {
  const entries = Object.entries(group.states);
  setText(node.words, `${group.name}: ${entries.map(([name, number]) => `${number} ${letter(name)} ${name}`).join(" · ")}`);
  keyed(node.bar, entries, ([name]) => name, () => element("i"), (bar, [name, number]) => {
    setClass(bar, stateClass(name));
    bar.style.width = `${(number / group.count) * 100}%`;
  });
}

function makeKey([name]) {
  const node = element("li");
  node.words = document.createTextNode("");
  const sign = element("i", `letter ${stateClass(name)}`, letter(name));
  return append(node, sign, node.words);
}

function fillKey(node, [name, number]) {
  setText(node.words, `${number} ${name}`);
}
