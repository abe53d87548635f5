// Marks across the plot of a phase: change points, flips, and the signs of runs that did not pass.

const SIGN_COLOURS = { fail: "fail", unknown: "unknown", interrupted: "dim" };

function phaseMarks(cell, phase) {
  return (plot) => {
    const { ctx } = plot;
    const ratio = devicePixelRatio || 1;
    const { left, top, width, height } = plot.bbox;
    const place = (index) => Math.round(plot.valToPos(index, "x", true)) + 0.5;
    const inside = (x) => x >= left && x <= left + width;
    const line = (x, colour, dash) => {
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = ratio;
      ctx.setLineDash(dash.map((part) => part * ratio));
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
    };
    ctx.save();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    cell.runs.forEach((run, index) => {
      const x = place(index);
      if (run.word === "pass" || !inside(x)) return;
      ctx.fillStyle = theme.colour(SIGN_COLOURS[run.word]);
      ctx.fillText(run.symbol, x, top + height - 3 * ratio);
    });
    for (const flip of cell.flips) {
      const x = place(flip.at);
      if (!inside(x)) continue;
      line(x, theme.colour("dim"), [2, 4]);
      ctx.fillText("⇄", x, top + height - 14 * ratio);
    }
    for (const point of phase.points) {
      const x = place(point.at - 0.5);
      if (!inside(x)) continue;
      line(x, theme.colour("mark-fault"), [4, 3]);
      const right = x + 110 * ratio > left + width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(`▲ ${point.date}${change(point)}`, x + (right ? -4 : 4) * ratio, top + 10 * ratio);
      ctx.textAlign = "center";
    }
    ctx.restore();
  };
}

function change(point) {
  if (!point.before) return "";
  const share = Math.round((point.now / point.before - 1) * 100);
  return ` ${share < 0 ? "−" : "+"}${Math.abs(share)} %`;
}
