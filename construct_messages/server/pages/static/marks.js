// Replacements for invisible characters, and for those that change the direction of text. No access to the document.
//
// Unicode Technical Report 36, section 2 (visual security): a text may not look like another one.

const NAMES = {
  0x00ad: "soft hyphen",
  0x061c: "Arabic letter mark",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2060: "word joiner",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

// joiners between letters or pictures are how these are written
const JOINED = String.raw`(?<![\p{L}\p{M}\p{Extended_Pictographic}])[\u200c\u200d]|[\u200c\u200d](?![\p{L}\p{Extended_Pictographic}])`;
const HIDDEN = new RegExp(
  [
    String.raw`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f]`,
    String.raw`[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb]`,
    String.raw`[\u{e0000}-\u{e01ff}]|\p{Cs}|[\ufffe\uffff]`,
    JOINED,
    String.raw`^ +| +$`,
  ].join("|"),
  "gu",
);

/** The parts of a text: strings that are shown unchanged, and {text, code, name} for marked characters. */
export function partsOf(text) {
  const parts = [];
  let shown = 0;
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    if (index > shown) parts.push(text.slice(shown, index));
    shown = index + found.length;
    if (found.startsWith(" ")) {
      const many = found.length === 1 ? "a space" : `${found.length.toLocaleString()} spaces`;
      parts.push({ text: found, code: "␠".repeat(Math.min(found.length, 3)), name: many });
      continue;
    }
    const point = found.codePointAt(0);
    const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
    parts.push({ text: found, code, name: `${code}${point in NAMES ? ` ${NAMES[point]}` : ""}` });
  }
  if (shown < text.length) parts.push(text.slice(shown));
  return parts;
}
