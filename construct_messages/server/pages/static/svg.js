// Elements of SVG, made as elements.js makes those of HTML.

const NAMESPACE = "http://www.w3.org/2000/svg";

/** An element with attributes and children. */
export function svg(name, attributes, ...children) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
