"use strict";
// The keys of a tree, as the patterns for trees have them, and some for findings and the time line.

function pressed(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || view.active < 0) return;
  const action = { ...moves(view), ...acts(view) }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function moves(view) {
  const { rows } = view;
  const at = rows.indexOf(view.active);
  const to = (place) => view.move(rows[Math.min(rows.length - 1, Math.max(0, place))]);
  const screen = Math.max(1, Math.floor(view.scroller.clientHeight / view.height) - 1);
  return {
    ArrowDown: () => to(at + 1),
    ArrowUp: () => to(at - 1),
    PageDown: () => to(at + screen),
    PageUp: () => to(at - screen),
    Home: () => to(0),
    End: () => to(rows.length - 1),
  };
}

function acts(view) {
  const { tree, active } = view;
  const isOpen = tree.hasChildren(active) && tree.isExpanded(active);
  return {
    ArrowRight: () => {
      if (isOpen) view.move(view.rows[view.rows.indexOf(active) + 1]);
      else if (tree.hasChildren(active)) view.toggle(active, true);
    },
    ArrowLeft: () => {
      if (isOpen && !tree.kept) view.toggle(active, false);
      else if (tree.parent[active] >= 0) view.move(tree.parent[active]);
    },
    "*": () => view.openSiblings(),
    Enter: () => view.choose(active, true),
    " ": () => view.choose(active, true),
    n: () => view.jump(1),
    p: () => view.jump(-1),
    z: () => view.zoom(active),
  };
}
