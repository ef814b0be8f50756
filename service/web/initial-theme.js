// Applies a chosen theme before the first paint, so that it does not flash. The button is in modules/theme.js.
try {
  const chosen = localStorage.getItem("translate.theme");
  if (chosen) document.documentElement.dataset.theme = JSON.parse(chosen);
} catch {
  // Without storage, or with another value in it, the system's theme is used.
}
