// Rows times matrices, four numbers at once: a function in WebAssembly, whose instructions are put together here, by their
// names (WebAssembly Core Specification 2.0, 5: Binary Format). It reads the weights of a model, which lie in its memory.

/** @import { Floats } from "./model.js" */
/** @import { Loops } from "./products.js" */

const PAGE = 65536; // bytes of WebAssembly's memory come in
const ALIGNED = 16; // bytes of four numbers

// Instructions, and what they act on.
const get = (local) => [0x20, local];
const set = (local) => [0x21, local];
const add = [0x6a]; // of addresses
const isLess = [0x49];
const number = (bytes) => [0x41, bytes];
const load = [0xfd, 0x00, 0x02, 0x00]; // four numbers
const zeros = [0x43, 0, 0, 0, 0, 0xfd, 0x13];
const addFour = [0xfd, 0xe4, 0x01];
const multiplyFour = [0xfd, 0xe6, 0x01];
const lane = (which) => [0xfd, 0x1f, which];
const addOne = [0x92];
const store = (offset) => [0x38, 0x02, offset];
const again = [0x0d, 0x00]; // if what was computed last is so, from the loop's beginning
const loop = (...body) => [0x03, 0x40, ...body.flat(), ...again, 0x0b];

const [X, W, BYTES, END, OUT, AT, X_END, TWICE, THRICE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const SUMS = [9, 10, 11, 12];
const FOUR = 13;
const move = (local, by) => [get(local), by, add, set(local)].flat();
const weightOf = [get(W), [get(W), get(BYTES), add].flat(), [get(W), get(TWICE), add].flat(), [get(W), get(THRICE), add].flat()];

/**
 * (x, w, bytes, end, out): the dot products of the row at x with the rows at w, one after another, four at a time, from `out`
 * to `end`. bytes: of a row, whole fours.
 */
const BODY = [
  get(BYTES), get(BYTES), add, set(TWICE),
  get(TWICE), get(BYTES), add, set(THRICE),
  get(X), get(BYTES), add, set(X_END),
  loop(
    ...SUMS.flatMap((sum) => [zeros, set(sum)]),
    get(X), set(AT),
    loop(
      get(AT), load, set(FOUR),
      ...SUMS.flatMap((sum, row) => [get(sum), get(FOUR), weightOf[row], load, multiplyFour, addFour, set(sum)]),
      move(W, number(ALIGNED)), move(AT, number(ALIGNED)),
      get(AT), get(X_END), isLess,
    ),
    ...SUMS.flatMap((sum, row) => [get(OUT), get(sum), lane(0), get(sum), lane(1), addOne, get(sum), lane(2), addOne, get(sum), lane(3), addOne, store(4 * row)]),
    move(W, get(THRICE)), move(OUT, number(ALIGNED)),
    get(OUT), get(END), isLess,
  ),
].flat();

const [I32, V128] = [0x7f, 0x7b];
const counted = (bytes) => [...(bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]), ...bytes];
const section = (id, ...bytes) => [id, ...counted([1, ...bytes])]; // with one entry
const name = [1, 0x6d]; // "m"
const CODE = Uint8Array.from([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, 0x60, ...counted(Array(5).fill(I32)), 0),
  ...section(2, ...name, ...name, 0x02, 0x00, 1),
  ...section(3, 0),
  ...section(7, ...name, 0x00, 0),
  ...section(10, ...counted([2, 4, I32, 5, V128, ...BODY, 0x0b])),
]);

/** Memory for numbers that are multiplied with, and what multiplies with them. */
export class Simd {
  /** @param {number} most of the numbers of a row, or of its products @param {number} count of the numbers that are held */
  constructor(most, count) {
    const bytes = 4 * (2 * most + count) + PAGE;
    this.memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    this.dotProducts = /** @type {(...places: number[]) => void} */ (new WebAssembly.Instance(new WebAssembly.Module(CODE), { m: { m: this.memory } }).exports.m);
    this.end = 0;
    this.row = this.take(most);
    this.products = this.take(most);
  }

  /** The same for a model's weights; null where the browser can't. @param {{ shape: number[], data: ArrayLike<number> }[]} tensors */
  static for(tensors) {
    try {
      return new Simd(Math.max(...tensors.flatMap(({ shape }) => shape)) + 4, tensors.reduce((all, { data }) => all + data.length + 4, 0));
    } catch {
      return null;
    }
  }

  /** Room for so many numbers. @param {number} count */
  take(count) {
    const room = new Float32Array(this.memory.buffer, this.end, count);
    this.end = Math.ceil((this.end + 4 * count) / ALIGNED) * ALIGNED;
    return room;
  }

  /** Whether it can do what `loops` are. @param {Loops} loops @param {{ x: Floats, w: Floats, out: Floats }} tensors */
  fits({ columns, sums }, { x, w, out }) {
    const isHere = w.buffer === this.memory.buffer && [x, out].every((numbers) => numbers instanceof Float32Array);
    const isEven = sums.x === 1 && sums.w === 1 && columns.w === sums.size && sums.size % 4 === 0;
    return isHere && isEven && columns.size >= 4 && Math.max(sums.size, columns.size) <= this.row.length;
  }

  /**
   * The products of one row of x with as many columns of w as are whole fours. Returns how many.
   *
   * @param {Loops} loops
   * @param {{ x: Floats, w: Floats, bias: Floats | null, out: Floats }} tensors
   * @param {{ x: number, w: number, bias: number, out: number }} start
   */
  multiplyRow({ columns, sums }, { x, w, bias, out }, start) {
    const { row, products } = this;
    const whole = columns.size - (columns.size % 4);
    for (let k = 0; k < sums.size; k++) row[k] = x[start.x + k];
    this.dotProducts(row.byteOffset, w.byteOffset + 4 * start.w, 4 * sums.size, products.byteOffset + 4 * whole, products.byteOffset);
    for (let column = 0; column < whole; column++) {
      out[start.out + column * columns.out] = products[column] + (bias ? bias[start.bias + column * columns.bias] : 0);
    }
    return whole;
  }
}
