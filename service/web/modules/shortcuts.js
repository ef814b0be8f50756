// Keyboard shortcuts. Their list for users is in index.html.

/**
 * Runs `actions` by KeyboardEvent.code with Alt; letters alone would interfere with typing. Where Alt and a letter type
 * another character, as on a Mac (Option and S is ß), the character is typed.
 */
export function startShortcuts(dialog, button, actions) {
  button.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // outside of the dialog's content
  });
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea, select");
    if (event.key === "?" && !writing && !dialog.open) {
      event.preventDefault();
      dialog.showModal();
    }
    const action = event.altKey && !event.ctrlKey && !event.metaKey && actions[event.code];
    if (action && `Key${event.key.toUpperCase()}` === event.code) {
      event.preventDefault();
      action();
    }
  });
}
