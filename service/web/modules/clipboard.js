// Copying, also where the page came over plain HTTP from another machine and there is no navigator.clipboard.

export async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the old way may be.
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
