// How the timeline is moved: pointer, wheel and keyboard.

const KEYS = "← → move, + − zoom, 0 fits all, ↑ ↓ choose a line, Enter opens or closes its group, n p next and previous event";

function controlByPointer(timeline, surface, hit) {
  let drag = null;
  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    drag = { x: event.clientX, from: timeline.window.from, to: timeline.window.to, moved: false };
    surface.setPointerCapture(event.pointerId);
  });
  surface.addEventListener("pointermove", (event) => {
    if (drag && Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
    if (drag && drag.moved) {
      const by = (event.clientX - drag.x) / timeline.painter.scale;
      timeline.window.show(drag.from - by, drag.to - by);
      tooltip.hide();
      timeline.draw();
      return;
    }
    const box = surface.getBoundingClientRect();
    const lines = hit(event.clientX - box.left, event.clientY - box.top);
    if (lines) tooltip.show(lines, event.clientX, event.clientY);
    else tooltip.hide();
  });
  const end = () => {
    drag = null;
  };
  surface.addEventListener("pointerup", end);
  surface.addEventListener("pointercancel", end);
  surface.addEventListener("pointerleave", () => tooltip.hide());
  surface.addEventListener("dblclick", (event) => {
    timeline.window.zoom(0.4, timeline.timeOf(event));
    timeline.draw();
  });
}

/** Ctrl and the wheel zoom, Shift and the wheel or a sideways wheel move; the wheel alone scrolls the page. */
function controlByWheel(timeline, surface) {
  surface.addEventListener(
    "wheel",
    (event) => {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) timeline.window.zoom(1.0025 ** event.deltaY, timeline.timeOf(event));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.window.pan(sideways / 1200);
      else return;
      event.preventDefault();
      tooltip.hide();
      timeline.draw();
    },
    { passive: false },
  );
}

function controlByKeyboard(timeline, root) {
  const middle = () => timeline.cursor ?? (timeline.window.from + timeline.window.to) / 2;
  const acts = {
    ArrowLeft: () => timeline.window.pan(-0.1),
    ArrowRight: () => timeline.window.pan(0.1),
    "+": () => timeline.window.zoom(0.6, middle()),
    "=": () => timeline.window.zoom(0.6, middle()),
    "-": () => timeline.window.zoom(1 / 0.6, middle()),
    0: () => timeline.window.fit(),
    Home: () => timeline.window.fit(),
    ArrowUp: () => timeline.choose(-1),
    ArrowDown: () => timeline.choose(1),
    Enter: () => timeline.toggleCurrent(),
    n: () => timeline.goToEvent(1),
    p: () => timeline.goToEvent(-1),
    Escape: () => timeline.dropCursor(),
  };
  root.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (!act || event.target !== root || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
    timeline.draw();
  });
}
