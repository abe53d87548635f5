// The page asks once a second, shows the answer, and says so when there is no answer.

const EVERY_MS = 1000;
const PATIENCE_MS = 15000;

const letters = {};
const stages = new Map();
let tag = null;
let answered = null;
let asking = false;

function startLive() {
  Object.assign(letters, JSON.parse(document.getElementById("data").textContent).letters);
  theme.bind(document.getElementById("theme"));
  // A page that nobody looks at asks for nothing.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  ask();
  document.documentElement.dataset.ready = "yes";
}

async function ask() {
  if (asking) return;
  asking = true;
  try {
    const headers = tag ? { "If-None-Match": tag } : {};
    const answer = await fetch("state.json", { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 200) {
      show(await answer.json());
      tag = answer.headers.get("ETag"); // what could not be shown is asked for again
    } else if (answer.status !== 304) {
      throw new Error(`the server answers ${answer.status}`);
    }
    answered = Date.now() / 1000;
    connected();
  } catch (error) {
    disconnected(error);
  } finally {
    asking = false;
    if (!document.hidden) setTimeout(ask, EVERY_MS);
  }
}

function show(data) {
  const runs = data.runs;
  keyed(document.getElementById("runs"), runs, (state) => state.link, makeCard, fillCard);
  document.getElementById("nothing").hidden = runs.length > 0;
  const ended = document.getElementById("ended");
  ended.hidden = data.ended.length === 0;
  keyed(ended.querySelector(".body"), data.ended, (state) => state.link, makeCard, fillCard);
  showCores(data.cores);
  const more = data.more ? ` and ${data.more} more` : "";
  setText(document.getElementById("badge"), `Live: ${count(runs.length, "run")}${more}`);
  document.title = runs.length ? `${stageWords(runs[0])[0]} ${runs[0].scenario || runs[0].run} · live` : "Live";
  say([...runs, ...data.ended]);
}

/** Say what has changed to who hears the page: the stage of a run, never each second of it. */
function say(states) {
  const news = [];
  for (const state of states) {
    const word = stageWords(state)[1];
    if (stages.get(state.link) !== word) news.push(`${state.scenario || state.run}: ${word}`);
    stages.set(state.link, word);
  }
  if (news.length) setText(document.getElementById("said"), news.join(". "));
}

function showCores(holders) {
  const section = document.getElementById("cores");
  const body = section.querySelector(".body");
  section.hidden = holders.length === 0;
  if (!body.firstChild) body.appendChild(table([["cores"], ["held by"], ["user"], ["since"], ["command"]]));
  keyed(body.firstChild.body, holders, (holder) => `${holder.pid} ${holder.cores}`, () => element("tr"), (row, holder) =>
    fillRow(row, [[holder.cores], [holder.run || `process ${holder.pid}`], [holder.user], [clockTime(holder.since)], [holder.command]]),
  );
}

function connected() {
  const node = document.getElementById("connection");
  setClass(node, "note");
  setText(node, "");
}

function disconnected(error) {
  const node = document.getElementById("connection");
  const shown = answered === null ? "" : ` What stands here is of ${clockTime(answered)}.`;
  setClass(node, "note fail");
  setText(node, `✗ No answer from chaos serve (${error.message}).${shown}`);
}

theme.start();
addEventListener("DOMContentLoaded", startLive);
