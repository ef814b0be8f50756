// Light or dark theme: the system's, unless the user chooses the other one.

import { load, save } from "./storage.js";

export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  function show(chosen) {
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    button.setAttribute("aria-pressed", String(dark()));
  }

  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    const chosen = (next === "dark") === system.matches ? null : next; // back to the system's: follow it again
    save("theme", chosen);
    show(chosen);
  });
  system.addEventListener("change", () => show(load("theme", null)));
  show(load("theme", null));
}
