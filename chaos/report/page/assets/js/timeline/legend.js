// The key of the timeline: colours of states and forms of marks, of those that occur.

function legendOf(states, kinds) {
  const list = element("ul", "legend");
  for (const state of states) {
    const swatch = element("i", `swatch state-${state}`);
    list.appendChild(append(element("li"), swatch, document.createTextNode(STATE_NAMES[state])));
  }
  for (const kind of kinds) {
    const canvas = element("canvas", "glyph");
    const draw = () => {
      const context = sized(canvas, 14, 14);
      if (kind === "planned") drawPlanned(context, 7, 7);
      else drawMark(context, kind, 7, 7);
    };
    theme.listeners.push(draw);
    draw();
    list.appendChild(append(element("li"), canvas, document.createTextNode(MARK_NAMES[kind] || kind)));
  }
  return list;
}
