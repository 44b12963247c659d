// Data: what the page holds, unpacked. streams.py packs the numbers.

async function loadData() {
  const head = JSON.parse(document.getElementById("head").textContent);
  const element = document.getElementById("data");
  const bytes = await inflate(element.textContent, head.data.size);
  element.remove();
  const arrays = {};
  const kinds = { f4: Float32Array, f8: Float64Array, u4: Uint32Array, u1: Uint8Array };
  for (const [name, part] of Object.entries(head.data.parts)) {
    if (part.type) {
      const Kind = kinds[part.type];
      arrays[name] = new Kind(bytes.buffer, part.offset, part.size / Kind.BYTES_PER_ELEMENT);
    } else {
      arrays[name] = unpack(bytes.subarray(part.offset, part.offset + part.size), part);
    }
  }
  return { head, arrays };
}

async function inflate(text, size) {
  if (typeof DecompressionStream === "undefined") throw new Error("This page needs a browser of 2023 or later.");
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const feed = async () => {
    const piece = 1 << 20; // a multiple of 4, as base64 has it
    for (let at = 0; at < text.length; at += piece) {
      const letters = atob(text.slice(at, at + piece));
      const part = new Uint8Array(letters.length);
      for (let i = 0; i < part.length; i++) part[i] = letters.charCodeAt(i);
      await writer.write(part);
    }
    await writer.close();
  };
  const feeding = feed();
  const bytes = new Uint8Array(size);
  const reader = stream.readable.getReader();
  let filled = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.set(value, filled);
    filled += value.length;
  }
  await feeding;
  if (filled !== size) throw new Error(`The page is damaged: ${filled} bytes, expected ${size}.`);
  return bytes;
}

// Numbers of (frame, body, component).
function unpack(bytes, { shape, order, planes }) {
  const [components, bodies, frames] = shape;
  const count = components * bodies * frames;
  const values = new Int32Array(count);
  let i = 0;
  for (let c = 0; c < components; c++) {
    for (let b = 0; b < bodies; b++) {
      let value = 0, change = 0;
      for (let f = 0; f < frames; f++, i++) {
        let folded = bytes[i];
        for (let p = 1; p < planes; p++) folded |= bytes[p * count + i] << (8 * p);
        const rest = (folded >>> 1) ^ -(folded & 1);
        if (order === 2 && f > 0) value += change += rest;
        else value += rest;
        values[(f * bodies + b) * components + c] = value;
      }
    }
  }
  return values;
}
