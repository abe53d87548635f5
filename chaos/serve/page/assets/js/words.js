// Words and signs of the live page: no state is shown by its colour alone.

// The words of a stage come with the state of the run; here is its sign.
const STAGES = {
  preparing: "…",
  baseline: "◌",
  train: "▶",
  between: "⏸",
  resume: "↻",
  judging: "⚖",
  ended: "■",
  "broken off": "✗",
  "not followed": "?",
};

const VERDICTS = { pass: "✓", fail: "✗", unknown: "?" };

const FAULTS = { planned: "·", armed: "◎", acting: "⚡", landed: "✓", missed: "✗", undone: "↩" };

const PHASES = { ended: "✓", now: "▶", later: "·", missing: "–" };

/** The sign of a stage, or of the verdict that ended it, and its words. */
function stageWords(state) {
  return [VERDICTS[state.verdict] || STAGES[state.stage] || "?", state.stage_words];
}

/** A length of time that runs: 1:02:03, 2:03 or 3 s. */
function running(value) {
  if (value === null || value === undefined) return "–";
  const whole = Math.floor(value);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (hours) return `${hours}:${two(minutes)}:${two(rest)}`;
  return minutes ? `${minutes}:${two(rest)}` : `${rest} s`;
}

function two(number) {
  return String(number).padStart(2, "0");
}

/** A loss, also where it is no finite number. */
function lossText(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
}

function clockTime(epoch) {
  return new Date(epoch * 1000).toLocaleTimeString("en-GB");
}
