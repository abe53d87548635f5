// Lines of the run's files, shown below the statement that quotes them.

function bindExcerpts(excerpts) {
  for (const control of document.querySelectorAll("button[data-excerpt]")) {
    const excerpt = excerpts[control.dataset.excerpt];
    if (!excerpt) continue;
    control.addEventListener("click", () => toggleExcerpt(control, excerpt));
  }
}

function toggleExcerpt(control, excerpt) {
  const open = control.getAttribute("aria-expanded") === "true";
  control.setAttribute("aria-expanded", String(!open));
  if (open) {
    control.excerpt.remove();
    return;
  }
  control.excerpt = excerptNode(excerpt);
  control.parentElement.appendChild(control.excerpt);
  control.excerpt.scrollIntoView({ block: "nearest" });
}

function excerptNode(excerpt) {
  const figure = element("figure", "excerpt");
  const source = element("pre", "source");
  excerpt.lines.forEach((text, index) => {
    const number = excerpt.first + index;
    const line = element("span", excerpt.marked.includes(number) ? "marked" : "", text);
    line.dataset.n = number;
    append(source, line, document.createTextNode("\n"));
  });
  return append(figure, element("figcaption", "", excerpt.file), source);
}

/** Open what holds the target of a link, so that the browser can show it. */
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const details = target.closest("details");
  if (details && !details.open) details.open = true;
  if (details) target.scrollIntoView({ block: "center" });
}

/** On paper nobody can click: show the evidence of the statement that decided. */
function openForPrint(printing) {
  const first = document.querySelector(".statement[open] button[data-excerpt]");
  if (printing && first && first.getAttribute("aria-expanded") === "false") first.click();
}
