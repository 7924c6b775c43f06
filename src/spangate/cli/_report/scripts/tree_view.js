"use strict";
// The rows of a tree that are in sight. However long the run is, the page holds some screens of rows.

const OVERSCAN = 12;
const MAX_PRINTED = 2000;

class TreeView {
  // `onChoose` is told of the row that was chosen, and whether that was asked for (Enter, a click) or came by moving.
  constructor(tree, run, name, onChoose) {
    Object.assign(this, { tree, run, onChoose, active: 0, chosen: -1, drawn: new Map() });
    this.timeLine = new TimeLine(tree);
    this.maker = new TreeRows(tree, this.timeLine, run);
    this.list = el("div", { role: "tree", class: "tree", tabindex: "0", "aria-label": `Spans of ${name}` });
    this.scroller = el("div", { class: "scroller" }, this.timeLine.bands, this.list);
    this.element = el("div", { class: "frame" }, this.timeLine.axis(), this.scroller);
    this.scroller.addEventListener("scroll", () => this.soon(), { passive: true });
    this.list.addEventListener("keydown", (event) => pressed(this, event));
    this.list.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.soon()).observe(this.scroller);
    this.refresh();
  }

  // Works out which rows there are, after something was opened, closed or searched.
  refresh() {
    this.rows = this.tree.visible();
    this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 30;
    if (!this.rows.includes(this.active)) this.active = this.nearest(this.active);
    this.list.style.height = `${Math.max(1, this.rows.length) * this.height}px`;
    this.timeLine.draw();
    this.draw();
  }

  nearest(row) {
    for (let above = row; above >= 0; above = this.tree.parent[above]) if (this.rows.includes(above)) return above;
    return this.rows[0] ?? -1;
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
      if (height !== this.height) this.refresh();
      else this.draw();
    });
  }

  // The part of the list that is drawn: what is in sight with some rows around it, when printed all of it.
  span() {
    if (this.isPrinting) return [0, Math.min(this.rows.length, MAX_PRINTED)];
    const first = Math.floor(this.scroller.scrollTop / this.height) - OVERSCAN;
    const sight = Math.ceil((this.scroller.clientHeight || innerHeight) / this.height);
    return [Math.max(0, first), Math.min(this.rows.length, first + sight + 2 * OVERSCAN)];
  }

  draw() {
    const [first, last] = this.span();
    const kept = this.drawn;
    this.drawn = new Map();
    for (let place = first; place < last; place++) this.keep(kept, this.rows[place], place);
    const at = this.rows.indexOf(this.active);
    if (at >= 0 && !this.drawn.has(this.active)) this.keep(kept, this.active, at); // a screen reader stands on it
    const elements = [...this.drawn.values()].map((one) => one.element);
    if (
      elements.length !== this.list.childElementCount ||
      elements.some((one, place) => one !== this.list.children[place])
    ) {
      this.list.replaceChildren(...elements);
    }
    if (at >= 0) this.list.setAttribute("aria-activedescendant", this.maker.id(this.active));
    else this.list.removeAttribute("aria-activedescendant");
  }

  // Takes a row as it was drawn before if nothing about it has changed, so that it stays the same element.
  keep(kept, row, place) {
    const { tree, timeLine } = this;
    const told = { isActive: row === this.active, isChosen: row === this.chosen };
    const state = [told.isActive, told.isChosen, tree.isExpanded(row), tree.kept !== null, ...timeLine.window].join();
    const before = kept.get(row);
    const element = before?.state === state ? before.element : this.maker.make(row, told);
    element.style.top = `${place * this.height}px`;
    this.drawn.set(row, { state, element });
  }

  click(event) {
    const found = event.target.closest(".row");
    if (!found) return;
    const row = Number(found.dataset.row);
    if (event.target.closest(".twisty") && this.tree.hasChildren(row)) {
      this.active = row;
      this.toggle(row);
    } else {
      this.choose(row, true);
    }
  }

  toggle(row, open = !this.tree.isExpanded(row)) {
    if (this.tree.kept) return;
    this.tree.isOpen[row] = open ? 1 : 0;
    this.refresh();
  }

  choose(row, isAsked) {
    this.active = row;
    this.chosen = row;
    this.onChoose(row, isAsked);
    this.show(row);
  }

  move(row) {
    this.active = row;
    if (this.chosen >= 0) {
      this.chosen = row;
      this.onChoose(row, false);
    }
    this.show(row);
  }

  // Brings a row into sight; all above it are opened.
  show(row) {
    if (!this.rows.includes(row)) {
      this.tree.kept = null;
      this.tree.reveal(row);
      this.refresh();
    }
    const top = this.rows.indexOf(row) * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.scroller.scrollTop = top + this.height - clientHeight;
    this.draw();
  }

  openSiblings() {
    const above = this.tree.parent[this.active];
    for (const row of this.rows) if (this.tree.parent[row] === above) this.tree.isOpen[row] = 1;
    this.refresh();
  }

  jump(step) {
    const row = this.tree.next(this.active, step);
    if (row >= 0) this.choose(row, true);
  }

  zoom(row) {
    this.timeLine.zoom(row);
    this.refresh();
    announce(this.timeLine.isZoomed ? `Time line of ${this.tree.name(row)}` : "Time line of the whole run");
  }

  print(isPrinting) {
    this.isPrinting = isPrinting;
    const left = this.rows.length - MAX_PRINTED;
    if (isPrinting && left > 0)
      this.element.append(el("p", { class: "unprinted" }, `${counted(left, "more span")} not printed`));
    else this.element.querySelector(".unprinted")?.remove();
    this.element.classList.toggle("printing", isPrinting);
    this.draw();
  }
}
