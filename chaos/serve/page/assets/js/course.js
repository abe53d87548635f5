// What a run does now: its steps, what it waits for, the loss, the recovery against its budget, faults and ranks.

function coursePart() {
  const node = element("div", "columns");
  node.steps = measure();
  node.waiting = measure();
  node.maker = element("p", "note");
  node.loss = element("p", "loss");
  node.recovery = recoveryPart();
  node.faults = faultsPart();
  node.ranks = ranksPart();
  const left = append(element("div"), part("Course", node.steps, node.waiting, node.maker, node.loss), node.recovery);
  return append(node, left, append(element("div"), node.faults, node.ranks));
}

function fillCourse(node, state) {
  const known = state.step !== null && state.steps !== null;
  fillMeasure(node.steps, known ? `step ${state.step} of ${state.steps}` : "no step yet", state.step, state.steps);
  setClass(node.steps.words, "big");
  fillWaiting(node.waiting, state.waiting);
  fillMaker(node.maker, state.baseline_maker);
  fillLoss(node.loss, state.loss);
  fillRecovery(node.recovery, state.recovery);
  fillFaults(node.faults, state.faults);
  fillRanks(node.ranks, state);
}

function fillWaiting(node, waiting) {
  node.hidden = waiting === null;
  if (waiting === null) return;
  const missing = waiting.missing ? ` · ${waiting.missing}` : "";
  const times = `${seconds(waiting.elapsed)} of at most ${seconds(waiting.limit)}, ${seconds(waiting.left)} left`;
  fillMeasure(node, `waits until ${waiting.goal}: ${times}${missing}`, waiting.elapsed, waiting.limit);
}

/** Who makes the fault-free run that is waited for. */
function fillMaker(node, maker) {
  node.hidden = maker === null;
  if (maker === null) return;
  const run = maker.run ? `: ${maker.run}` : "";
  setText(node, `made by process ${maker.pid} of ${maker.user}, for ${running(maker.elapsed)}${run}`);
}

function fillLoss(node, loss) {
  node.hidden = loss === null;
  if (loss === null) return;
  const baseline = loss.baseline === null ? "no fault-free loss of that step" : `fault-free ${lossText(loss.baseline)}`;
  const sign = loss.difference === null ? "" : loss.difference === 0 ? " · = the same" : ` · ≠ difference ${lossText(loss.difference)}`;
  setText(node, `loss of step ${loss.step}, rank ${loss.rank}${loss.by_log ? " by its log" : ""}: ${lossText(loss.loss)} · ${baseline}${sign}`);
}

function recoveryPart() {
  const node = part("Recovery");
  node.total = measure();
  node.table = table([["phase"], ["state"], ["took", "number"], ["budget", "number"], ["used", "number"]]);
  return append(node, node.total, append(element("div", "scroll"), node.table));
}

function fillRecovery(node, recovery) {
  node.hidden = recovery === null;
  if (recovery === null) return;
  const which = recovery.of > 1 ? `, ${recovery.number} of ${recovery.of}` : "";
  setText(node.firstChild, `Recovery: ${recovery.mechanism}${which}${recovery.ended ? ", ended" : ""}`);
  const budget = recovery.budget === null ? "" : ` of ${seconds(recovery.budget)}`;
  const over = recovery.over ? ", ✗ over its budget" : "";
  const phase = recovery.phase ? `${recovery.phase}, ` : "";
  fillMeasure(node.total, `${phase}in all ${seconds(recovery.elapsed)}${budget}${over}`, recovery.elapsed, recovery.budget);
  keyed(node.table.body, recovery.phases, (item) => item.name, () => element("tr"), fillPhase);
}

function fillPhase(row, phase) {
  setClass(row, phase.state === "now" ? "now" : "");
  const percent = phase.seconds === null || !phase.budget ? null : (phase.seconds / phase.budget) * 100;
  const used = percent === null ? "–" : percent > 0 && percent < 1 ? "<1 %" : `${percent.toFixed(0)} %`;
  fillRow(row, [
    [phase.name],
    [`${PHASES[phase.state] || "?"} ${phase.state}`],
    [seconds(phase.seconds), "number"],
    [seconds(phase.budget), "number"],
    [phase.over ? `✗ ${used}, over` : used, phase.over ? "number fail" : "number"],
  ]);
}

function faultsPart() {
  const node = part("Faults");
  node.none = element("p", "note", "No fault is planned.");
  node.table = table([["fault"], ["state"], ["at"], ["where and when"], ["for", "number"]]);
  return append(node, node.none, append(element("div", "scroll"), node.table));
}

function fillFaults(node, faults) {
  node.none.hidden = faults.length > 0;
  node.table.hidden = faults.length === 0;
  keyed(node.table.body, faults, (fault) => fault.id, () => element("tr"), fillFault);
}

function fillFault(row, fault) {
  const ranks = fault.role || (fault.ranks.length ? `rank${fault.ranks.length > 1 ? "s" : ""} ${ranges(fault.ranks)}` : "");
  const landed = fault.step === null ? "" : `step ${fault.step}${fault.phase ? ` ${fault.phase}` : ""}`;
  const place = landed || (fault.waits_for ? `waits for ${fault.waits_for}` : "");
  fillRow(row, [
    [fault.id === fault.kind ? fault.kind : `${fault.id}: ${fault.kind}`],
    [`${FAULTS[fault.state] || "?"} ${fault.state}`, fault.state === "missed" ? "word fail" : "word"],
    [ranks],
    [[place, fault.text].filter(Boolean).join(" · ")],
    [fault.elapsed === null ? "" : running(fault.elapsed), "number"],
  ]);
}
