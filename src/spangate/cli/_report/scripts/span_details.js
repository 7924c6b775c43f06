"use strict";
// What was recorded about one span, in a panel beside the tree: findings with advice, facts, attributes, events, links.

const FOLDED_ABOVE = 600;
const ADDED_WORDS = {
  added: "Only in this run",
  dropped: "Only in the other run",
  changed: "Differs from the other run",
};

class SpanDetails {
  constructor(tree, details, key, { onClose, onZoom }) {
    Object.assign(this, { tree, details, onClose, onZoom });
    this.element = el("aside", {
      class: "details",
      tabindex: "-1",
      "aria-labelledby": `${key}-details-title`,
      hidden: true,
    });
    this.titleId = `${key}-details-title`;
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.onClose();
    });
  }

  hide() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  show(row) {
    const close = el("button", { type: "button", class: "button close" }, "Close");
    close.addEventListener("click", () => this.onClose());
    const zoom = el("button", { type: "button", class: "button" }, "Stretch time line");
    zoom.addEventListener("click", () => this.onZoom(row));
    const title = el("h3", { id: this.titleId, class: "head" }, bdi(this.tree.name(row)));
    const told = this.details(row);
    const body = told
      ? this.told(row, told)
      : [
          el(
            "p",
            { class: "quiet" },
            "What was recorded about this span is not in the page, which would be too large. It is in the recording.",
          ),
        ];
    this.element.replaceChildren(
      title,
      close,
      el("p", { class: "acts" }, zoom),
      ...this.standing(row),
      ...this.findings(row),
      ...body,
    );
    this.element.hidden = false;
    this.element.scrollTop = 0;
  }

  standing(row) {
    const words = ADDED_WORDS[this.tree.standing(row)];
    if (!words) return [];
    const changed = this.tree.data.changed[row] ?? [];
    return [el("p", { class: "about" }, changed.length ? `${words} in: ${changed.join(", ")}` : words)];
  }

  findings(row) {
    return (this.tree.marks.get(row) ?? []).map((mark) => {
      const [meaning, advice] = this.tree.data.advice[mark.code] ?? ["", ""];
      const head = el(
        "p",
        {},
        el("strong", {}, `${FLAGS[mark.level] ?? ""} `, meaning || mark.code),
        " ",
        el("code", {}, mark.code),
      );
      const detail = mark.detail ? el("p", {}, bdi(mark.detail)) : null;
      return el(
        "div",
        { class: `about ${mark.level}` },
        head,
        detail,
        advice ? el("p", {}, el("strong", {}, "What to do. "), advice) : null,
      );
    });
  }

  told(row, told) {
    if (told.here && told.base) return this.sides(told.here, told.base);
    const one = told.here ?? told.base;
    const resources = this.tree.data.resources[told.here ? "here" : "base"];
    return [
      this.pairs(one.facts, false),
      ...this.part("Attributes", one.attributes.length && this.pairs(one.attributes, true)),
      ...this.part("Events", one.events && el("ol", {}, ...one.events.map((event) => this.event(event)))),
      ...this.part(
        "Links",
        one.links &&
          el(
            "ul",
            {},
            ...one.links.map((link) => el("li", {}, el("code", {}, link.to), this.pairs(link.attributes, true))),
          ),
      ),
      one.rest ? el("p", { class: "quiet" }, one.rest) : null,
      ...this.resource(resources[one.resource]),
    ].filter(Boolean);
  }

  part(heading, content) {
    return content ? [this.heading(heading), content] : [];
  }

  heading(text) {
    return el("h4", { class: "sub" }, text);
  }

  event(event) {
    return el(
      "li",
      {},
      el("p", {}, el("strong", {}, bdi(event.name)), event.at ? el("span", { class: "quiet" }, ` ${event.at}`) : null),
      this.pairs(event.attributes, true),
    );
  }

  resource(pairs) {
    if (!pairs || !pairs.length) return [];
    return [el("details", { class: "more" }, el("summary", {}, "Resource"), this.pairs(pairs, true))];
  }

  pairs(pairs, isWide) {
    const list = el("dl", { class: isWide ? "pairs wide" : "pairs" });
    for (const [key, value] of pairs) list.append(el("dt", {}, bdi(key)), el("dd", {}, this.value(value)));
    return list;
  }

  // A long value is folded behind its beginning; one that was cut says how much is missing.
  value(value) {
    const [text, missing] = Array.isArray(value) ? value : [value, 0];
    const cut = missing
      ? el("span", { class: "cut" }, ` … ${counted(missing, "more character")} in the recording`)
      : null;
    if (text.length <= FOLDED_ABOVE) return el("bdi", {}, text, cut);
    const begin = `${text.slice(0, 120).replace(/\s+/g, " ")}… (${counted(text.length + missing, "character")})`;
    return el("details", { class: "value" }, el("summary", {}, bdi(begin)), el("bdi", {}, text, cut));
  }

  // Both spans of a place, key by key: what differs first.
  sides(here, base) {
    const rows = [...this.joined(base.attributes, here.attributes), ...this.joined(base.facts, here.facts)];
    const differ = rows.filter(([, left, right]) => JSON.stringify(left) !== JSON.stringify(right));
    const same = rows.filter(([, left, right]) => JSON.stringify(left) === JSON.stringify(right));
    return [
      this.heading("What differs"),
      this.table(differ),
      el(
        "details",
        { class: "more" },
        el("summary", {}, `${counted(same.length, "value")} that ${same.length === 1 ? "is" : "are"} the same`),
        this.pairs(
          same.map(([key, left]) => [key, left]),
          true,
        ),
      ),
    ];
  }

  joined(left, right) {
    const [old, now] = [new Map(left), new Map(right)];
    return [...new Set([...old.keys(), ...now.keys()])].map((key) => [key, old.get(key) ?? null, now.get(key) ?? null]);
  }

  table(rows) {
    const head = el(
      "tr",
      {},
      ...["", "Other run", "This run"].map((text) => el(text ? "th" : "td", text ? { scope: "col" } : {}, text)),
    );
    const cell = (value) =>
      el("td", {}, value === null ? el("span", { class: "quiet" }, "not there") : this.value(value));
    const body = rows.map(([key, left, right]) =>
      el("tr", {}, el("th", { scope: "row" }, bdi(key)), cell(left), cell(right)),
    );
    return el("table", { class: "sides" }, el("thead", {}, head), el("tbody", {}, ...body));
  }
}
