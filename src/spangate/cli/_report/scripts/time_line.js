"use strict";
// The time line beside the tree: where each span lies, the scale above, and the holes that nothing accounts for.

const LEAST_BAND = 0.01; // narrower ones would be lines, and say nothing

class TimeLine {
  constructor(tree) {
    this.tree = tree;
    this.window = [0, tree.length]; // when it begins, and how long it is
    this.ticks = el("span", { class: "ticks" });
    this.bands = el("div", { class: "bands", "aria-hidden": "true" });
  }

  axis() {
    const took = el("span", { class: "figures" }, "Took");
    return el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}, "Span"), took, this.ticks);
  }

  // Draws what stands above and behind the rows.
  draw() {
    const [begin, length] = this.window;
    const since = [0.25, 0.5, 0.75, 1].map((part) => (begin ? "+" : "") + duration(length * part));
    this.ticks.replaceChildren(...[begin ? duration(begin) : "0", ...since].map((time) => el("span", {}, time)));
    const seen = this.tree.data.holes.filter((hole) => hole.length > LEAST_BAND * length);
    this.bands.replaceChildren(
      el("div", { class: "lane" }, ...seen.map((hole) => this.bar("band", hole.start, hole.length))),
    );
  }

  // A bar at its place, null if it lies outside of what is shown.
  bar(kind, start, length) {
    const [begin, whole] = this.window;
    const [first, last] = [Math.max(0, start - begin), Math.min(whole, start + length - begin)];
    if (first > whole || last < 0) return null;
    const made = el("span", { class: kind });
    made.style.left = `${(100 * first) / whole}%`;
    made.style.width = `${(100 * Math.max(0, last - first)) / whole}%`;
    return made;
  }

  // The part of a row: its span's bar, and that of the other run.
  lane(row) {
    const { data, length } = this.tree;
    const bars = [
      [data, "span"],
      [data.base, "span base"],
    ].map(([side, kind]) => {
      if (!side || side.start[row] === null) return null;
      const took = side.took[row] ?? length - side.start[row];
      return this.bar(side.took[row] === null ? `${kind} open` : kind, side.start[row], took);
    });
    return el("span", { class: data.base ? "lane both" : "lane", "aria-hidden": "true" }, ...bars);
  }

  get isZoomed() {
    return this.window[1] < this.tree.length;
  }

  // Shows the time that a row took, or, if that is what is shown, all of it.
  zoom(row) {
    const side = this.tree.side(row);
    const begin = side.start[row] ?? 0;
    const wanted = [begin, Math.max(1, side.took[row] ?? this.tree.length - begin)];
    const isShown = this.isZoomed && this.window.every((edge, place) => edge === wanted[place]);
    this.window = isShown ? [0, this.tree.length] : wanted;
  }
}
