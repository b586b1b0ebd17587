// The messages of an answer, in little memory: the newest uncompressed, the others in compressed blocks.
//
// A million messages of a few statements take some tens of megabytes. Beyond the limit, the oldest messages are
// dropped; `first` is the oldest one kept. No access to the document.

import { Message } from "./log.js";

const BLOCK_MESSAGES = 256;
const BLOCK_CHARACTERS = 1 << 19;
const KEPT_BYTES = 1 << 28; // of all blocks
const OPEN_CHARACTERS = 1 << 25; // of blocks that were read again

export class MessageStore {
  constructor({ bytes = KEPT_BYTES } = {}) {
    this.most = bytes;
    this.count = 0; // messages that have come
    this.blocks = []; // the oldest first: {start, count, numbers, text, packed, bytes}
    this.bytes = 0; // of blocks
    this.open = []; // messages of the next block
    this.characters = 0; // of `open`
    this.read = new Map(); // by block: its messages as texts, in the order of last use
    this.readCharacters = 0;
    this.packing = Promise.resolve();
  }

  /** The index of the oldest message that is kept; indexes count all messages from 0. */
  get first() {
    return this.blocks.length ? this.blocks[0].start : this.count - this.open.length;
  }

  add(message) {
    this.open.push(message);
    this.count += 1;
    this.characters += message.characters;
    if (this.open.length >= BLOCK_MESSAGES || this.characters >= BLOCK_CHARACTERS) this.seal();
  }

  /** Makes a block of the open messages. */
  seal() {
    const text = this.open.map(({ lines }) => lines.join("\n")).join("\n\n");
    const block = {
      start: this.count - this.open.length,
      count: this.open.length,
      numbers: this.open.map(({ number }) => number),
      text,
      packed: null,
      bytes: text.length,
    };
    this.blocks.push(block);
    this.bytes += block.bytes;
    this.open = [];
    this.characters = 0;
    this.bound();
    this.packing = this.packing.then(() => this.pack(block));
  }

  async pack(block) {
    if (this.blocks[0]?.start > block.start) return;
    block.packed = new Uint8Array(await through(block.text, new CompressionStream("deflate-raw")));
    block.text = null;
    if (this.blocks[0]?.start > block.start) return;
    this.bytes += block.packed.length - block.bytes;
    block.bytes = block.packed.length;
  }

  bound() {
    while (this.bytes > this.most && this.blocks.length > 1) {
      const gone = this.blocks.shift();
      this.bytes -= gone.bytes;
      this.forget(gone);
    }
  }

  forget(block) {
    const texts = this.read.get(block);
    if (texts === undefined) return;
    this.read.delete(block);
    this.readCharacters -= charactersOf(texts);
  }

  /** The message at an index; null: it is not kept. */
  async at(index) {
    if (index < this.first || index >= this.count) return null;
    const start = this.count - this.open.length;
    if (index >= start) return this.open[index - start];
    const block = this.blocks[this.blockOf(index)];
    const texts = await this.textsOf(block);
    return messageOf(block, texts, index - block.start);
  }

  /** The messages from an index on, those of one block: [index of the first, messages]. */
  async some(index) {
    const from = Math.max(index, this.first);
    const start = this.count - this.open.length;
    if (from >= start) return [from, this.open.slice(from - start)];
    const block = this.blocks[this.blockOf(from)];
    const texts = await this.textsOf(block);
    const within = from - block.start;
    return [from, texts.slice(within).map((_, at) => messageOf(block, texts, within + at))];
  }

  /** The index of the message with a number; -1: it is not kept. Numbers rise. */
  indexOf(number) {
    const block = this.blocks.findLast(({ numbers }) => numbers[0] <= number);
    if (this.open.length && this.open[0].number <= number) {
      const found = this.open.findIndex((message) => message.number === number);
      return found < 0 ? -1 : this.count - this.open.length + found;
    }
    const found = block === undefined ? -1 : block.numbers.indexOf(number);
    return found < 0 ? -1 : block.start + found;
  }

  blockOf(index) {
    let [low, high] = [0, this.blocks.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].start <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async textsOf(block) {
    let texts = this.read.get(block);
    if (texts !== undefined) {
      this.read.delete(block);
      this.read.set(block, texts);
      return texts;
    }
    const text = block.text ?? (await unpacked(block.packed));
    texts = text.split("\n\n");
    this.forget(block); // another call may have read it meanwhile
    this.read.set(block, texts);
    this.readCharacters += charactersOf(texts);
    for (const other of this.read.keys()) {
      if (this.readCharacters <= OPEN_CHARACTERS || other === block) break;
      this.forget(other);
    }
    return texts;
  }
}

function messageOf(block, texts, at) {
  return new Message(block.numbers[at], texts[at] === "" ? [] : texts[at].split("\n"));
}

function charactersOf(texts) {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

async function unpacked(bytes) {
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}

function through(content, transform) {
  return new Response(new Blob([content]).stream().pipeThrough(transform)).arrayBuffer();
}
