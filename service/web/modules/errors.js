// The banner of an error, with a button where a repetition may help.

import { ServiceError, ConnectionError } from "./api.js";
import { element } from "./dom.js";
import { localized } from "./messages.js";

export class ErrorBanner {
  /** @param {HTMLElement} place  role=alert */
  constructor(place, { onRetry, onKey }) {
    Object.assign(this, { place, onRetry, onKey });
  }

  clear() {
    this.place.hidden = true;
    this.place.replaceChildren();
  }

  /** Shows an automatic repetition. Screen readers get an unchanged text, without the seconds. */
  waiting(error, seconds) {
    const why = error instanceof ServiceError && error.status === 429 ? "error.too-many" : "error.busy";
    const text = localized(seconds === null ? "error.no-network" : why);
    if (this.place.firstChild?.textContent !== text) this.tell(text);
    if (seconds === null) return;
    const clock = this.place.querySelector(".clock") ?? element("span", { class: "clock", "aria-hidden": "true" });
    clock.textContent = localized("error.seconds", { seconds });
    this.place.append(clock);
  }

  failed(error) {
    if (error instanceof ServiceError && error.status === 403) this.onKey();
    const again = error instanceof ConnectionError || (error instanceof ServiceError && (error.status >= 500 || error.status === 429));
    const known = error instanceof ServiceError || error instanceof ConnectionError;
    this.tell(known ? error.message : localized("error.page"));
    if (!known) console.error(error);
    if (again || !known) this.place.append(element("button", { type: "button", onclick: this.onRetry }, localized("again")));
  }

  tell(message) {
    this.place.hidden = false;
    this.place.replaceChildren(element("span", {}, message));
  }
}
