// Copies text, also over plain HTTP, where there is no navigator.clipboard.

export async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: try the old way.
    }
  }
  const carrier = document.createElement("textarea");
  carrier.value = text;
  carrier.className = "hidden";
  carrier.setAttribute("aria-hidden", "true");
  const focused = document.activeElement;
  document.body.append(carrier);
  carrier.select();
  const done = document.execCommand("copy");
  carrier.remove();
  focused?.focus();
  return done;
}
