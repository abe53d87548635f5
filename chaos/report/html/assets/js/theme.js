// Light and dark: as the system says, or as the reader chose. Paper is always light.

const theme = {
  choice: "auto",
  printing: false,
  listeners: [],
  colours: null,

  /** A colour of the style sheet by its name, for canvases. */
  colour(name) {
    if (!theme.colours) theme.colours = new Map();
    if (!theme.colours.has(name)) {
      const value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      theme.colours.set(name, value);
    }
    return theme.colours.get(name);
  },

  apply() {
    const dark = theme.choice === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.choice === "dark";
    document.documentElement.dataset.theme = dark && !theme.printing ? "dark" : "light";
    theme.colours = null;
    for (const listener of theme.listeners) listener(theme.printing);
  },

  print(printing) {
    if (theme.printing === printing) return;
    theme.printing = printing;
    document.documentElement.classList.toggle("printing", printing);
    theme.apply();
  },

  start() {
    try {
      theme.choice = localStorage.getItem("chaos-theme") || "auto";
    } catch {
      theme.choice = "auto"; // a browser that keeps nothing for files
    }
    theme.apply();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme.apply);
    matchMedia("print").addEventListener("change", (event) => theme.print(event.matches));
    addEventListener("beforeprint", () => theme.print(true));
    addEventListener("afterprint", () => theme.print(false));
  },

  bind(control) {
    const names = { auto: "as the system", light: "light", dark: "dark" };
    const signs = { auto: "◐", light: "○", dark: "●" };
    const show = () => {
      control.textContent = signs[theme.choice];
      control.setAttribute("aria-label", `Colours: ${names[theme.choice]}`);
      control.title = control.getAttribute("aria-label");
    };
    control.addEventListener("click", () => {
      theme.choice = { auto: "light", light: "dark", dark: "auto" }[theme.choice];
      try {
        localStorage.setItem("chaos-theme", theme.choice);
      } catch {
        // the choice holds for this visit
      }
      show();
      theme.apply();
    });
    show();
  },
};
