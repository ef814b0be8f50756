// Before the first paint, so that a chosen theme does not flash. The rest is modules/theme.js.
try {
  const chosen = localStorage.getItem("translate.theme");
  if (chosen) document.documentElement.dataset.theme = JSON.parse(chosen);
} catch {
  // No storage, or not ours: the system's theme.
}
