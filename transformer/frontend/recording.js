// Reads a recording: named tensors and metadata, in the bytes of a safetensors file (an eight-byte length, a JSON
// header, aligned arrays; https://github.com/huggingface/safetensors#format).

/**
 * @typedef {Float64Array | Float32Array | Int32Array | Uint8Array} Numbers
 * @typedef {{ shape: number[], data: Numbers }} Tensor row-major
 * @typedef {Record<string, Tensor>} Tensors
 * @typedef {{ metadata: Record<string, any>, tensors: Tensors }} Recording what its metadata hold is up to what was asked
 */

const ARRAYS = { F64: Float64Array, F32: Float32Array, I32: Int32Array, U8: Uint8Array, BOOL: Uint8Array, F16: Uint16Array, BF16: Uint16Array };
const KINDS = "float64, float32, float16, bfloat16, int32, uint8 and bool";

/**
 * What is in bytes. Metadata values are parsed as JSON; booleans are bytes 0 and 1. A tensor shares the memory of `bytes`
 * where that is aligned. An Error says what is wrong with bytes that are no recording.
 *
 * @param {Uint8Array | ArrayBuffer} bytes
 * @returns {Recording}
 */
export function readRecording(bytes) {
  const { texts, tensors } = readSafetensors(bytes);
  const metadata = Object.entries(texts).map(([key, text]) => [key, parsed(text, `its metadata “${key}”`)]);
  return { metadata: Object.fromEntries(metadata), tensors };
}

/**
 * The same of any safetensors file, its metadata as the texts that they are. Numbers of 16 bits become float32.
 *
 * @param {Uint8Array | ArrayBuffer} bytes
 * @returns {{ texts: Record<string, string>, tensors: Tensors }}
 */
export function readSafetensors(bytes) {
  const { header, body } = split(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes);
  const { __metadata__: texts = {}, ...described } = header;
  const tensors = Object.entries(described).map(([name, tensor]) => [name, read(name, tensor, body)]);
  return { texts, tensors: Object.fromEntries(tensors) };
}

/** @param {Uint8Array} file */
function split(file) {
  if (file.byteLength < 8) throw new Error(`A recording has at least 8 bytes; these are ${file.byteLength}.`);
  const length = Number(new DataView(file.buffer, file.byteOffset, 8).getBigUint64(0, true));
  if (length > file.byteLength - 8) {
    throw new Error(`The recording's header should have ${length} bytes; only ${file.byteLength - 8} are there.`);
  }
  const header = parsed(new TextDecoder().decode(file.subarray(8, 8 + length)), "its header");
  if (!isTable(header) || !isTable(header.__metadata__ ?? {})) throw new Error("The recording's header is no table of tensors.");
  return { header, body: file.subarray(8 + length) };
}

function isTable(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`The recording can't be read: ${what} isn't JSON.`);
  }
}

/** @returns {Tensor} */
function read(name, tensor, body) {
  const { dtype, shape, data_offsets: offsets } = tensor ?? {};
  const Kind = Object.hasOwn(ARRAYS, dtype) ? ARRAYS[dtype] : null;
  if (!Kind) throw new Error(`The tensor ${name} is of type ${dtype}; ${KINDS} can be read.`);
  const counts = (list) => Array.isArray(list) && list.every((value) => Number.isSafeInteger(value) && value >= 0);
  if (!counts(shape) || !counts(offsets) || offsets.length !== 2) {
    throw new Error(`The tensor ${name} has no shape or no place in the recording.`);
  }
  const [start, end] = offsets;
  const count = countOf(shape);
  if (end - start !== count * Kind.BYTES_PER_ELEMENT) {
    throw new Error(`The tensor ${name} of shape ${shape.join(" × ")} needs ${count * Kind.BYTES_PER_ELEMENT} bytes; it has ${end - start}.`);
  }
  if (end > body.byteLength) throw new Error(`The tensor ${name} ends at byte ${end}; the recording has ${body.byteLength}.`);
  const at = body.byteOffset + start;
  const isAligned = at % Kind.BYTES_PER_ELEMENT === 0; // typed arrays begin at multiples of their size
  const data = isAligned ? new Kind(body.buffer, at, count) : new Kind(body.slice(start, end).buffer);
  return { shape, data: data instanceof Uint16Array ? widened(data, dtype) : data };
}

/** Numbers of 16 bits as float32, which has all of them: bfloat16 is its upper half. */
function widened(bits, dtype) {
  if (dtype === "BF16") return new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer);
  halves ??= Float32Array.from({ length: 2 ** 16 }, (_, half) => fromFloat16(half));
  const numbers = new Float32Array(bits.length);
  for (let at = 0; at < bits.length; at++) numbers[at] = halves[bits[at]];
  return numbers;
}

/** @type {Float32Array} */
let halves; // every number of float16, by its bits

/** IEEE 754: a sign, 5 bits of exponent, 10 of the fraction. */
function fromFloat16(half) {
  const [sign, exponent, fraction] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

/** How many numbers a tensor of this shape has. @param {readonly number[]} shape */
export function countOf(shape) {
  return shape.reduce((product, length) => product * length, 1);
}

/** How far apart neighbours along each dimension lie. @param {readonly number[]} shape */
export function stridesOf(shape) {
  return shape.map((_, axis) => countOf(shape.slice(axis + 1)));
}

/**
 * What a tensor's numbers are an array of.
 *
 * @param {Numbers} numbers
 * @returns {{ new (length: number): Numbers }}
 */
export function arrayKind(numbers) {
  return /** @type {any} */ (numbers.constructor);
}
