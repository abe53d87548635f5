// Words and signs of the live page: no state is told by its colour alone.

const STAGES = {
  preparing: ["…", "preparing"],
  baseline: ["◌", "fault-free run first"],
  train: ["▶", "training"],
  between: ["⏸", "between two launches"],
  resume: ["↻", "resumed training"],
  judging: ["⚖", "judging"],
  ended: ["■", "ended"],
  "broken off": ["✗", "broken off: its harness has gone"],
  "not followed": ["?", "not followed"],
};

const VERDICTS = { pass: "✓", fail: "✗", unknown: "?" };

const FAULTS = { planned: "·", armed: "◎", acting: "⚡", landed: "✓", missed: "✗", undone: "↩" };

const PHASES = { ended: "✓", now: "▶", later: "·", missing: "–" };

/** The words of a stage, or of the verdict that ended it. */
function stageWords(state) {
  if (state.verdict && VERDICTS[state.verdict]) return [VERDICTS[state.verdict], state.verdict];
  return STAGES[state.stage] || ["?", state.stage];
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
