// Keys that work everywhere on the page. The list that people read stands in index.html.

/** `actions` by KeyboardEvent.code, with Alt; letters of their own would get in the way of writing. */
export function startShortcuts(dialog, button, actions) {
  button.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside the sheet
  });
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea, select");
    if (event.key === "?" && !writing && !dialog.open) {
      event.preventDefault();
      dialog.showModal();
    }
    const action = event.altKey && !event.ctrlKey && !event.metaKey && actions[event.code];
    if (action) {
      event.preventDefault();
      action();
    }
  });
}
