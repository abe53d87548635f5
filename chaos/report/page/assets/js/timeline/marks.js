// Marks of the timeline: a form for each kind, so that colour is not needed to tell them apart.

/** Kinds by weight: the heavier one is drawn where two meet. */
const MARKS = ["train", "sdk", "launch", "heal", "detection", "exit", "error", "fault"];

const MARK_NAMES = {
  train: "milestone",
  sdk: "SDK",
  launch: "launch",
  heal: "healed",
  detection: "detection",
  exit: "exit",
  error: "error",
  fault: "fault",
};

function weight(kind) {
  return MARKS.indexOf(kind);
}

function markColour(kind) {
  return theme.colour(MARKS.includes(kind) ? `mark-${kind}` : "mark-train");
}

const FORMS = {
  fault: (c, x, y, r) => polygon(c, [[x - r, y - r], [x + r, y - r], [x, y + r]]),
  exit: (c, x, y, r) => cross(c, x, y, r * 0.8),
  error: (c, x, y, r) => exclamation(c, x, y, r),
  detection: (c, x, y, r) => polygon(c, [[x, y - r], [x + r, y], [x, y + r], [x - r, y]]),
  heal: (c, x, y, r) => plus(c, x, y, r),
  launch: (c, x, y, r) => polygon(c, [[x - r * 0.7, y - r], [x + r, y], [x - r * 0.7, y + r]]),
  sdk: (c, x, y, r) => circle(c, x, y, r * 0.6),
  train: (c, x, y, r) => circle(c, x, y, r * 0.45),
};

function drawMark(context, kind, x, y, radius = 5) {
  const colour = markColour(kind);
  context.fillStyle = colour;
  context.strokeStyle = theme.colour("bg");
  context.lineWidth = 3;
  context.lineJoin = "round";
  (FORMS[kind] || FORMS.train)(context, x, y, radius);
}

function drawPlanned(context, x, y, radius = 5) {
  context.strokeStyle = markColour("fault");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - radius, y - radius);
  context.lineTo(x + radius, y - radius);
  context.lineTo(x, y + radius);
  context.closePath();
  context.stroke();
}

function polygon(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.stroke();
  context.fill();
}

function circle(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.stroke();
  context.fill();
}

function strokes(context, lines) {
  for (const [width, colour] of [[4.5, theme.colour("bg")], [2, context.fillStyle]]) {
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.beginPath();
    for (const [x1, y1, x2, y2] of lines) {
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
    }
    context.stroke();
  }
}

function cross(context, x, y, r) {
  strokes(context, [[x - r, y - r, x + r, y + r], [x - r, y + r, x + r, y - r]]);
}

function plus(context, x, y, r) {
  strokes(context, [[x - r, y, x + r, y], [x, y - r, x, y + r]]);
}

function exclamation(context, x, y, r) {
  strokes(context, [[x, y - r, x, y + r * 0.25], [x, y + r * 0.85, x, y + r]]);
}
