// The page: its data, and each section in turn.

function startPage() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const body = (id) => document.querySelector(`#${id} .body`);
  theme.bind(document.getElementById("theme"));
  bindExcerpts(data.excerpts);
  bindCopy();
  new Timeline(data.timeline, body("timeline"));
  waterfalls(data.recoveries, body("recovery"));
  curvePlots(data.curves, body("curves"));
  checkpointMap(data.checkpoints, body("checkpoints"));
  theme.listeners.push(openForPrint);
  addEventListener("hashchange", openTarget);
  openTarget();
  document.documentElement.dataset.ready = "yes";
}

function bindCopy() {
  for (const control of document.querySelectorAll("button[data-copy]")) {
    control.addEventListener("click", async () => {
      const source = document.getElementById(control.dataset.copy);
      getSelection().selectAllChildren(source);
      try {
        await navigator.clipboard.writeText(source.textContent);
        control.textContent = "Copied";
      } catch {
        control.textContent = "Selected"; // the reader copies it
      }
    });
  }
}

theme.start();
addEventListener("DOMContentLoaded", startPage);
