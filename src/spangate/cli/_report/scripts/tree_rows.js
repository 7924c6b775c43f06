"use strict";
// A row of the tree as an element: what is seen of a span, and, for whoever cannot see it, in words.

const MAX_INDENT = 24;
const FLAGS = { fail: "✕", warn: "!", not_evaluable: "?" };
const FLAG_WORDS = { fail: "fails", warn: "warning", not_evaluable: "not evaluable" };
const SIGNS = { same: "", changed: "~", added: "+", dropped: "−" };
const MILD = new Set(["cancelled", "control_flow"]);

function unseen(text) {
  return el("span", { class: "unseen" }, text);
}

// A mark that a screen reader need not spell: what it means is said in words.
function sign(kind, text) {
  return el("span", { class: kind, "aria-hidden": "true" }, text);
}

class TreeRows {
  constructor(tree, timeLine, run) {
    Object.assign(this, { tree, timeLine, run });
  }

  id(row) {
    return `${this.run}-row-${row}`;
  }

  make(row, { isActive, isChosen }) {
    const { tree } = this;
    const made = el("div", {
      role: "treeitem",
      id: this.id(row),
      class: `row role-${tree.role(row)} ${tree.standing(row)}${isActive ? " active" : ""}`,
      "data-row": row,
      "aria-level": tree.data.depth[row] + 1,
      "aria-posinset": tree.kept ? null : tree.place[row],
      "aria-setsize": tree.kept ? null : tree.siblings[tree.parent[row] < 0 ? tree.size : tree.parent[row]],
      "aria-selected": String(isChosen),
      "aria-expanded": tree.hasChildren(row) ? String(tree.isExpanded(row)) : null,
    });
    const took = tree.side(row).took[row];
    const figures = el(
      "span",
      { class: took === null ? "figures open" : "figures" },
      unseen(took === null ? ", still " : ", took "),
      duration(took),
    );
    made.append(this.label(row), figures, unseen(`, ${this.more(row)}`), this.timeLine.lane(row));
    return made;
  }

  label(row) {
    const { tree } = this;
    const depth = tree.data.depth[row];
    const twisty = tree.hasChildren(row) ? (tree.isExpanded(row) ? "▾" : "▸") : "";
    const made = el("span", { class: "label" });
    if (tree.data.standing) made.append(sign("standing", SIGNS[tree.standing(row)]));
    made.append(sign("twisty", twisty));
    if (depth > MAX_INDENT) made.append(sign("tokens", `[${depth}]`));
    for (const level of this.levels(row))
      made.append(sign(`flag ${level === "not_evaluable" ? "gap" : level}`, FLAGS[level]));
    made.append(
      el("span", { class: "role" }, `${tree.role(row)} `),
      el("span", { class: "name" }, bdi(tree.name(row))),
    );
    for (const [kind, text] of this.remarks(row)) made.append(unseen(", "), el("span", { class: kind }, text));
    made.style.paddingLeft = `calc(${Math.min(depth, MAX_INDENT)} * var(--indent))`;
    return made;
  }

  // What stands behind the name: what became of the span, what it used, what is not in the page.
  remarks(row) {
    const { tree } = this;
    const outcome = tree.outcome(row);
    const folded = tree.data.folded[row];
    return [
      [
        `outcome${MILD.has(outcome) ? " mild" : ""}`,
        outcome === "ok" || tree.side(row).took[row] === null ? "" : outcome.replace("_", " "),
      ],
      ["tokens", this.tokens(row)],
      ["below", folded ? `${folded.toLocaleString("en")} folded` : ""],
    ].filter(([, text]) => text);
  }

  levels(row) {
    const levels = new Set((this.tree.marks.get(row) ?? []).map((mark) => mark.level));
    return Object.keys(FLAGS).filter((level) => levels.has(level));
  }

  tokens(row) {
    const side = this.tree.side(row);
    const said = [
      [side.input[row], "in"],
      [side.output[row], "out"],
    ].filter(([number]) => number !== null);
    const text = said.map(([number, way]) => `${number.toLocaleString("en")} ${way}`).join(", ");
    return text && this.tree.role(row) !== "generation" ? `sum ${text}` : text;
  }

  // What is seen of a row by its place and its signs, in words for whoever hears it.
  more(row) {
    const { tree } = this;
    const marks = (tree.marks.get(row) ?? []).map((mark) => `${FLAG_WORDS[mark.level] ?? ""}: ${mark.code}`);
    const standing = tree.standing(row) === "same" ? "" : tree.standing(row);
    return [`begins at ${duration(tree.side(row).start[row] ?? 0)}`, standing, ...marks].filter(Boolean).join(", ");
  }
}
