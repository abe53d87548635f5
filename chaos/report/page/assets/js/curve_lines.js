// Lines across a plot: the steps of the faults, and the first step that differs from the fault-free run.

function plotLines(curves, name) {
  return (plot) => {
    const { ctx } = plot;
    const ratio = devicePixelRatio || 1;
    const { left, top, width, height } = plot.bbox;
    const line = (step, colour, dash, text, row) => {
      const x = Math.round(plot.valToPos(step, "x", true)) + 0.5;
      if (x < left || x > left + width) return;
      ctx.strokeStyle = colour;
      ctx.fillStyle = colour;
      ctx.lineWidth = ratio;
      ctx.setLineDash(dash.map((part) => part * ratio));
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.font = `${10 * ratio}px system-ui, sans-serif`;
      const right = x + ctx.measureText(text).width + 8 * ratio > left + width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(text, x + (right ? -4 : 4) * ratio, top + (10 + 12 * row) * ratio);
    };
    ctx.save();
    for (const fault of curves.faults) line(fault.step, theme.colour("mark-fault"), [4, 3], name ? "▼" : "", 0);
    const difference = curves.first_difference;
    if (difference) {
      const text = name === difference.curve ? `first difference: step ${difference.step}` : "";
      line(difference.step, theme.colour("text"), [], text, 1);
    }
    ctx.restore();
  };
}
