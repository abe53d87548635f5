// One tooltip for the page: some lines beside the pointer.

const tooltip = {
  node: null,

  show(lines, x, y) {
    if (!tooltip.node) {
      tooltip.node = element("div", "tooltip");
      tooltip.node.setAttribute("role", "status");
      document.body.appendChild(tooltip.node);
    }
    const node = tooltip.node;
    node.replaceChildren(...lines.map((line, index) => element("div", index ? "" : "head", line)));
    node.hidden = false;
    const left = Math.min(x + 14, innerWidth - node.offsetWidth - 8);
    const below = y + 16 + node.offsetHeight < innerHeight;
    node.style.left = `${Math.max(8, left)}px`;
    node.style.top = `${below ? y + 16 : Math.max(8, y - node.offsetHeight - 12)}px`;
  },

  hide() {
    if (tooltip.node) tooltip.node.hidden = true;
  },
};
