// The buttons under the text. At most one has its panel open.

export class Tools {
  #opening = new Map();

  constructor(bar) {
    this.buttons = [...bar.querySelectorAll("button")];
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.#show(button.getAttribute("aria-expanded") === "true" ? null : button));
    }
    document.addEventListener("keydown", (event) => this.#escape(event));
  }

  /** Calls a function whenever the panel opens. */
  onOpen(name, callback) {
    this.#opening.set(name, callback);
  }

  open(name) {
    const button = this.#button(name);
    this.#show(button);
    button.scrollIntoView({ block: "nearest" });
  }

  isOpen(name) {
    return this.#button(name).getAttribute("aria-expanded") === "true";
  }

  #button(name) {
    return this.buttons.find((button) => button.getAttribute("aria-controls") === name);
  }

  #show(wanted) {
    for (const button of this.buttons) {
      const name = button.getAttribute("aria-controls");
      const open = button === wanted;
      button.setAttribute("aria-expanded", String(open));
      document.getElementById(name).hidden = !open;
      if (open) this.#opening.get(name)?.();
    }
  }

  #escape(event) {
    const open = this.buttons.find((button) => button.getAttribute("aria-expanded") === "true");
    if (event.key !== "Escape" || event.defaultPrevented || !open) return;
    if (document.querySelector("dialog[open], [popover]:popover-open")) return;
    if (!document.getElementById(open.getAttribute("aria-controls")).contains(document.activeElement)) return;
    this.#show(null);
    open.focus();
  }
}
