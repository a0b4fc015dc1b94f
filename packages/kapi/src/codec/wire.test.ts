import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isCoded } from "@kontinuum/std";
import { WireReader, WireWriter } from "./wire.ts";

test("numbers of every size come back", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const writer = new WireWriter(4);
      writer.int64(value);
      const back = new WireReader(writer.finish()).int64();
      assert.equal(BigInt(back), value);
      assert.equal(
        typeof back === "number",
        Number.isSafeInteger(Number(value)) && BigInt(Number(value)) === value,
      );
    }),
  );
  for (const value of [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31), Number.MAX_SAFE_INTEGER]) {
    const writer = new WireWriter();
    writer.int64(value);
    assert.equal(new WireReader(writer.finish()).int64(), value);
  }
});

test("texts of every length and script come back", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (value) => {
      const writer = new WireWriter(1);
      writer.string(value);
      assert.equal(new WireReader(writer.finish()).string(), Buffer.from(value).toString("utf8"));
    }),
  );
});

test("a nested message gets its length, however long it becomes", () => {
  for (const size of [0, 1, 127, 128, 16_383, 16_384, 3_000_000]) {
    const writer = new WireWriter();
    const start = writer.open();
    writer.raw(new Uint8Array(size));
    writer.close(start);
    writer.byte(7);
    const reader = new WireReader(writer.finish());
    assert.equal(reader.view().length, size);
    assert.equal(reader.uint32(), 7);
    assert.equal(reader.position, reader.end);
  }
});

const refused: readonly (readonly [string, number[], (reader: WireReader) => unknown])[] = [
  ["a varint without end", [0xff, 0xff], (reader) => reader.int64()],
  ["a varint of eleven bytes", Array<number>(11).fill(0xff), (reader) => reader.int64()],
  ["a length beyond the data", [5, 1], (reader) => reader.string()],
  ["a length beyond 32 bits", [0xff, 0xff, 0xff, 0xff, 0x7f], (reader) => reader.delimited()],
  ["half a double", [1, 2, 3], (reader) => reader.double()],
  ["a group", [], (reader) => reader.skip(3)],
  ["a fixed64 that is cut", [1], (reader) => reader.skip(1)],
];
for (const [what, bytes, read] of refused) {
  test(`${what} is refused`, () => {
    assert.throws(
      () => read(new WireReader(Uint8Array.from(bytes))),
      (error) => isCoded(error, "invalid_argument"),
    );
  });
}
