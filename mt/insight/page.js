// The value of the heat-map cell below the pointer, and the choice between light and dark.
"use strict";

const tip = document.getElementById("tip");
const parsed = new WeakMap();

function heatMap(group) {
  if (!parsed.has(group)) {
    const { values, rows, columns } = group.dataset;
    parsed.set(group, { values: JSON.parse(values), rows: JSON.parse(rows), columns: JSON.parse(columns) });
  }
  return parsed.get(group);
}

document.addEventListener("pointermove", (event) => {
  const group = event.target.closest?.(".cells");
  tip.hidden = !group;
  if (!group) return;
  const { values, rows, columns } = heatMap(group);
  const frame = group.firstElementChild.getBoundingClientRect();
  const place = (offset, length, count) => Math.min(Math.max(Math.floor((offset / length) * count), 0), count - 1);
  const row = place(event.clientY - frame.top, frame.height, rows.length);
  const column = place(event.clientX - frame.left, frame.width, columns.length);
  tip.textContent = `${rows[row]} × ${columns[column] || "value"}: ${values[row][column]}`;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.max(event.clientY - 36, 4)}px`;
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = getComputedStyle(root).getPropertyValue("--paper").trim() !== "#ffffff";
  root.dataset.theme = isDark ? "light" : "dark";
});
