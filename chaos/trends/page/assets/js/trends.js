// The page of trends: each cell is drawn when it is opened for the first time.

function startPage() {
  const data = JSON.parse(document.getElementById("data").textContent);
  theme.bind(document.getElementById("theme"));
  for (const details of document.querySelectorAll("details[data-cell]")) {
    const number = Number(details.dataset.cell);
    let drawn = false;
    const draw = () => {
      if (drawn || !details.open) return;
      drawn = true;
      drawCell(data.cells[number], number, details.querySelector(".body"));
    };
    details.addEventListener("toggle", draw);
    draw();
  }
  document.documentElement.dataset.ready = "yes";
}

theme.start();
addEventListener("DOMContentLoaded", startPage);
