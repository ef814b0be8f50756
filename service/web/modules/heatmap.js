// Draws a matrix with labels of its rows and columns.

import { svgElement } from "./dom.js";

const CELLS = { small: 26, large: 36, few: 16 }; // pixels of a cell's side; large with few columns
const LETTER = 7.6; // average width of a letter in pixels
const SLANT = -55; // degrees by which column labels are rotated

/**
 * @param {string[]} columns
 * @param {string[]} rows
 * @param {number[][]} weights  [row][column], 0 to 1
 * @param {(row: number, column: number) => void} onPoint
 * @returns {SVGElement}
 */
export function heatmap(columns, rows, weights, onPoint) {
  const side = columns.length > CELLS.few ? CELLS.small : CELLS.large;
  const left = 16 + LETTER * longest(rows);
  const rise = LETTER * longest(columns) * Math.sin((Math.PI * -SLANT) / 180) + 22;
  const lean = LETTER * longest(columns) * Math.cos((Math.PI * -SLANT) / 180);
  const width = Math.ceil(left + side * columns.length + lean + 8);
  const height = Math.ceil(rise + side * rows.length + 4);
  const picture = svgElement("svg", { class: "heatmap", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  columns.forEach((label, column) => {
    const x = left + side * (column + 0.5);
    const turn = `rotate(${SLANT} ${x} ${rise - 8})`;
    picture.append(svgElement("text", { class: `column column-${column}`, x, y: rise - 8, transform: turn }, label));
  });
  rows.forEach((label, row) => {
    const y = rise + side * (row + 0.5);
    picture.append(svgElement("text", { class: `row row-${row}`, x: left - 10, y, "text-anchor": "end", dy: "0.35em" }, label));
    columns.forEach((_, column) => {
      const weight = Math.min(Math.max(weights[row]?.[column] ?? 0, 0), 1);
      const place = { x: left + side * column + 1, y: rise + side * row + 1, width: side - 2, height: side - 2, rx: 4 };
      const shade = Math.sqrt(weight).toFixed(3); // so that 0.1 is visible
      picture.append(svgElement("rect", { ...place, class: "ground" }));
      picture.append(svgElement("rect", { ...place, class: "cell", "fill-opacity": shade, "data-at": `${row} ${column}` }));
    });
  });
  picture.addEventListener("pointerover", (event) => {
    const at = event.target.dataset?.at?.split(" ").map(Number);
    for (const label of picture.querySelectorAll(".marked")) label.classList.remove("marked");
    if (!at) return;
    picture.querySelector(`.row-${at[0]}`).classList.add("marked");
    picture.querySelector(`.column-${at[1]}`).classList.add("marked");
    onPoint(...at);
  });
  return picture;
}

function longest(labels) {
  return Math.max(2, ...labels.map((label) => label.length));
}
